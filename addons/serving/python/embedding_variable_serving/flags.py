# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command line: TensorFlow Serving's flags, and some of this server's own."""

import argparse
import os

# TensorFlow Serving's flags that this server does not have. They are refused by name, so
# that a command line either means the same or fails.
NOT_SUPPORTED = (
    "enable_cors_support", "enable_profiler",
    "enable_signature_method_name_check", "flush_filesystem_caches",
    "force_allow_any_version_labels_for_unavailable_models", "mixed_precision",
    "num_request_iterations_for_warmup", "num_tflite_interpreters_per_pool",
    "num_tflite_pools", "platform_config_file", "prefer_tflite_model",
    "remove_unused_fields_from_bundle_metagraph", "response_compression_level",
    "skip_initialize_tpu", "thread_pool_factory_config_file",
    "total_model_memory_limit_bytes", "use_tflite_model", "xla_cpu_compilation_enabled",
    "xla_gpu_compilation_enabled")

# The bytes of a Unix socket's name in Linux, without the zero at its end.
_MAX_SOCKET_BYTES = 107

_DEFAULT_THREADS = 4 * (os.cpu_count() or 1)


def _bool(text):
  values = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}
  if text.lower() not in values:
    raise argparse.ArgumentTypeError("expected true or false, got '%s'" % text)
  return values[text.lower()]


def _count(text):
  value = int(text)
  if value < 0:
    raise argparse.ArgumentTypeError("expected a number of at least 0, got %d" % value)
  return value


def _channel_arguments(text):
  """Returns the (name, value) pairs of "k=v,k=v"; a value of digits is an integer."""
  pairs = []
  for part in text.split(","):
    if part:
      name, equals, value = part.partition("=")
      if not equals:
        raise argparse.ArgumentTypeError("expected NAME=VALUE, got '%s'" % part)
      pairs.append((name, int(value) if value.lstrip("-").isdigit() else value))
  return pairs


class _Refused(argparse.Action):

  def __call__(self, parser, namespace, values, option_string=None):
    parser.error("%s is a flag of TensorFlow Serving that this server does not have" %
                 option_string)


def make_parser():
  """Returns the ArgumentParser."""
  parser = argparse.ArgumentParser(
      prog="python -m embedding_variable serve", allow_abbrev=False,
      description="Serves SavedModels with embedding variables over gRPC and HTTP. "
      "MODEL_FOLDER has a folder with a number as its name for each version of the model, "
      "or is a SavedModel itself.")
  add = parser.add_argument

  def switch(name, default, text):
    add(name, type=_bool, nargs="?", const=True, default=default, help=text)

  add("model_folder", nargs="?", metavar="MODEL_FOLDER",
      help="the same as --model_base_path")
  add("--model_base_path", metavar="FOLDER")
  add("--model_name", default="default", help="default: default")
  add("--model_config_file", metavar="FILE",
      help="text of a ModelServerConfig: several models, policies, labels")
  add("--model_config_file_poll_wait_seconds", type=float, default=0.0,
      help="between two readings of that file; 0: read once (default: 0)")
  switch("--allow_version_labels_for_unavailable_models", False,
         "a new label may be for a version that is not loaded")
  switch("--enable_grpc_healthcheck_service", True,
         "grpc.health.v1, which follows the models (default: true)")
  add("--bind_address", default="127.0.0.1", metavar="HOST",
      help="address of the network interface; 0.0.0.0 is every one (default: 127.0.0.1)")
  add("--port", type=_count, default=8500, help="of gRPC (default: 8500)")
  add("--grpc_socket_path", default="", metavar="PATH", help="also serve gRPC on a Unix socket")
  add("--grpc_channel_arguments", type=_channel_arguments, default=[], metavar="K=V,K=V")
  add("--grpc_max_threads", type=_count, default=_DEFAULT_THREADS,
      help="of gRPC requests (default: 4 for each core)")
  add("--rest_api_port", type=_count, help="of HTTP (default: no HTTP)")
  add("--rest_api_num_threads", type=_count, default=_DEFAULT_THREADS,
      help="of HTTP requests (default: 4 for each core)")
  add("--rest_api_timeout_in_ms", type=_count, default=30000)
  add("--max_queued_requests", type=_count, default=1000,
      help="requests of an interface that wait for a thread; more are refused as "
      "UNAVAILABLE (default: 1000)")
  add("--max_request_bytes", type=_count, default=64 << 20,
      help="of a message, a body or a tensor (default: 64 MiB)")
  add("--drain_seconds", type=float, default=30.0,
      help="SIGTERM: time for the requests in flight (default: 30)")
  add("--file_system_poll_wait_seconds", type=float, default=1.0,
      help="between two listings of the model's folder; 0: list once (default: 1)")
  add("--num_load_threads", type=_count, default=0, help="0: two")
  add("--num_unload_threads", type=_count, default=0, help="0: one")
  add("--max_num_load_retries", type=_count, default=5)
  add("--load_retry_interval_micros", type=_count, default=60 * 1000 * 1000)
  switch("--enable_model_warmup", True,
         "replay assets.extra/tf_serving_warmup_requests before a version serves")
  switch("--enable_batching", False, "run requests that wait as one batch")
  add("--batching_parameters_file", metavar="FILE", help="text of BatchingParameters")
  switch("--enable_per_model_batching_parameters", False,
         "prefer batching_params.pbtxt in a version's folder; it does not change the threads")
  add("--record_requests_folder", metavar="DIR",
      help="SIGUSR1: record the next requests of each model in DIR/MODEL, for warm-up")
  add("--record_requests", type=_count, default=100, help="of each model (default: 100)")
  add("--monitoring_config_file", metavar="FILE",
      help="text of a MonitoringConfig: Prometheus' metrics on the HTTP port")
  add("--ssl_config_file", metavar="FILE", help="text of an SSLConfig, for gRPC")
  add("--tensorflow_session_config_file", metavar="FILE", help="text of a ConfigProto")
  add("--tensorflow_session_parallelism", type=_count, default=0,
      help="the same as the next two together")
  add("--tensorflow_intra_op_parallelism", type=_count, default=0)
  add("--tensorflow_inter_op_parallelism", type=_count, default=0,
      help="1: a request runs in the thread that calls the session")
  add("--saved_model_tags", default="serve", help="separated by commas (default: serve)")
  add("--per_process_gpu_memory_fraction", type=float, default=0.0)
  switch("--enable_serialization_as_tensor_content", False,
         "write tensor_content in gRPC responses")
  for name in NOT_SUPPORTED:
    add("--" + name, nargs="?", action=_Refused, help=argparse.SUPPRESS)
  return parser


def parse(argv):
  """Returns the parsed flags; prints an error and exits with status 2 if there is one."""
  parser = make_parser()
  args = parser.parse_args(argv)
  if args.model_folder and args.model_base_path:
    parser.error("both MODEL_FOLDER and --model_base_path are given")
  args.model_base_path = args.model_folder or args.model_base_path
  if bool(args.model_base_path) == bool(args.model_config_file):
    parser.error("no model, or two sources of models: give MODEL_FOLDER or "
                 "--model_config_file")
  for name in ("batching_parameters_file", "enable_per_model_batching_parameters"):
    if getattr(args, name) and not args.enable_batching:
      parser.error("--%s needs --enable_batching" % name)
  if args.monitoring_config_file and args.rest_api_port is None:
    parser.error("--monitoring_config_file needs --rest_api_port")
  if args.grpc_socket_path and len(os.fsencode(args.grpc_socket_path)) > _MAX_SOCKET_BYTES:
    parser.error("--grpc_socket_path has %d bytes, expected at most %d: give a shorter path" % (
        len(os.fsencode(args.grpc_socket_path)), _MAX_SOCKET_BYTES))
  args.tensorflow_intra_op_parallelism = (
      args.tensorflow_intra_op_parallelism or args.tensorflow_session_parallelism)
  args.tensorflow_inter_op_parallelism = (
      args.tensorflow_inter_op_parallelism or args.tensorflow_session_parallelism)
  for name in ("grpc_max_threads", "rest_api_num_threads", "max_request_bytes",
               "rest_api_timeout_in_ms", "record_requests"):
    if not getattr(args, name):
      parser.error("--%s is 0, expected at least 1" % name)
  return args
