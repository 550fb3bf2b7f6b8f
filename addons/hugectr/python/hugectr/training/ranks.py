# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The processes that train one model, one device each."""

import collections
import os
import sys

import numpy as np
import tensorflow as tf

import sparse_operation_kit as sok

# rank, count: ints. hvd: Horovod's module, or None in a single process.
Ranks = collections.namedtuple("Ranks", ["rank", "count", "hvd"])

# In which launchers say how many processes they started.
_SIZES = ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")

_said = set()


def say_once(what, sentence):
  """Logs a sentence as a warning, once per process."""
  if what not in _said:
    _said.add(what)
    tf.compat.v1.logging.warning(sentence)


def _was_launched():
  return any(os.environ.get(name, "").isdigit() and int(os.environ[name]) > 1
             for name in _SIZES)


def _command():
  """Returns how this process was started, after "python"."""
  spec = getattr(sys.modules["__main__"], "__spec__", None)
  program = os.path.basename(sys.argv[0]) or "script.py"
  if spec is not None:
    program = "-m " + spec.name.replace(".__main__", "")
  return " ".join([program] + sys.argv[1:])


def start(vvgpu):
  """Prepares this process's part of a job; returns Ranks.

  Args:
    vvgpu: list of lists of device numbers. Their number is that of the ranks.

  Raises:
    RuntimeError: another number of processes was started; the text has the command.
  """
  devices = sum(len(node) for node in vvgpu)
  hvd = sys.modules.get("horovod.tensorflow")
  if _was_launched():
    import horovod.tensorflow as hvd  # pylint: disable=g-import-not-at-top
    # Does nothing if the script has called it.
    hvd.init()
  count = hvd.size() if hvd is not None and hvd.is_initialized() else 1
  if count != devices:
    raise RuntimeError(
        "hugectr.Session: vvgpu names %d device%s and %d process%s running: one process "
        "trains on one device. Start it with: horovodrun -np %d python %s" %
        (devices, "" if devices == 1 else "s", count, " is" if count == 1 else "es are",
         devices, _command()))
  sok.init()
  return Ranks(hvd.rank() if count > 1 else 0, count, hvd if count > 1 else None)


def say_devices(session, vvgpu):
  """Says once where dense layers run, if that is not on a GPU.

  Args:
    session: `tf.Session`, whose devices are looked at: asking TensorFlow without one would
      take a GPU's memory.
    vvgpu: list of lists of device numbers.
  """
  if not any(d.device_type == "GPU" for d in session.list_devices()):
    say_once("cpu", "hugectr.Session: TensorFlow has no GPU here: layers run on the CPU, "
             "for vvgpu=%r" % (vvgpu,))


def summed(ranks, array):
  """Returns the sum of an array over ranks; all ranks call it."""
  if ranks.count == 1:
    return array
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    return session.run(ranks.hvd.allreduce(
        tf.constant(array, tf.float64), name="hugectr_sum", op=ranks.hvd.Sum))


def gathered(ranks, arrays):
  """Returns arrays, each with the rows of all ranks; all ranks call it.

  Args:
    ranks: Ranks.
    arrays: list of arrays of at least one axis.
  """
  if ranks.count == 1:
    return arrays
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    return session.run([
        ranks.hvd.allgather(tf.constant(np.asarray(a)), name="hugectr_gather_%d" % k)
        for k, a in enumerate(arrays)])
