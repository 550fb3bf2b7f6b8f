# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A model that ranks train together, and one process on the merged batches.

Every rank draws the batches of all ranks from one seed. The model over ranks looks up its
own rank's batch by `sok.lookup_sparse`; the reference looks up the merged batch without
any exchange. Flags say where the tables of the model over ranks are; those of the
reference are in CPU memory.
"""

from absl import flags
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

import embedding_variable
from embedding_variable.ops import checkpoint_ops
from embedding_variable.variables import config_pb2

FLAGS = flags.FLAGS
flags.DEFINE_enum("storage", "dram", ["dram", "hbm"], "Storage of the rows.")
flags.DEFINE_string("device", "/cpu:0", "TensorFlow device of the tables.")

DIMS = (4, 3, 5)
COMBINERS = ("sum", "mean", "max")
# Combiners whose gradients do not read rows. Without weights, rows and gradients of such
# lookups stay in GPU memory when ranks exchange by NCCL.
SUMMING = ("sum", "mean", "sum")

# Sums over ranks have another order than sums over one batch.
RTOL = 2e-5
ATOL = 2e-6


def rows(seed, dim):
  """Returns an initializer of rows that are the same on all ranks."""
  table = np.random.RandomState(seed).uniform(.5, 1., [16, dim]).astype(np.float32)

  def initializer(shape, dtype=tf.float32, **unused_kwargs):
    return tf.constant(np.resize(table, shape), dtype)

  return initializer


def size_of(rank, step):
  """Returns the number of samples of a rank; one rank's batch is empty, in rotation."""
  return 0 if hvd.size() > 1 and (rank + step) % (hvd.size() + 1) == 0 else 4 + 2 * rank


class Batch(object):
  """The samples of one rank, or those of all.

  Attributes:
    ids: RaggedTensor `[B, ids]` of int64.
    weights: RaggedTensor `[B, ids]` of float32.
    labels: float32 `[B]`.
  """

  def __init__(self, parts):
    self._parts = parts
    lengths = np.concatenate([p[0] for p in parts])
    self.ids = tf.RaggedTensor.from_row_lengths(
        np.concatenate([p[1] for p in parts]), lengths)
    self.weights = tf.RaggedTensor.from_row_lengths(
        np.concatenate([p[2] for p in parts]), lengths)
    self.labels = tf.constant(np.concatenate([p[3] for p in parts]))

  @property
  def tensors(self):
    return self.ids, self.weights, self.labels


def _draw(rng, size):
  lengths = rng.randint(0, 4, size).astype(np.int64)
  ids = rng.randint(0, 20, lengths.sum()).astype(np.int64)
  ids = np.where(ids % 5 == 0, ids * 2 ** 40 - 3, ids)
  return (lengths, ids, rng.uniform(.5, 2., len(ids)).astype(np.float32),
          rng.uniform(0, 1, size).astype(np.float32))


def batches(steps, seed=1):
  """Returns a list of (this rank's Batch, the merged Batch)."""
  rng = np.random.RandomState(seed)
  result = []
  for step in range(steps):
    parts = [_draw(rng, size_of(rank, step)) for rank in range(hvd.size())]
    result.append((Batch([parts[hvd.rank()]]), Batch(parts)))
  return result


class Model(tf.Module):
  """Tables and a dense variable.

  Args:
    lookup: `sok.lookup_sparse`, or `local` for the reference.
    placements: list of target_gpu, one per table.
    weighted: bool; False looks up without weights, by the combiners SUMMING.
  """

  def __init__(self, lookup, placements=(-1, -1, -1), weighted=True):
    super(Model, self).__init__()
    self._lookup = lookup
    self._weighted = weighted
    is_reference = lookup is local
    option = embedding_variable.EmbeddingVariableOption(
        storage_option=embedding_variable.StorageOption(
            storage_type=config_pb2.StorageType.Value(
                "DRAM" if is_reference else FLAGS.storage.upper())))
    self.tables = []
    for i, (dim, placement) in enumerate(zip(DIMS, placements)):
      with tf.device("/cpu:0" if is_reference else FLAGS.device):
        table = tf.compat.v1.get_embedding_variable(
            "table_%d" % i, dim, initializer=rows(i, dim), ev_option=option)
      table.target_gpu = placement
      self.tables.append(table)
    self.weight = tf.Variable(np.linspace(-1, 1, sum(DIMS), dtype=np.float32)[:, None])

  def all_variables(self):
    return self.tables + [self.weight]

  def losses(self, ids, weights, labels):
    """Returns `[B]`, not linear in the rows."""
    outputs = self._lookup(
        self.tables, [ids] * len(DIMS), [weights if self._weighted else None, None, None],
        list(COMBINERS if self._weighted else SUMMING))
    logits = tf.matmul(tf.concat(outputs, 1), self.weight)[:, 0]
    return tf.square(tf.tanh(logits) - labels)


def local(*args):
  """The lookup of one process, regardless of the number of ranks."""
  return embedding_variable.lookup_sparse(*args, no_nan=True)


def sum_over_ranks(value):
  """Returns the sum of a scalar over ranks."""
  return hvd.allreduce(value, op=hvd.Sum)


def gathered(array):
  """Returns the arrays of all ranks, concatenated."""
  return hvd.allgather(tf.constant(array)).numpy()


def contents(table, spread):
  """Returns (keys ascending, [values, slot values, ...]) of a table of all ranks."""
  exported = checkpoint_ops.export_table(table.handle, list(table.slot_columns))
  keys = exported.keys.numpy()
  columns = [c.numpy() for c in [exported.values] + exported.slots]
  if spread:
    owners = table.target_gpu
    owners = list(range(hvd.size())) if owners == -1 else (
        owners if isinstance(owners, list) else [owners])
    for key in keys.tolist():
      assert owners[key % len(owners)] == hvd.rank(), (key, hvd.rank())
    keys, columns = gathered(keys), [gathered(c) for c in columns]
  order = np.argsort(keys)
  return keys[order], [c[order] for c in columns]


def compare(table, whole):
  """Checks that a table over ranks has the rows and slots of one in one process."""
  keys, columns = contents(table, hvd.size() > 1)
  expected_keys, expected = contents(whole, False)
  np.testing.assert_array_equal(keys, expected_keys)
  assert len(columns) == len(expected) and len(keys), (len(columns), len(expected))
  for column, other in zip(columns, expected):
    np.testing.assert_allclose(column, other, rtol=RTOL, atol=ATOL)
