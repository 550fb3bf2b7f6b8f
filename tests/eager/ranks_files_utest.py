# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints and files of eager tables over ranks; every rank runs this program."""

import datetime
import os
import shutil
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

import ranks_models as models
import sparse_operation_kit as sok
from sparse_operation_kit.exchange import collectives


def _train(model, batches, optimizer, reduce=models.sum_over_ranks):
  """Trains; returns the sum of the last batch's losses over ranks."""
  for batch in batches:
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(model.losses(*batch.tensors))
    variables = model.all_variables()
    grads = tape.gradient(loss, variables)
    grads[-1] = reduce(grads[-1])
    optimizer.apply_gradients(zip(grads, variables))
  return float(reduce(loss))


class FilesTestCase(parameterized.TestCase):

  def setUp(self):
    super(FilesTestCase, self).setUp()
    folder = tempfile.mkdtemp() if hvd.rank() == 0 else None
    self.folder = hvd.broadcast_object(folder, 0)
    self.mine, self.merged = zip(*models.batches(4))

  def tearDown(self):
    super(FilesTestCase, self).tearDown()
    hvd.broadcast_object(None, 0)
    if hvd.rank() == 0:
      shutil.rmtree(self.folder)


class CheckpointTest(FilesTestCase):

  def test_training_goes_on(self):
    model, optimizer = models.Model(sok.lookup_sparse), tf.keras.optimizers.Adam(.1)
    _train(model, self.mine[:2], optimizer)
    saved = tf.train.Checkpoint(model=model, optimizer=optimizer).save(
        os.path.join(self.folder, "c"))
    expected = _train(model, self.mine[2:], optimizer)
    names = dict(tf.train.list_variables(saved))
    if hvd.size() > 1:
      for rank in range(hvd.size()):
        self.assertIn("model/tables/0/part_%d-keys" % rank, names)
    files = [f for f in os.listdir(self.folder) if "_rank" in f or "_temp" in f]
    self.assertEqual([], files)
    other, other_optimizer = models.Model(sok.lookup_sparse), tf.keras.optimizers.Adam(.1)
    checkpoint = tf.train.Checkpoint(model=other, optimizer=other_optimizer)
    status = checkpoint.restore(saved)
    self.assertEqual(expected, _train(other, self.mine[2:], other_optimizer))
    status.assert_existing_objects_matched()
    for table, again in zip(model.tables, other.tables):
      keys, columns = models.contents(table, hvd.size() > 1)
      other_keys, other_columns = models.contents(again, hvd.size() > 1)
      np.testing.assert_array_equal(keys, other_keys)
      np.testing.assert_array_equal(columns, other_columns)

  def test_another_placement_and_one_process(self):
    model, optimizer = models.Model(sok.lookup_sparse), tf.keras.optimizers.Adagrad(.1)
    _train(model, self.mine[:2], optimizer)
    saved = tf.train.Checkpoint(model=model).save(os.path.join(self.folder, "c"))
    last = hvd.size() - 1
    moved = models.Model(sok.lookup_sparse, [last, [last, 0, 0], 0])
    whole = models.Model(models.local)
    moved.losses(*self.mine[0].tensors)
    for restored in (moved, whole):
      tf.train.Checkpoint(model=restored).restore(saved)
    for table, again, other in zip(model.tables, moved.tables, whole.tables):
      keys, columns = models.contents(table, hvd.size() > 1)
      for restored, is_spread in ((again, hvd.size() > 1), (other, False)):
        other_keys, other_columns = models.contents(restored, is_spread)
        np.testing.assert_array_equal(keys, other_keys)
        np.testing.assert_array_equal(columns[0], other_columns[0])

  def test_a_checkpoint_of_one_process(self):
    whole = models.Model(models.local)
    _train(whole, self.merged[:2], tf.keras.optimizers.Adagrad(.1), tf.identity)
    path = None
    if hvd.rank() == 0:
      path = tf.train.Checkpoint(model=whole).write(os.path.join(self.folder, "c"))
    path = hvd.broadcast_object(path, 0)
    late, early = models.Model(sok.lookup_sparse), models.Model(sok.lookup_sparse)
    # Its lookup decides that a table is spread.
    early.losses(*self.mine[0].tensors)
    for restored in (late, early):
      tf.train.Checkpoint(model=restored).restore(path)
    late.losses(*self.mine[0].tensors)
    for restored in (late, early):
      for table, other in zip(restored.tables, whole.tables):
        keys, columns = models.contents(table, hvd.size() > 1)
        expected_keys, expected = models.contents(other, False)
        np.testing.assert_array_equal(keys, expected_keys)
        np.testing.assert_array_equal(columns[0], expected[0])

  def test_graph_mode_restores_it(self):
    model = models.Model(sok.lookup_sparse)
    _train(model, self.mine[:2], tf.keras.optimizers.Adagrad(.1))
    saved = tf.train.Checkpoint(model=model).save(os.path.join(self.folder, "c"))
    keys, columns = models.contents(model.tables[0], hvd.size() > 1)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      table = tf.compat.v1.get_embedding_variable("model/tables/0", models.DIMS[0])
      exported = table.export()
      tf.compat.v1.train.Saver({"model/tables/0": table}).restore(session, saved)
      found = session.run([exported.keys, exported.values])
    order = np.argsort(found[0])
    np.testing.assert_array_equal(keys, found[0][order])
    np.testing.assert_array_equal(columns[0], found[1][order])

  def test_ranks_that_save_to_different_paths(self):
    if hvd.size() == 1:
      self.skipTest("one rank")
    model = models.Model(sok.lookup_sparse)
    _train(model, self.mine[:1], tf.keras.optimizers.SGD(.1))
    checkpoint = tf.train.Checkpoint(model=model)
    with self.assertRaisesRegex(ValueError, "the path .*: expected the same on all ranks"):
      checkpoint.write(os.path.join(self.folder, "c%d" % hvd.rank()))
    checkpoint.write(os.path.join(self.folder, "same"))

  def test_a_rank_that_cannot_write(self):
    if hvd.size() == 1:
      self.skipTest("one rank")
    model = models.Model(sok.lookup_sparse)
    _train(model, self.mine[:1], tf.keras.optimizers.SGD(.1))
    path = os.path.join(self.folder, "c")
    last = hvd.size() - 1
    if hvd.rank() == last:
      # A folder in place of the rank's file.
      os.makedirs(path + "-embedding_variable.tables_rank%05d.index" % last)
      os.makedirs(path + "-embedding_variable.tables_rank%05d.index/x" % last)
    error = tf.errors.OpError if hvd.rank() == last else collectives.RankError
    with self.assertRaises(error):
      tf.train.Checkpoint(model=model).write(path)
    self.assertFalse(os.path.exists(path + ".index"))

  def test_a_saved_model_is_refused(self):
    if hvd.size() == 1:
      self.skipTest("one rank has all rows")
    model = models.Model(sok.lookup_sparse)
    model.losses(*self.mine[0].tensors)
    with self.assertRaisesRegex(NotImplementedError, "table_.*spread over ranks.*export"):
      tf.saved_model.save(model, os.path.join(self.folder, "m%d" % hvd.rank()))


class FilesTest(FilesTestCase):

  def test_dump_and_load(self):
    model = models.Model(sok.lookup_sparse)
    optimizer = sok.OptimizerWrapper(tf.keras.optimizers.Adagrad(.1))
    _train(model, self.mine[:2], optimizer)
    sok.dump(self.folder, model.tables, optimizer)
    other = models.Model(sok.lookup_sparse, [hvd.size() - 1, 0, -1])
    other.losses(*self.mine[0].tensors)  # the tables are spread by their lookups
    again = sok.OptimizerWrapper(tf.keras.optimizers.Adagrad(.1))
    sok.load(self.folder, other.tables, again)
    for table, restored in zip(model.tables, other.tables):
      keys, columns = models.contents(table, hvd.size() > 1)
      other_keys, other_columns = models.contents(restored, hvd.size() > 1)
      np.testing.assert_array_equal(keys, other_keys)
      np.testing.assert_array_equal(columns, other_columns)

  def test_rows_that_changed(self):
    table = sok.DynamicVariable(dimension=2, initializer="ones", var_type="hybrid")
    ids = tf.ragged.constant([[hvd.rank(), 100]], dtype=tf.int64)
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(sok.lookup_sparse(table, ids, combiners="sum"))
    sok.SGD(lr=.5).apply_gradients([(tape.gradient(loss, table), table)])
    now = datetime.datetime.now(datetime.timezone.utc)
    keys, values = sok.incremental_model_dump([table], now - datetime.timedelta(minutes=1))
    self.assertEqual(list(range(hvd.size())) + [100], keys[0].tolist())
    np.testing.assert_array_equal(
        values[0], np.outer([.5] * hvd.size() + [1. - .5 * hvd.size()], [1., 1.]))
    keys, _ = sok.incremental_model_dump([table], now + datetime.timedelta(minutes=1))
    self.assertEqual([], keys[0].tolist())


class KerasFilesTest(FilesTestCase):

  def test_files_of_keras(self):
    ids = tf.keras.Input((None,), dtype="int64", ragged=True)
    outputs = sok.layers.Embedding(4, combiner="sum", name="spread_layer")(ids)
    model = tf.keras.Model(ids, tf.keras.layers.Dense(1)(outputs))
    model(self.mine[1].ids)
    path = os.path.join(self.folder, "m%d.keras" % hvd.rank())
    if hvd.size() > 1:
      with self.assertRaisesRegex(NotImplementedError, "'spread_layer.*tf.train.Checkpoint"):
        model.save(path)
      return
    if tf.__version__.startswith("2.11."):
      # Its Keras has no files that layers write themselves.
      with self.assertRaisesRegex(NotImplementedError, "cannot save a table in an HDF5 file"):
        model.save(path)
    else:
      model.save(path)


if __name__ == "__main__":
  hvd.init()
  sok.init()
  absltest.main()
