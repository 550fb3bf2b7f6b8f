# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Places a program's tables on TensorFlow's GPU, and everything else on the CPU.

With it, a conformance suite for tables in CPU memory also tests tables on a GPU. The
reference of the suite (stock TensorFlow on the CPU or a model in Python) is unchanged, so
its comparisons still hold, to the bit where the suite demands that.

`place` changes how this process builds graphs. Call it once, before the suite is
imported. From then on, for every graph of the process:

* A table's handle is on the device, unless the program gives it a device type.
* An op that takes a handle has no explicit device: TensorFlow places it with the table,
  and fails if it cannot.
* All other ops, including initializers of default rows, are on the CPU, unless the
  program or the package gives them a device type.
* If a test device stands in for a GPU, stock ops that are placed on it run on the CPU,
  because they have no kernels for it.
* A table in CPU memory, or without an explicit memory, gets the requested storage.
"""

import collections
import os
import tempfile

import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.client import session as session_lib
from tensorflow.python.framework import ops

# Environment variables that configure a program and the programs that it starts.
DEVICE = "EV_TEST_DEVICE"        # "/gpu:0"
STORAGE = "EV_TEST_STORAGE"      # one of STORAGES
LIBRARY = "EV_TEST_LIBRARY"      # path of an op library to load instead of the package's

# "per_table": each table has the storage that the program gives it. "own": the same, and the
# program places everything itself.
STORAGES = ("hbm", "hbm_dram", "hbm_dram_ssd", "per_table", "own")

# Rows of an "hbm_dram" or "hbm_dram_ssd" table that fit in GPU memory, without slots, and
# rows that fit in CPU memory above a file. The numbers are small, so that rows move between
# the memories in every suite.
ROWS_ON_GPU = 64
ROWS_ABOVE_FILE = 20

_CPU = "/device:CPU:0"
_HANDLE = "EvHandle"
_OURS = ("Ev", "Sok")

# Number of handles on the device so far, placed by `place` or by the program.
placed = 0


def use_library(path):
  """Makes the package load the op library at `path`. Call it before the import."""
  load = tf.load_op_library
  tf.load_op_library = lambda unused_path: load(path)


def place(device, storage, soft=False):
  """Places the tables of all graphs that are built after this call.

  Args:
    device: string such as "/gpu:0".
    storage: one of STORAGES.
    soft: bool, whether ops without a kernel for the device may run on the CPU.
  """
  if storage not in STORAGES:
    raise ValueError("%s: expected one of %s, got %r" %
                     (STORAGE, ", ".join(STORAGES), storage))
  device = tf.DeviceSpec.from_string(device)
  _place_ops(tf.DeviceSpec(device_type=device.device_type,
                           device_index=device.device_index).to_string(),
             by_itself=storage == "own")
  _configure_sessions(soft)
  if storage not in ("per_table", "own"):
    _store_rows(storage)


def _has_type(device):
  return bool(tf.DeviceSpec.from_string(device).device_type)


def _with(device, other):
  """Returns `device` with the type and number of `other`."""
  return tf.DeviceSpec.from_string(device).make_merged_spec(
      tf.DeviceSpec.from_string(other)).to_string()


def _resource_inputs(op):
  return [t for t in op.inputs if t.dtype.base_dtype == tf.resource]


def _place_ops(device, by_itself):
  # pylint: disable=protected-access
  create = ops.Graph._create_op_helper

  def create_and_place(graph, op, *args, **kwargs):
    global placed
    create(graph, op, *args, **kwargs)
    if op.type == _HANDLE:
      if not _has_type(op.device) and not by_itself:
        op._set_device(_with(op.device, device))
      placed += (tf.DeviceSpec.from_string(op.device).device_type ==
                 tf.DeviceSpec.from_string(device).device_type)
    elif op.type.startswith(_OURS) or by_itself:
      pass
    else:
      if "_class" in op.node_def.attr:
        op._set_attr("_class", attr_value_pb2.AttrValue(
            list=attr_value_pb2.AttrValue.ListValue(
                s=[("loc:@" + op.name).encode("utf-8")])))
      resources = _resource_inputs(op)
      if resources:  # an op that forwards a handle is on the handle's device
        op._set_device(resources[0].op.device)
      elif not _has_type(op.device) or list(
          graph._colocation_stack.peek_objs()):
        op._set_device(_with(op.device, _CPU))

  ops.Graph._create_op_helper = create_and_place


def _configure_sessions(soft):
  """Makes TensorFlow leave GPU memory to rows and to concurrent suites."""
  init = session_lib.BaseSession.__init__

  def configure_and_init(session, target="", graph=None, config=None):
    configured = tf.ConfigProto()
    if config is not None:
      configured.CopyFrom(config)
    configured.gpu_options.allow_growth = True
    configured.allow_soft_placement |= soft
    init(session, target, graph, configured)

  session_lib.BaseSession.__init__ = configure_and_init


def _store_rows(storage):
  from embedding_variable.ops import handle_ops  # pylint: disable=g-import-not-at-top
  handle = handle_ops.handle
  paths = collections.defaultdict(
      lambda: tempfile.mkdtemp(prefix="rows-", dir=os.environ.get("TEST_TMPDIR")))

  def handle_of_rows(shared_name, dim, *args, **kwargs):
    if not args and kwargs.get("storage", "dram") == "dram":
      kwargs["storage"] = storage
      if storage != "hbm":
        kwargs["memory_bytes"] = ROWS_ON_GPU * 4 * dim
      if storage == "hbm_dram_ssd":
        kwargs["second_memory_bytes"] = ROWS_ABOVE_FILE * (4 * dim + 20)
        # Handles of one name have one path.
        kwargs["storage_path"] = paths[shared_name]
    return handle(shared_name, dim, *args, **kwargs)

  handle_ops.handle = handle_of_rows


def from_environment():
  """Applies the environment variables; does nothing without EV_TEST_DEVICE."""
  library = os.environ.get(LIBRARY)
  if library:
    use_library(library)
  device = os.environ.get(DEVICE)
  if device:
    place(device, os.environ.get(STORAGE, "hbm"), soft=bool(library))
