# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A rank of a job that uses DeepRec's stand-ins over Horovod's ranks.

SOK_EXCHANGE selects the transport of lookups. With "nccl" the tables of micro batches are
in GPU memory. With SOK_UTEST_ON_GPU=1 the ranks use real GPUs, one each.

  deeprec_job.py FOLDER [DEVICE]

With a DEVICE, such as /gpu:0, it checks micro batches alone; their tables and layers are
on it.

Prints "done" if all checks hold.
"""

import os
import sys

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

_ON_GPU = bool(os.environ.get("SOK_UTEST_ON_GPU"))
if _ON_GPU:
  # One GPU per process, set before TensorFlow looks for GPUs.
  os.environ.setdefault("CUDA_VISIBLE_DEVICES", os.environ["HOROVOD_LOCAL_RANK"])

from embedding_variable import _lib
from embedding_variable.deeprec import activation
from embedding_variable.lookup import group
from embedding_variable.variables import config_pb2
import sparse_operation_kit as sok
from sparse_operation_kit import settings


_TYPES = config_pb2.StorageType


def check(name, found, expected):
  # A GPU adds in another order for another number of samples.
  np.testing.assert_allclose(found, expected, rtol=2e-4 if _ON_GPU else 1e-5,
                             err_msg=name)


def _gathered(values):
  """Returns the lists of all ranks."""
  with tf.Graph().as_default(), tf.Session() as session:
    return hvd.allgather_object(values, session=session)


def work_queues(folder):
  """Each work is handed to one rank, and rank 0's checkpoint has those of all ranks."""
  works = ["w%d" % i for i in range(12)]
  with tf.Graph().as_default(), tf.Session() as session:
    from tensorflow.python.ops.work_queue import WorkQueue  # pylint: disable=g-import-not-at-top
    queue = WorkQueue(works, seed=3, held=1)
    work, size, saver = queue.take(), queue.size(), tf.train.Saver()
    session.run(queue.initializer)
    taken = _gathered([session.run(work).decode() for _ in range(3)])
    assert len(set(sum(taken, []))) == 6, taken
    assert session.run(size) == 6
    path = os.path.join(folder, "queue")
    if hvd.rank() == 0:
      saver.save(session, path)
      left = tf.train.load_checkpoint(path).get_tensor("work_queue_works")
      # The last work of each rank is unfinished.
      expected = (set(works) - set(sum(taken, []))) | {t[-1] for t in taken}
      assert set(w.decode() for w in left) == expected, left
    _gathered(None)
    rest = []
    try:
      while True:
        rest.append(session.run(work).decode())
    except tf.errors.OutOfRangeError:
      pass
    rest = _gathered(rest)
    assert sorted(sum(taken + rest, [])) == sorted(works), rest
    saver.restore(session, path)
    _gathered(None)
    assert session.run(size) == 8
    _gathered(None)
    session.run(work)
    _gathered(None)
    assert session.run(size) == 8 - hvd.size()


def group_lookups():
  """Lookups go over the ranks, with weights and a combiner for each table."""
  rank, size = hvd.rank(), hvd.size()
  with tf.Graph().as_default(), tf.Session() as session:
    a = tf.get_embedding_variable("a", 2, initializer=tf.ones_initializer())
    b = tf.get_embedding_variable("b", 2, initializer=tf.ones_initializer())
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]], tf.constant([1, 2, 3 + rank],
                                                                tf.int64), [2, 2])
    weights = tf.SparseTensor(ids.indices, tf.constant([1., 3., 5.]), [2, 2])
    outputs = tf.nn.group_embedding_lookup_sparse(
        [a, b], [ids, ids], ["sum", "mean"], [weights, weights])
    assert [op.type for op in tf.get_default_graph().get_operations()].count("SokRoute")
    loss = tf.reduce_sum(outputs[0]) + tf.reduce_sum(outputs[1])
    train = tf.train.GradientDescentOptimizer(.1).minimize(loss)
    session.run(tf.global_variables_initializer())
    found = session.run(outputs)
    check("sum", found[0], [[4, 4], [5, 5]])
    check("mean", found[1], [[1, 1], [1, 1]])
    session.run(train)
    # Both ranks have ids 1 and 2, with weights 1 and 3; each has an id of its own.
    first, second = 1 - .1 * size, 1 - .3 * size
    found = session.run(outputs)
    check("sum", found[0], [[first + 3 * second] * 2, [5 * .5] * 2])
    rows = _gathered(session.run(a.export()[0]).tolist())
    assert sorted(sum(rows, [])) == [1, 2] + [3 + r for r in range(size)], rows


def group_columns():
  """Columns of a group go over the ranks, also a single one."""
  fc = tf.feature_column
  for count in (1, 2):
    with tf.Graph().as_default(), tf.Session() as session:
      with fc.group_embedding_column_scope():
        columns = [fc.embedding_column(
            fc.categorical_column_with_embedding("c%d" % i, dtype=tf.int64), 2,
            initializer=tf.ones_initializer()) for i in range(count)]
      features = {"c%d" % i: tf.constant([[5], [6]], tf.int64) for i in range(count)}
      net = fc.input_layer(features, columns)
      assert [op.type for op in tf.get_default_graph().get_operations()].count(
          "SokRoute") == 1
      session.run(tf.global_variables_initializer())
      check("columns", session.run(net), np.ones([2, 2 * count]))


def _trained(data, table_name, optimizer, device, owner=-1):
  """Returns this rank's rows and the dense weights after steps of two batches.

  The rank `owner` has all rows; -1: they are spread over the ranks.
  """
  with tf.Graph().as_default():
    batch = tf.data.make_one_shot_iterator(
        tf.data.Dataset.from_tensor_slices(data)).get_next()
    count = tf.size(batch["keys"], out_type=tf.int64)
    ids = tf.SparseTensor(tf.stack([tf.range(count), tf.zeros_like(batch["keys"])], 1),
                          batch["keys"], [count, 1])
    in_gpu_memory = settings.exchange_carrier() == "nccl"
    with tf.device(device):
      table = tf.get_embedding_variable(
          table_name, 3, initializer=tf.constant_initializer(.1),
          ev_option=tf.EmbeddingVariableOption(storage_option=tf.StorageOption(
              storage_type=_TYPES.HBM if in_gpu_memory else _TYPES.DRAM)))
      table.target_gpu = owner
      (rows,) = tf.nn.group_embedding_lookup_sparse([table], [ids], ["sum"])
      logits = tf.layers.dense(rows, 1, kernel_initializer=tf.ones_initializer())
      loss = tf.reduce_mean(tf.square(tf.squeeze(logits, 1) - batch["labels"]))
    train, init = optimizer.minimize(loss), tf.global_variables_initializer()
    exported = table.export()[:2]
    config = tf.ConfigProto(allow_soft_placement=True)
    config.gpu_options.allow_growth = True
    config.graph_options.optimizer_options.micro_batch_num = 2
    with tf.Session(config=config) as session:
      session.run(init)
      for _ in range(4):
        session.run(train)
      keys, values = session.run(exported)
      weights = session.run(tf.trainable_variables("dense"))
  return dict(zip(keys.tolist(), values.tolist())), weights


def _exchanges_out_of_device_memory():
  """Returns their number in this process; the stand-in for NCCL counts them."""
  with tf.Graph().as_default(), tf.Session() as session:
    return session.run(_lib.load().test_exchange_counts())[0]


def micro_batches(device):
  """Several batches of all ranks in a step, as in one process with merged batches."""
  numbers = np.random.RandomState(5)
  data = {"keys": numbers.randint(0, 9, [8, 6]),
          "labels": numbers.rand(8, 6).astype(np.float32)}
  over_ranks = group.set_lookup(None)
  expected, dense = _trained(data, "merged", tf.train.AdagradOptimizer(.1), device)
  group.set_lookup(over_ranks)
  own = {k: v[:, hvd.rank()::hvd.size()] for k, v in data.items()}
  for name, owner in (("spread", -1), ("on_one_rank", 1)):
    rows, weights = _trained(
        own, name, sok.DistributedOptimizer(tf.train.AdagradOptimizer(.1)), device,
        owner)
    for found, wanted in zip(weights, dense):
      check("dense", found, wanted)
    parts = _gathered(rows)
    assert sum(map(len, parts)) == len(expected), parts
    owners = [rank for rank, part in enumerate(parts) if part]
    assert owners == ([owner] if owner >= 0 else list(range(hvd.size()))), parts
    for part in parts:
      for key, row in part.items():
        check("row %d" % key, row, expected[key])
  if settings.exchange_carrier() == "nccl" and not _ON_GPU:
    assert _exchanges_out_of_device_memory() > 0


def main(folder, device=None):
  activation.activate("1.15.5+deeprec2402", is_quiet=True, share_work=True)
  tf.config.experimental.enable_distributed_strategy("collective")
  assert hvd.size() > 1
  assert settings.exchange_carrier() == os.environ["SOK_EXCHANGE"]
  if device is None:
    work_queues(folder)
    group_lookups()
    group_columns()
  micro_batches(device)
  print("done")


if __name__ == "__main__":
  main(*sys.argv[1:])
