# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lookups whose rows stay on devices give the same bits as lookups through Horovod.

Every rank runs the same cases in the same order, with any number of ranks. With
SOK_UTEST_ON_GPU=1 the devices are GPUs, which have no counters to check.
"""

import os

from absl.testing import absltest
from absl.testing import parameterized
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

# These small models request few keys of a rank, but most calls have at least four.
os.environ.setdefault("TF_EV_GPU_DEDUP_MIN_IDS", "4")
_ON_GPU = bool(os.environ.get("SOK_UTEST_ON_GPU"))
if not _ON_GPU:
  import test_device  # pylint: disable=unused-import,g-import-not-at-top

from embedding_variable import _lib
from embedding_variable.variables import config_pb2
from sparse_operation_kit import experiment as sok
from sparse_operation_kit import settings

import distributed_model as model

_train = tf.compat.v1.train

_DRAM = config_pb2.StorageType.DRAM
_HBM = config_pb2.StorageType.HBM

_ADAGRAD = lambda: _train.AdagradOptimizer(.1)

_OPTIMIZERS = {
    "adagrad": _ADAGRAD,
    "adam": lambda: _train.AdamOptimizer(.01),
    # Takes one op for each variable.
    "adam_async": lambda: _train.AdamAsyncOptimizer(.01),
    "ftrl": lambda: _train.FtrlOptimizer(.1),
    # Keras transforms gradients before it applies them.
    "keras_adagrad": lambda: tf.keras.optimizers.Adagrad(.1),
    # Has its own code, which needs the sums as tensors.
    "proximal_adagrad": lambda: _train.ProximalAdagradOptimizer(.1),
}


def _tables():
  """Returns tables of mixed dims, combiners, input types and placements; one has no
  ids."""
  last = hvd.size() - 1
  return [
      model.Table(4, "sum", model.SPARSE, False, -1, 4),
      model.Table(16, "mean", model.RAGGED, False, last, 3),
      model.Table(3, "mean", model.SPARSE, False, [last, 0, 0], 5),
      model.Table(4, "sum", model.RAGGED, False, -1, 0),
      model.Table(8, "mean", model.RAGGED, False, -1, 6),
  ]


def _counts():
  """Returns the stand-in's counters of this process, as TestExchangeCounts lists them.

  None with GPUs.
  """
  if _ON_GPU:
    return None
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    return session.run(_lib.load().test_exchange_counts())


class DeviceExchangeTest(model.DistributedTestCase):

  def setUp(self):
    super().setUp()
    self.assertEqual(settings.exchange_carrier(), "nccl")

  def run_both(self, storages, make_optimizer=_ADAGRAD, clip=None, steps=4, parts=1):
    """Trains a model on devices and one through Horovod; expects the same bits.

    Args:
      storages: storages of the first model's tables; the second model's are in CPU memory.
      make_optimizer: callable.
      clip: None, or a function of a gradient's values.
      steps: int.
      parts: int, number of parts of the call between devices; each has as many tables.

    Returns:
      The increase of the counters of `_counts`.
    """
    tables = _tables() * parts
    storages = storages * parts
    rng = np.random.RandomState(11)
    initial = model.initial_rows(rng, tables)
    before = _counts()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      _train.create_global_step()
      models, trains = [], []
      for carrier, prefix in (("nccl", "by_device"), ("horovod", "by_horovod")):
        settings.set_exchange_carrier(carrier)
        made = model.Model(prefix, tables, sok.lookup_sparse, initial,
                           storages=storages if carrier == "nccl" else None)
        optimizer = make_optimizer()
        if clip is None:
          train = model.minimize(optimizer, made.loss, made.variables)
        else:
          gradients = tf.gradients(made.loss, made.variables)
          train = optimizer.apply_gradients([
              (tf.IndexedSlices(clip(g.values), g.indices), v)
              for g, v in zip(gradients, made.variables) if g is not None])
        models.append(made)
        trains.append(train)
      settings.set_exchange_carrier("nccl")
      session.run(tf.compat.v1.global_variables_initializer())
      for step in range(steps):
        batches = model.draw(rng, tables, model.sizes_of(step))[hvd.rank()]
        feed = model.merge(*[m.feed(batches) for m in models])
        by_device, by_horovod, _ = session.run(
            [models[0].outputs, models[1].outputs, trains], feed)
        for a, b in zip(by_device, by_horovod):
          self.assertEqual(a.tobytes(), b.tobytes())
      by_device, by_horovod = session.run([m.contents() for m in models])
      for (keys, columns), (other_keys, other_columns) in zip(by_device, by_horovod):
        order, other = np.argsort(keys), np.argsort(other_keys)
        np.testing.assert_array_equal(keys[order], other_keys[other])
        self.assertLen(columns, len(other_columns))
        for a, b in zip(columns, other_columns):
          self.assertEqual(a[order].tobytes(), b[other].tobytes())
    if _ON_GPU:
      return None
    counts = _counts()
    self.assertEqual(counts[3], 0)  # all memory has been freed
    self.assertEqual(counts[1] - before[1], steps * parts)
    return counts - before

  def expect_counts(self, counts, gathers, spreads):
    if _ON_GPU:
      return
    self.assertEqual(counts[0], 4 if gathers else 0)
    self.assertEqual(counts[2], spreads)
    # Tables with many ids, if there was memory.
    self.assertGreater(counts[6], 0)

  @parameterized.parameters(*sorted(_OPTIMIZERS))
  def test_same_bits(self, name):
    counts = self.run_both([_HBM] * 5, _OPTIMIZERS[name])
    # Gradients are summed on the device, or the sums are tensors.
    stays = name in ("adagrad", "adam", "ftrl")
    self.expect_counts(counts, gathers=True, spreads=4 if stays else 0)
    # Rank 0 owns keys of most tables; other ranks may own none of a batch.
    if not _ON_GPU and hvd.rank() == 0:
      self.assertGreater(counts[13], 0)
      # Keys are fetched only for sums that are tensors.
      self.assertEqual(counts[5] > 0, not stays)

  @parameterized.parameters("float16", "bfloat16")
  def test_same_bits_with_narrow_types(self, dtype):
    sok.init(exchange="nccl", exchange_dtype=dtype)
    self.addCleanup(sok.init, exchange="nccl")
    self.expect_counts(self.run_both([_HBM] * 5), gathers=True, spreads=4)

  def test_call_in_parts(self):
    for _ in range(2):
      counts = self.run_both([_HBM] * 5, parts=2)
      if not _ON_GPU:
        self.assertEqual(list(counts[:3]), [8, 8, 8])

  def test_tables_in_several_memories(self):
    # Rows come from CPU memory and are still pooled on the device.
    counts = self.run_both([_HBM, _DRAM, _HBM, _HBM, _DRAM])
    self.expect_counts(counts, gathers=False, spreads=0)

  def test_ranks_in_several_memories(self):
    counts = self.run_both([_HBM if hvd.rank() == 0 else _DRAM] * 5)
    self.expect_counts(counts, gathers=hvd.rank() == 0,
                       spreads=4 if hvd.rank() == 0 else 0)

  def test_changed_gradients(self):
    counts = self.run_both([_HBM] * 5, clip=lambda g: tf.clip_by_norm(g, .5, axes=[1]))
    self.expect_counts(counts, gathers=True, spreads=0)

  def test_frequencies(self):
    os.environ["TF_RECORD_FREQ"] = "1"
    self.addCleanup(os.environ.pop, "TF_RECORD_FREQ")
    counts = self.run_both([_HBM] * 5)
    if not _ON_GPU:
      # A key stands for several occurrences, which only a GPU step supports.
      self.assertEqual(counts[5], 0)
      self.assertGreater(sum(self.gather(counts[13])), 0)

  def test_weights_take_the_host_path(self):
    tables = model.mixed_tables(hvd.size())
    initial = model.initial_rows(np.random.RandomState(1), tables)
    before = _counts()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      made = model.Model("w", tables, sok.lookup_sparse, initial,
                         storages=[_HBM] * len(tables))
      session.run(tf.compat.v1.global_variables_initializer())
      batches = model.draw(np.random.RandomState(2), tables, model.sizes_of(0))
      session.run(made.outputs, made.feed(batches[hvd.rank()]))
    if not _ON_GPU:
      np.testing.assert_array_equal(_counts(), before)


if __name__ == "__main__":
  hvd.init()
  sok.init()
  # A rank that continued after a failure would wait for the others.
  absltest.main(failfast=True)
