# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DeepRec's fields of `tf.ConfigProto` and its parts, on stock protocol buffers.

A field's value is an unknown field of the message, with a number that only this module
uses. So it is copied, merged and serialized with the message, and stock TensorFlow
ignores it.
"""

import collections

from google.protobuf.internal import encoder

from embedding_variable.tf_names import config_pb2
from embedding_variable.tf_names import rewriter_config_pb2

# One field.
#   owner: message class.
#   name: string.
#   number: int, of the unknown field.
#   has_parts: bool; True: a message of DeepRec, whose values are ignored.
#   why: string, the reason why the field has no effect; None: it has one.
Field = collections.namedtuple("Field", ["owner", "name", "number", "has_parts", "why"])

_SPEED = "it changes speed alone in DeepRec"
_EXECUTOR = "stock TensorFlow has one executor"
_STREAMS = "stock TensorFlow uses one stream"

_OPTIMIZER_FIELDS = (
    ("do_smart_stage", False,
     "tf.staged stages what it is given; DeepRec moves more ops into the stage, with the "
     "same results"),
    ("do_smart_stage_gpu", False, "as do_smart_stage"),
    ("do_op_fusion", False, "a lookup of embedding variables is one op anyway"),
    ("micro_batch_num", False, None),
    ("stage_subgraph_on_cpu", False, "as do_smart_stage"),
    ("smart_stage_options", True, "as do_smart_stage"),
    ("do_async_embedding", False, "lookups are never stale"),
    ("async_embedding_options", True, "lookups are never stale"),
    ("embedding_layer_device_placement_optimization", False, _SPEED),
    ("device_placement_optimization", False, _SPEED),
    ("stage_multi_stream", False, _STREAMS),
)

_CONFIG_FIELDS = (
    ("executor_policy", False, _EXECUTOR),
    ("tensor_fuse", False, _SPEED),
    ("run_graph_mode", False, _EXECUTOR),
    ("run_graph_mode_lite", False, _EXECUTOR),
    ("use_per_session_stream", False, _STREAMS),
    ("per_session_devices", True, _STREAMS),
    ("cuda_graph_mode_options", True, "stock TensorFlow has no CUDA graphs"),
    ("session_stage_subgraph_thread_pool", True, "stages run on threads of their own"),
)

_GPU_FIELDS = (
    ("cuda_graph_mode_compatible", False, "stock TensorFlow has no CUDA graphs"),
    ("cuda_graph_enable_jit", False, "stock TensorFlow has no CUDA graphs"),
)

_REWRITER_FIELDS = (
    ("use_multi_stream", False, _STREAMS),
    ("multi_stream_opts", True, _STREAMS),
)

# Numbers of the first field of each message; no version of TensorFlow uses them.
_FIRST_NUMBER = 60001

TABLE = tuple(
    Field(owner, name, _FIRST_NUMBER + i, has_parts, why)
    for owner, fields in ((config_pb2.OptimizerOptions, _OPTIMIZER_FIELDS),
                          (config_pb2.ConfigProto, _CONFIG_FIELDS),
                          (config_pb2.GPUOptions, _GPU_FIELDS),
                          (rewriter_config_pb2.RewriterConfig, _REWRITER_FIELDS))
    for i, (name, has_parts, why) in enumerate(fields))

# The fields whose values are numbers; the others are bools.
NUMBERS = ("micro_batch_num", "executor_policy")

BY_NAME = {field.name: field for field in TABLE}


class Ignored(object):
  """A message of DeepRec's whose fields can be set and are not used."""

  def __getattr__(self, name):
    if name.startswith("__"):
      raise AttributeError(name)
    return Ignored()

  def __call__(self, *args, **kwargs):
    return Ignored()


def read(message, field):
  """Returns the int value of a field; 0 if it is not set."""
  value = 0
  for unknown in message.UnknownFields():
    if unknown.field_number == field.number:
      value = unknown.data
  return value


def write(message, field, value):
  """Sets a field to an int or a bool of at least 0."""
  value = int(value)
  if value < 0:
    raise ValueError("%s.%s: expected at least 0, got %d" %
                     (type(message).__name__, field.name, value))
  # Parsers use the last of several values.
  message.MergeFromString(encoder.TagBytes(field.number, 0) + encoder._VarintBytes(value))  # pylint: disable=protected-access


def micro_batches_of(config):
  """Returns the number of micro batches of a ConfigProto or None; at least 1."""
  if config is None:
    return 1
  return max(1, read(config.graph_options.optimizer_options,
                     BY_NAME["micro_batch_num"]))
