# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The models of the multi-rank tests: random batches for every rank, and two models.

Every rank draws the batches of all ranks from one seed. The model under test looks up
its own rank's batch by sok.lookup_sparse. The reference, built on each rank, looks up
the merged batch without any exchange.
"""

import collections

from absl import flags
from absl.testing import parameterized
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

import embedding_variable
from embedding_variable.ops import checkpoint_ops
from embedding_variable.variables import config_pb2
from sparse_operation_kit import experiment as sok

FLAGS = flags.FLAGS
flags.DEFINE_enum(
    "storage", "dram", ["dram", "hbm", "mixed"],
    "Memory of the rows of the tables under test: host, GPU, or alternating between both, "
    "in a different order on each rank.")

ROWS = 19
STEPS = 3

# Sums over ranks have another order than sums over one batch.
RTOL = 2e-5
ATOL = 2e-6

SPARSE = "sparse"
RAGGED = "ragged"

# target_gpu: -1, a rank, or a list of ranks. max_hotness 0: never used.
Table = collections.namedtuple(
    "Table", ["dim", "combiner", "kind", "weighted", "target_gpu", "max_hotness"])


def mixed_tables(num_ranks):
  """Returns tables of mixed dims, combiners, forms and placements; the fourth is unused."""
  last = num_ranks - 1
  return [
      Table(3, "sum", SPARSE, False, -1, 4),
      Table(16, "mean", RAGGED, False, last, 3),
      Table(7, "mean", SPARSE, True, [last, 0, 0], 5),
      Table(4, "sum", RAGGED, False, -1, 0),
      Table(33, "sum", RAGGED, True, 0, 2),
  ]


def key_of(row):
  """Returns the key with default row `row`; keys are far apart, and some are negative."""
  return row + ROWS * ((row * 7919 - 60000) * 10 ** 12)


class Batch(object):
  """Random ids and weights of one table."""

  def __init__(self, rng, table, size, all_rows=False):
    lengths = rng.randint(0, table.max_hotness + 1, size)
    if all_rows and size and table.max_hotness:
      lengths[0] = ROWS
    self.size = size
    self.splits = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    self.rows = rng.randint(0, ROWS, self.splits[-1])
    if all_rows and size and table.max_hotness:
      self.rows[:ROWS] = np.arange(ROWS)
    self.weights = rng.uniform(.5, 2., len(self.rows)).astype(np.float32)

  @staticmethod
  def merge(batches):
    """Returns one batch with the samples of all batches, in order."""
    merged = Batch.__new__(Batch)
    merged.size = sum(b.size for b in batches)
    merged.rows = np.concatenate([b.rows for b in batches])
    merged.weights = np.concatenate([b.weights for b in batches])
    offsets = np.cumsum([0] + [len(b.rows) for b in batches])
    merged.splits = np.concatenate(
        [[0]] + [b.splits[1:] + o for b, o in zip(batches, offsets)])
    return merged

  def value(self, kind, values):
    if kind == RAGGED:
      return tf.compat.v1.ragged.RaggedTensorValue(values, self.splits)
    lengths = np.diff(self.splits)
    samples = np.repeat(np.arange(self.size), lengths)
    places = np.arange(len(self.rows)) - self.splits[:-1][samples]
    indices = np.stack([samples, places], axis=1).astype(np.int64)
    return tf.compat.v1.SparseTensorValue(
        indices, values, [self.size, ROWS + 10])


def draw(rng, tables, sizes, all_rows=False):
  """Returns batches[rank][table]; rank r has sizes[r] samples.

  Args:
    rng: RandomState.
    tables: list of Table.
    sizes: list of ints, one per rank.
    all_rows: whether one sample of each table contains every row.
  """
  largest = int(np.argmax(sizes))
  return [[Batch(rng, t, size, all_rows and r == largest) for t in tables]
          for r, size in enumerate(sizes)]


class Model(object):
  """Embedding variables and their lookups.

  Attributes:
    variables: list of embedding variables.
    outputs: list of float32 `[batch, dim]`.
    loss: scalar, a sum over samples with different weights per column.
  """

  def __init__(self, prefix, tables, lookup, initial, key_dtype=tf.int64,
               storages=None, options=None):
    """`storages`: one StorageType per table; None: chosen by --storage.

    `options`: further arguments of EmbeddingVariableOption per table; None: none.
    """
    is_under_test = lookup is not local_lookup
    self._tables = tables
    self._key_dtype = key_dtype
    self.variables = []
    for i, table in enumerate(tables):
      option = tf.EmbeddingVariableOption(
          init_option=tf.InitializerOption(
              initializer=lambda shape, dtype, rows=initial[i]: tf.constant(rows),
              default_value_dim=ROWS),
          storage_option=tf.StorageOption(
              storage_type=storages[i] if storages is not None else
              storage_of(i) if is_under_test else None),
          **(options[i] if options is not None else {}))
      self.variables.append(tf.get_embedding_variable(
          "%s_%d" % (prefix, i), embedding_dim=table.dim, key_dtype=key_dtype,
          ev_option=option))
      self.variables[-1].target_gpu = table.target_gpu
    self.ids, self.weights = [], []
    for table in tables:
      if table.kind == RAGGED:
        self.ids.append(tf.compat.v1.ragged.placeholder(key_dtype, 1, []))
        self.weights.append(tf.compat.v1.ragged.placeholder(tf.float32, 1, []))
      else:
        self.ids.append(tf.compat.v1.sparse_placeholder(key_dtype))
        self.weights.append(tf.compat.v1.sparse_placeholder(tf.float32))
    self.outputs = self.look_up(lookup)
    self.loss = self.loss_of(self.outputs)

  def look_up(self, lookup):
    """Builds another lookup of the same batch."""
    return lookup(
        self.variables, self.ids,
        [w if t.weighted else None for w, t in zip(self.weights, self._tables)],
        [t.combiner for t in self._tables])

  def loss_of(self, outputs):
    total = 0.
    for output, table in zip(outputs, self._tables):
      if not table.max_hotness:
        continue  # A table without influence on the loss.
      scale = tf.constant(np.linspace(.5, 1.5, table.dim), tf.float32)
      total += tf.reduce_sum(tf.tanh(output * scale) + .1 * tf.square(output))
    return total

  def feed(self, batches):
    feed = {}
    for i, (table, batch) in enumerate(zip(self._tables, batches)):
      keys = [key_of(r) if self._key_dtype == tf.int64 else r for r in batch.rows]
      keys = np.array(keys, self._key_dtype.as_numpy_dtype)
      feed[self.ids[i]] = batch.value(table.kind, keys)
      if table.weighted:
        feed[self.weights[i]] = batch.value(table.kind, batch.weights)
    return feed

  def contents(self):
    """Returns per variable (keys, [values, slot values, ...]) to fetch."""
    result = []
    for variable in self.variables:
      exported = checkpoint_ops.export_table(
          variable.handle, list(variable.slot_columns))
      result.append((exported.keys, [exported.values] + exported.slots))
    return result

  def numbers(self):
    """Returns per variable keys, versions and frequencies to fetch.

    First those of rows, then those of keys that a filter counts but has not admitted.
    """
    result = []
    for variable in self.variables:
      exported = checkpoint_ops.export_table(variable.handle)
      filtered = exported.filtered
      result.append([exported.keys, exported.versions, exported.frequencies,
                     filtered.keys, filtered.versions, filtered.frequencies])
    return result


def local_lookup(*args, **kwargs):
  """The lookup of one process, regardless of the number of ranks."""
  return embedding_variable.lookup_sparse(*args, **kwargs)


def storage_of(table):
  """Returns the storage of this rank's rows of table number `table`."""
  on_gpu = {"dram": False, "hbm": True, "mixed": (table + hvd.rank()) % 2 == 0}
  return (config_pb2.StorageType.HBM
          if on_gpu[FLAGS.storage] else config_pb2.StorageType.DRAM)


def why_not(storage):
  """Returns the reason why this process cannot use this storage, or None if it can."""
  option = tf.EmbeddingVariableOption(
      storage_option=tf.StorageOption(storage_type=storage))
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    tf.get_embedding_variable("probe", embedding_dim=1, ev_option=option)
    try:
      session.run(tf.compat.v1.global_variables_initializer())
    except tf.errors.FailedPreconditionError as e:
      return e.message
  return None


def initial_rows(rng, tables):
  return [rng.normal(0, .5, [ROWS, t.dim]).astype(np.float32) for t in tables]


def sizes_of(step):
  """Batch sizes of all ranks: all different; one rank's batch is empty, in rotation."""
  return [0 if hvd.size() > 1 and (r + step) % (hvd.size() + 1) == 0 else 5 + 3 * r
          for r in range(hvd.size())]


def merge(*feeds):
  """Merges several feed_dicts into one."""
  merged = {}
  for feed in feeds:
    merged.update(feed)
  return merged


def minimize(optimizer, loss, variables):
  """Returns the training op of any optimizer, TensorFlow's or Keras's."""
  if isinstance(optimizer, tf.keras.optimizers.Optimizer):
    gradients = tf.gradients(loss, variables)
    # Keras rejects a variable without a gradient.
    return optimizer.apply_gradients(
        [(g, v) for g, v in zip(gradients, variables) if g is not None])
  return optimizer.minimize(
      loss, global_step=tf.compat.v1.train.get_global_step(), var_list=variables)


def dense_lookup(tables, initial):
  """A lookup on dense variables, by gathers and segment sums."""
  variables = []

  def lookup(unused_params, ids, weights, combiners):
    outputs = []
    for i, (table, x, w, combiner) in enumerate(zip(tables, ids, weights, combiners)):
      variables.append(tf.compat.v1.get_variable(
          "dense_%d" % i, initializer=initial[i], use_resource=True))
      if table.kind == RAGGED:
        samples, size = x.value_rowids(), x.nrows()
      else:
        samples, size = x.indices[:, 0], x.dense_shape[0]
      # Keys modulo the number of default rows are row numbers.
      rows = tf.gather(variables[-1], tf.math.floormod(x.values, ROWS))
      w = tf.ones_like(samples, tf.float32) if w is None else w.values
      if combiner == "max":
        largest = tf.math.unsorted_segment_max(rows, samples, size)
        counts = tf.math.unsorted_segment_sum(w, samples, size)
        outputs.append(tf.where(counts > 0, largest, tf.zeros_like(largest)))
        continue
      total = tf.math.unsorted_segment_sum(rows * w[:, None], samples, size)
      if combiner == "mean":
        total = tf.math.divide_no_nan(
            total, tf.math.unsorted_segment_sum(w, samples, size)[:, None])
      outputs.append(total)
    return outputs

  return lookup, variables


class DistributedTestCase(parameterized.TestCase):
  """Trains over ranks and compares with a reference."""

  def setUp(self):
    super(DistributedTestCase, self).setUp()
    if FLAGS.storage != "dram":
      why = why_not(config_pb2.StorageType.HBM)
      if why:
        tf.compat.v1.logging.warning("every case is skipped: %s", why)
        self.skipTest(why)

  def train(self, tables, make_optimizer, seed, steps=STEPS, all_rows=False,
            reference="table", key_dtype=tf.int64, rtol=RTOL, atol=ATOL,
            loss_of=lambda model: model.loss):
    """Trains both models; compares outputs at every step, contents at the end.

    Args:
      loss_of: function of a `Model` that returns the loss to minimize.

    Returns:
      The trained contents of this rank.
    """
    rng = np.random.RandomState(seed)
    initial = initial_rows(rng, tables)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      tf.compat.v1.train.create_global_step()
      sharded = Model("sharded", tables, sok.lookup_sparse, initial, key_dtype)
      dense = None
      if reference == "dense":
        lookup, dense = dense_lookup(tables, initial)
      else:
        lookup = local_lookup
      whole = Model("whole", tables, lookup, initial, key_dtype)
      trains = [minimize(make_optimizer(), loss_of(sharded), sharded.variables),
                minimize(make_optimizer(), loss_of(whole), dense or whole.variables)]
      session.run(tf.compat.v1.global_variables_initializer())
      seen = [set() for _ in tables]
      for step in range(steps):
        sizes = sizes_of(step)
        batches = draw(rng, tables, sizes, all_rows)
        merged = [Batch.merge(of_table) for of_table in zip(*batches)]
        for t, batch in enumerate(merged):
          seen[t].update(batch.rows.tolist())
        feed = merge(sharded.feed(batches[hvd.rank()]), whole.feed(merged))
        got, expected, _ = session.run(
            [sharded.outputs, whole.outputs, trains], feed)
        begin = sum(sizes[:hvd.rank()])
        for output, merged_output in zip(got, expected):
          np.testing.assert_allclose(
              output, merged_output[begin:begin + sizes[hvd.rank()]], rtol=rtol,
              atol=atol)
      contents = session.run(sharded.contents())
      if reference == "dense":
        rows = session.run(dense)
        keys = [np.array([key_of(r) for r in range(ROWS)])] * len(tables)
        everything = [(k, [r]) for k, r in zip(keys, rows)]
      else:
        everything = session.run(whole.contents())
      for t, table in enumerate(tables):
        self.compare(table, contents[t], everything[t], rtol, atol)
      sizes = self.gather([len(keys) for keys, _ in contents])
      self.assertEqual(sizes.sum(axis=0).tolist(), [len(s) for s in seen])
      return contents

  def gather(self, numbers):
    """Returns int64 `[ranks, ...]`: an int, or a list of ints, of every rank."""
    value = np.array([numbers], np.int64)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      placeholder = tf.compat.v1.placeholder(tf.int64, value.shape)
      return session.run(hvd.allgather(placeholder, name="gather"), {placeholder: value})

  def compare(self, table, mine, everything, rtol, atol):
    """Checks that this rank has its owned keys, with the reference's rows and slots."""
    keys, columns = mine
    all_keys, all_columns = everything
    place = {k: i for i, k in enumerate(all_keys.tolist())}
    owners = table.target_gpu
    if owners == -1:
      owners = list(range(hvd.size()))
    owners = owners if isinstance(owners, list) else [owners]
    for key in keys.tolist():
      self.assertEqual(owners[key % len(owners)], hvd.rank())
      self.assertIn(key, place)
    order = [place[k] for k in keys.tolist()]
    for column, all_column in zip(columns, all_columns):
      np.testing.assert_allclose(column, all_column[order], rtol=rtol, atol=atol)
