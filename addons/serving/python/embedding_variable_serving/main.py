# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the server: `python -m embedding_variable serve`."""

import collections
import functools
import gc
import importlib
import importlib.util
import logging
import os
import signal
import sys
import threading
import time

import grpc
import tensorflow as tf

from embedding_variable_serving import config_files
from embedding_variable_serving import errors
from embedding_variable_serving import flags
from embedding_variable_serving import messages
from embedding_variable_serving import metrics
from embedding_variable_serving.fronts import grpc_server
from embedding_variable_serving.fronts import grpc_tf_serving
from embedding_variable_serving.fronts import grpc_v2
from embedding_variable_serving.fronts import health
from embedding_variable_serving.fronts import rest
from embedding_variable_serving.fronts import rest_server
from embedding_variable_serving.inference import recording
from embedding_variable_serving.inference import warmup
from embedding_variable_serving.models import batching
from embedding_variable_serving.models import folders
from embedding_variable_serving.models import manager
from embedding_variable_serving.models import saved_model

# Packages whose import registers ops of SavedModels, if they are installed.
_OP_PACKAGES = ("embedding_variable", "hierarchical_parameter_server")

# For what follows the requests in flight: sessions close.
_STOP_SECONDS = 10


# TensorFlow Serving's name for a version's own batching parameters.
_BATCHING_FILE = "batching_params.pbtxt"


def _batching_parameters(path):
  cls = messages.serving("BatchingParameters")
  return batching.parameters(config_files.read(path, cls) if path else cls())


class ModelServer(object):
  """All parts of a running server.

  Attributes:
    grpc_port, rest_port: ports that the server listens on; rest_port may be None.
    recorder: recording.Recorder, or None without --record_requests_folder.
  """

  def __init__(self, args):
    """Listens, and begins to load.

    Args:
      args: args of flags.parse.

    Raises:
      OSError: an address cannot be listened on.
      ServingError: the list of models is not valid.
    """
    self._args = args
    self._config = self._session_config()
    self._kinds = collections.defaultdict(saved_model.new_kinds)  # {name of a model: kinds}
    self._metrics = metrics.Metrics()
    self._credentials = self._read_credentials()
    self._metrics_path = self._read_metrics_path()
    self._batches = self._read_batching()
    self.recorder = (recording.Recorder(args.record_requests_folder, args.record_requests)
                     if args.record_requests_folder else None)
    self.manager = manager.Manager(self._load, manager.Options(
        args.file_system_poll_wait_seconds, args.num_load_threads or 2,
        args.num_unload_threads or 1, args.max_num_load_retries,
        args.load_retry_interval_micros / 1e6,
        args.allow_version_labels_for_unavailable_models), self._metrics)
    self._ending = threading.Event()
    self._grpc = self._rest = self.rest_port = None
    try:
      self._start_grpc()
      if args.rest_api_port is not None:
        self._start_rest()
      self.manager.configure(self._settings())
    except (OSError, errors.ServingError):
      self.stop(0)
      raise
    if args.model_config_file and args.model_config_file_poll_wait_seconds > 0:
      threading.Thread(target=self._read_config, name="config", daemon=True).start()

  def _settings(self):
    args = self._args
    if args.model_config_file:
      return config_files.settings(config_files.read(
          args.model_config_file, messages.serving("ModelServerConfig")))
    return [manager.ModelSettings(args.model_name, args.model_base_path, folders.LATEST, {})]

  def _read_config(self):
    while not self._ending.wait(self._args.model_config_file_poll_wait_seconds):
      try:
        self.manager.configure(self._settings())
      except errors.ServingError as e:
        logging.error("the list of models stays as it is: %s", e.message)

  def _session_config(self):
    args = self._args
    base = (config_files.read(args.tensorflow_session_config_file, tf.compat.v1.ConfigProto)
            if args.tensorflow_session_config_file else tf.compat.v1.ConfigProto())
    if args.per_process_gpu_memory_fraction:
      base.gpu_options.per_process_gpu_memory_fraction = args.per_process_gpu_memory_fraction
    return saved_model.session_config(
        base, args.tensorflow_intra_op_parallelism, args.tensorflow_inter_op_parallelism,
        args.num_load_threads or 1)

  def _read_credentials(self):
    if not self._args.ssl_config_file:
      return None
    config = config_files.read(self._args.ssl_config_file, messages.serving("SSLConfig"))
    if not config.server_key or not config.server_cert:
      raise errors.invalid("%s: server_key or server_cert is missing; both are PEM text",
                           self._args.ssl_config_file)
    return grpc.ssl_server_credentials(
        [(config.server_key.encode(), config.server_cert.encode())],
        config.custom_ca.encode() or None, config.client_verify)

  def _read_metrics_path(self):
    if not self._args.monitoring_config_file:
      return None
    config = config_files.read(self._args.monitoring_config_file,
                               messages.serving("MonitoringConfig")).prometheus_config
    return (config.path or "/monitoring/prometheus/metrics") if config.enable else None

  def _read_batching(self):
    if not self._args.enable_batching:
      return None
    return batching.Pool(_batching_parameters(self._args.batching_parameters_file))

  def _load(self, name, number, path):
    params, own = None, os.path.join(path, _BATCHING_FILE)
    if self._args.enable_per_model_batching_parameters and tf.io.gfile.exists(own):
      params = _batching_parameters(own)
    # Deltas need the package that writes them; other models may not.
    deltas = (importlib.import_module("embedding_variable_serving.models.deltas")
              if importlib.util.find_spec("embedding_variable") else None)
    identity = deltas.check_version(path, number) if deltas else None
    servable = saved_model.SavedModel(path, self._args.saved_model_tags.split(","),
                                      self._config,
                                      self._args.tensorflow_inter_op_parallelism == 1,
                                      self._kinds[name])
    try:
      if deltas and servable.has_deltas:
        servable.follower = deltas.Follower(name, number, path, identity, servable,
                                            self._metrics)
        servable.follower.update()
      servable.probe()
      if self._args.enable_model_warmup:
        warmup.run(path, number, servable, self._args.max_request_bytes)
    except BaseException:
      servable.close()
      raise
    # Without this, Python reads the objects of all graphs from time to time, and requests wait.
    gc.collect()
    gc.freeze()
    servable.start_serving()
    servable.ran = functools.partial(self._metrics.ran, name, number)
    if self._batches:
      servable = batching.Batched(servable, self._batches, params,
                                  functools.partial(self._metrics.batched, name, number))
    return recording.Recorded(servable, name, self.recorder) if self.recorder else servable

  def _start_grpc(self):
    args = self._args
    self._grpc = grpc_server.Server(args.grpc_max_threads, args.max_queued_requests,
                                    args.max_request_bytes, args.grpc_channel_arguments)
    grpc_tf_serving.PredictionService(
        self.manager, self._metrics, args.max_request_bytes,
        args.enable_serialization_as_tensor_content).add_to(self._grpc)
    grpc_tf_serving.ModelService(self.manager).add_to(self._grpc)
    grpc_v2.InferenceService(self.manager, self._metrics, self._ending.is_set).add_to(
        self._grpc)
    if args.enable_grpc_healthcheck_service:
      health.Health(self.manager, self._ending.is_set).add_to(self._grpc)
    self.grpc_port = self._grpc.listen("%s:%d" % (args.bind_address, args.port), self._credentials)
    if args.grpc_socket_path:
      self._grpc.listen("unix:" + args.grpc_socket_path)
    self._grpc.start()

  def _start_rest(self):
    args = self._args
    sock = rest_server.listen(args.bind_address, args.rest_api_port)
    self._rest = rest_server.Server(
        rest.Router(self.manager, self._metrics, self._metrics_path), sock,
        args.rest_api_num_threads, args.max_queued_requests, args.max_request_bytes,
        args.rest_api_timeout_in_ms)
    self.rest_port = self._rest.port

  def stop(self, seconds=30.0):
    """Ends the server: not ready, no new requests, those in flight end, sessions close."""
    self._ending.set()
    if self._rest is not None:
      self._rest.stop(seconds)
    if self._grpc is not None:
      self._grpc.stop(seconds)
    self.manager.close(seconds)
    if self._batches is not None:
      self._batches.close()


def main(argv=None):
  """Runs the server until SIGTERM or SIGINT, and ends the process; returns after an error."""
  args = flags.parse(argv)
  # A request changes threads a few times. While another thread builds the graph of a new version,
  # each change waits this long, in seconds, instead of Python's 5 ms.
  sys.setswitchinterval(0.0005)
  # TensorFlow 1.15 without TensorBoard logs while it is imported, and basicConfig has no effect
  # after that.
  del logging.getLogger().handlers[:]
  logging.basicConfig(level=logging.INFO, stream=sys.stderr,
                      format="%(asctime)s %(levelname)s %(message)s")
  for name in _OP_PACKAGES:
    if importlib.util.find_spec(name) is not None:
      importlib.import_module(name)
  # Not an Event: `set` would wait for ever if the signal interrupts `wait` while it has the lock.
  ended = []
  for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, unused: ended.append(number))
  try:
    server = ModelServer(args)
  except (OSError, errors.ServingError) as e:
    sys.stderr.write("error: %s\n" % e)
    return 1
  if server.recorder:
    signal.signal(signal.SIGUSR1, lambda *unused: server.recorder.start())
  logging.info("gRPC on %s:%d%s, process %d", args.bind_address, server.grpc_port,
               "" if server.rest_port is None else ", HTTP on port %d" % server.rest_port,
               os.getpid())
  # Not longer: another thread may get the signal, and Python calls the handler in this one.
  while not ended:
    time.sleep(0.2)
  logging.info("ending: waits at most %.0f s for the requests in flight", args.drain_seconds)
  # A load or a request that does not end must not keep the process alive.
  stopping = threading.Thread(target=server.stop, args=(args.drain_seconds,), daemon=True)
  stopping.start()
  stopping.join(args.drain_seconds + _STOP_SECONDS)
  if stopping.is_alive():
    logging.error("ended without waiting for a load or a request that still runs")
  else:
    logging.info("ended")
  sys.stdout.flush()
  logging.shutdown()
  # The interpreter's own teardown of TensorFlow and gRPC would take many seconds more.
  os._exit(0)  # pylint: disable=protected-access
