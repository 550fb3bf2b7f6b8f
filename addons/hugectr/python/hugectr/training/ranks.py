# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The processes that train one model, one device each."""

import collections
import os
import sys

import numpy as np
import tensorflow.compat.v1 as tf

import sparse_operation_kit as sok

# rank, count: ints. hvd: Horovod's module, or None in a single process.
Ranks = collections.namedtuple("Ranks", ["rank", "count", "hvd"])

# Environment variables with the number of processes that a launcher started.
_SIZES = ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")

_warned = set()


def warn_once(what, sentence):
  """Logs a warning once per process."""
  if what not in _warned:
    _warned.add(what)
    tf.logging.warning(sentence)


def _was_launched():
  return any(os.environ.get(name, "").isdigit() and int(os.environ[name]) > 1
             for name in _SIZES)


def _command():
  """Returns the command that started this process, without "python"."""
  spec = getattr(sys.modules["__main__"], "__spec__", None)
  program = os.path.basename(sys.argv[0]) or "script.py"
  if spec is not None:
    program = "-m " + spec.name.replace(".__main__", "")
  return " ".join([program] + sys.argv[1:])


def _hosts(vvgpu):
  """Returns horovodrun's argument for several nodes; the user must fill in their names."""
  if len(vvgpu) == 1:
    return ""
  return " -H " + ",".join("HOST%d:%d" % (k, len(node)) for k, node in enumerate(vvgpu, 1))


def see_one_device(device):
  """Makes only one of the visible GPUs visible to this process.

  TensorFlow allocates memory on every visible GPU, and runs on the first. The
  environment variable has no effect once the driver is initialized in this process.

  Args:
    device: int, index among the visible GPUs.
  """
  seen = os.environ.get("CUDA_VISIBLE_DEVICES")
  if seen is None:
    os.environ["CUDA_VISIBLE_DEVICES"] = str(device)
  elif len(seen.split(",")) > max(1, device):
    os.environ["CUDA_VISIBLE_DEVICES"] = seen.split(",")[device].strip()
  # Otherwise a launcher has chosen a GPU, whatever its number.


def _count():
  """Returns the number of processes of this job."""
  hvd = sys.modules.get("horovod.tensorflow")
  if _was_launched():
    import horovod.tensorflow as hvd  # pylint: disable=g-import-not-at-top
    # No-op if the script has called it.
    hvd.init()
  return hvd.size() if hvd is not None and hvd.is_initialized() else 1


def one_replica(vvgpu):
  """Returns the devices of a job; one process trains as a replica for all devices of a node.

  Args:
    vvgpu: list of lists of device numbers.
  """
  return [vvgpu[0][:1]] if _count() == 1 and len(vvgpu) == 1 else vvgpu


def start(vvgpu):
  """Prepares this process's part of a job; returns Ranks.

  Args:
    vvgpu: list of lists of device numbers, one per rank.

  Raises:
    RuntimeError: another number of processes was started; the text has the command to
      use.
  """
  devices = sum(len(node) for node in vvgpu)
  count = _count()
  hvd = sys.modules.get("horovod.tensorflow")
  if count != devices:
    raise RuntimeError(
        "hugectr.Session: vvgpu names %d device%s, but %d process%s running: one process "
        "trains on one device. Start it with: horovodrun -np %d%s python %s" %
        (devices, "" if devices == 1 else "s", count, " is" if count == 1 else "es are",
         devices, _hosts(vvgpu), _command()))
  see_one_device([d for node in vvgpu for d in node][hvd.rank() if count > 1 else 0])
  sok.init()
  return Ranks(hvd.rank() if count > 1 else 0, count, hvd if count > 1 else None)


def has_gpu(session):
  """Returns whether TensorFlow has a GPU.

  Args:
    session: `tf.Session`, whose devices are listed. Querying TensorFlow without a
      session would allocate GPU memory.
  """
  return any(d.device_type == "GPU" for d in session.list_devices())


def log_devices(session, solver):
  """Logs once if dense layers do not run on a GPU, and in which precision they run.

  Args:
    session: `tf.Session`.
    solver: SolverParser.

  Returns:
    Whether TensorFlow has a GPU.
  """
  found = has_gpu(session)
  if not found:
    warn_once("cpu", "hugectr.Session: TensorFlow has no GPU in this process, so layers run on "
              "the CPU, although vvgpu=%r" % (solver.vvgpu,))
    if solver.use_mixed_precision:
      warn_once("float16", "hugectr.Session: use_mixed_precision: layers run in float32, "
                "since float16 needs a GPU in TensorFlow")
  return found


def summed(ranks, array):
  """Returns the sum of an array over ranks; all ranks must call it."""
  if ranks.count == 1:
    return array
  with tf.Graph().as_default(), tf.Session() as session:
    mine = tf.placeholder(tf.float64)
    return session.run(ranks.hvd.allreduce(mine, name="hugectr_sum", op=ranks.hvd.Sum),
                       {mine: array})


def of_rank_0(ranks, number):
  """Returns rank 0's number, an int below 2^53; all ranks must call it."""
  return int(summed(ranks, np.array([number if ranks.rank == 0 else 0]))[0])


def gathered(ranks, arrays):
  """Returns arrays with the rows of all ranks; all ranks must call it.

  Args:
    ranks: Ranks.
    arrays: list of arrays of at least one axis.
  """
  if ranks.count == 1:
    return arrays
  arrays = [np.asarray(a) for a in arrays]
  with tf.Graph().as_default(), tf.Session() as session:
    # TensorFlow would run a collective of constants when it optimizes the graph: one after
    # the other, in an order that differs from rank to rank, so all ranks would wait forever.
    mine = [tf.placeholder(a.dtype, a.shape) for a in arrays]
    return session.run(
        [ranks.hvd.allgather(tensor, name="hugectr_gather_%d" % k)
         for k, tensor in enumerate(mine)], dict(zip(mine, arrays)))
