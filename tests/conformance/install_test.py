# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The effects of importing the package on TensorFlow."""

import importlib
import subprocess
import sys

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
# The package adds this module to TensorFlow.
from tensorflow.core.framework.embedding import config_pb2
from embedding_variable.integration import patching
from embedding_variable.integration.lookups import embedding_ops_patch
import pairs

_NAMES = (
    "get_embedding_variable", "EmbeddingVariableOption", "InitializerOption",
    "GlobalStepEvict", "L2WeightEvict", "CounterFilter", "CBFFilter",
    "StorageOption", "CheckpointOption", "train.AdamAsyncOptimizer",
    "train.AdagradDecayOptimizer", "train.AdagradDecayOptimizerV2",
    "train.AdamWOptimizer", "feature_column.categorical_column_with_embedding",
    "feature_column.sequence_categorical_column_with_embedding",
    "feature_column.categorical_column_with_multihash",
    "feature_column.group_embedding_column_scope", "GraphKeys.EMBEDDING_VARIABLES",
    "GraphKeys.EV_INIT_VAR_OPS", "GraphKeys.EV_INIT_SLOT_OPS"
)


def _find(owner, name):
  for part in name.split("."):
    owner = getattr(owner, part)
  return owner


class InstallTest(parameterized.TestCase):

  @parameterized.parameters(*_NAMES)
  def test_names(self, name):
    self.assertIs(_find(tf, name), _find(tf.compat.v1, name))

  def test_modules(self):
    # pylint: disable=g-import-not-at-top,g-multiple-import
    import tensorflow.compat.v1 as tf1
    from tensorflow import get_embedding_variable
    from tensorflow.core.framework.embedding import config_pb2
    from tensorflow.python.feature_column import feature_column_v2
    from tensorflow.python.ops import kv_variable_ops
    from tensorflow.python.ops import variable_scope
    from tensorflow.python.ops import variables
    from tensorflow.python.training import adam_async
    from tensorflow.python.training import adagrad_decay_v2
    self.assertIs(get_embedding_variable, tf1.get_embedding_variable)
    self.assertIs(get_embedding_variable, variable_scope.get_embedding_variable)
    self.assertIs(kv_variable_ops.EmbeddingVariable, ev.EmbeddingVariable)
    self.assertIs(variables.StorageOption, tf.StorageOption)
    self.assertEqual(config_pb2.StorageType.DRAM, 1)
    self.assertIs(adam_async.AdamAsyncOptimizer, tf.train.AdamAsyncOptimizer)
    self.assertIs(adagrad_decay_v2.AdagradDecayOptimizerV2,
                  tf.train.AdagradDecayOptimizerV2)
    self.assertTrue(hasattr(feature_column_v2,
                            "categorical_column_with_embedding"))

  def test_a_module_is_patched_when_a_script_imports_it(self):
    folder = self.create_tempdir()
    folder.create_file("ev_late.py", "import ev_late\nassert ev_late is not None\n")
    folder.create_file("ev_broken.py", "raise ValueError('broken')\n")
    seen = []
    with absltest.mock.patch.object(sys, "path", [folder.full_path] + sys.path), \
        absltest.mock.patch.object(sys, "meta_path", list(sys.meta_path)), \
        absltest.mock.patch.dict(sys.modules):
      for name in ("ev_late", "ev_late", "ev_broken"):
        patching.after_import(name, seen.append)
      self.assertEmpty(seen)
      module = importlib.import_module("ev_late")
      importlib.import_module("ev_late")
      self.assertEqual(seen, [module])
      patching.after_import("ev_late", seen.append)
      self.assertEqual(seen, [module, module])
      with self.assertRaisesRegex(ValueError, "broken"):
        importlib.import_module("ev_broken")
      self.assertLen(seen, 2)

  def test_contrib_is_not_imported_needlessly(self):
    waiting = [getattr(f, "waits_for", None) for f in sys.meta_path]
    for name in ("tensorflow.contrib.layers", "tensorflow.contrib.framework"):
      self.assertTrue(name in waiting or name in sys.modules)

  def test_installing_twice(self):
    before = tf.nn.embedding_lookup_sparse, tf.train.Optimizer.apply_gradients
    ev.install()
    self.assertEqual(
        (tf.nn.embedding_lookup_sparse, tf.train.Optimizer.apply_gradients), before)

  def test_names_that_exist_are_left_alone(self):
    program = """
import logging, tensorflow as tf
mine = lambda *args: "mine"
tf.get_embedding_variable = mine
tf.train.AdamWOptimizer = "mine"
tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.DEBUG)
import embedding_variable
assert tf.get_embedding_variable is mine
assert tf.train.AdamWOptimizer == "mine"
assert tf.compat.v1.get_embedding_variable is not mine
"""
    output = subprocess.run([sys.executable, "-c", program], check=True,
                            stderr=subprocess.PIPE).stderr.decode()
    self.assertIn("get_embedding_variable exists and is left alone", output)
    self.assertIn("patched tensorflow.python.training.optimizer._get_processor",
                  output.replace("tensorflow_core.", "tensorflow."))

  def test_patched_functions_keep_names_and_docstrings(self):
    self.assertEqual(tf.nn.embedding_lookup_sparse.__name__,
                     "embedding_lookup_sparse")
    self.assertIn("embeddings for the given ids", tf.nn.embedding_lookup_sparse.__doc__)

  def test_all_public_lookups_are_patched(self):
    with tf.Graph().as_default():
      v = tf.get_embedding_variable("v", 3)
      sparse = tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), [1, 1])
      for nn in (tf.nn, tf.compat.v1.nn):
        nn.embedding_lookup_sparse(v, sparse, None, combiner="sum")
        nn.safe_embedding_lookup_sparse(v, sparse)
      tf.compat.v2.nn.embedding_lookup_sparse(v, sparse, None, combiner="sum")
      tf.compat.v2.nn.safe_embedding_lookup_sparse(v, sparse)
      fused = [op for op in tf.get_default_graph().get_operations()
               if op.type == "EvLookupSparse"]
      self.assertLen(fused, 6)

  def test_dense_variables_take_the_stock_path(self):
    values = pairs.rows(9, 3)
    with tf.Graph().as_default(), pairs.session() as session:
      parts = tf.get_variable(
          "parts", values.shape, partitioner=tf.fixed_size_partitioner(3),
          initializer=lambda shape, dtype, partition_info: tf.slice(
              values, partition_info.var_offset, shape))
      whole = tf.get_variable("whole", initializer=values)
      sparse = tf.SparseTensor(
          tf.constant([[0, 0], [0, 1], [2, 0]], tf.int64),
          tf.constant([1, 8, 4], tf.int64), [3, 2])
      outputs = []
      for v, strategy in ((parts, "div"), (whole, "mod")):
        outputs.append([
            tf.nn.embedding_lookup(v, [1, 8], partition_strategy=strategy),
            tf.nn.embedding_lookup_sparse(v, sparse, None, strategy,
                                          combiner="mean"),
            tf.nn.safe_embedding_lookup_sparse(v, sparse,
                                               partition_strategy=strategy)])
      loss = tf.add_n([tf.reduce_sum(o) for o in sum(outputs, [])])
      train = tf.train.AdagradOptimizer(.1).minimize(loss)
      saver = tf.train.Saver()
      path = self.create_tempdir().full_path + "/dense"
      session.run(tf.global_variables_initializer())
      one, two = session.run(outputs)
      for a, b in zip(one, two):
        np.testing.assert_allclose(a, b, rtol=1e-6)
      session.run(train)
      kept = session.run(whole)
      saver.save(session, path)
      session.run(train)
      saver.restore(session, path)
      np.testing.assert_array_equal(session.run(whole), kept)
      self.assertEqual(
          [name for name, _ in tf.train.list_variables(path)],
          ["parts", "parts/Adagrad", "whole", "whole/Adagrad"])

  def test_parameters_of_deeprec_on_a_dense_variable(self):
    with tf.Graph().as_default():
      dense = tf.get_variable("dense", [3, 4])
      with self.assertRaisesRegex(ValueError, "counts"):
        tf.nn.embedding_lookup(dense, [1], counts=[1])
      self.assertEqual(tf.nn.embedding_lookup(dense, [1]).shape, [1, 4])

  def test_blocknums_of_an_ordinary_variable(self):
    with tf.Graph().as_default(), absltest.mock.patch.object(
        embedding_ops_patch, "_reported", []), absltest.mock.patch.object(
            embedding_ops_patch.logging, "warning") as warning:
      sparse = tf.SparseTensor([[0, 0]], tf.constant([1], tf.int64), [1, 1])
      for v in (tf.get_embedding_variable("v", 4), tf.get_variable("dense", [3, 4])):
        self.assertEqual(tf.nn.embedding_lookup(v, [1], blocknums=[1]).shape[-1], 4)
        self.assertEqual(tf.nn.embedding_lookup_sparse(
            v, sparse, None, combiner="sum", blocknums=[1]).shape[-1], 4)
      self.assertEqual(warning.call_count, 1)

  def test_names_that_were_bound_before_the_import(self):
    folder = self.create_tempdir()
    folder.create_file("ev_users_module.py", """
import functools
from tensorflow.python.ops.embedding_ops import safe_embedding_lookup_sparse
partial = functools.partial(safe_embedding_lookup_sparse, combiner="sum")
def look_up(*args):
  return safe_embedding_lookup_sparse(*args, combiner="sum")
def look_up_by_partial(*args):
  return partial(*args)
""")
    program = """
import sys
sys.path.insert(0, %r)
import ev_users_module
import embedding_variable
import tensorflow as tf
tf = tf.compat.v1
with tf.Graph().as_default(), tf.Session() as session:
  ids = tf.SparseTensor([[1, 0]], tf.constant([5], tf.int64), [3, 1])
  v = tf.get_embedding_variable("v", 2, initializer=tf.ones_initializer())
  dense = tf.get_variable("dense", [9, 2], initializer=tf.ones_initializer())
  rows = ev_users_module.look_up(v, ids)
  train = tf.train.GradientDescentOptimizer(1.).minimize(tf.reduce_sum(rows))
  try:
    ev_users_module.look_up_by_partial(v, ids)
  except ValueError as e:
    print(e)
  session.run(tf.global_variables_initializer())
  print(session.run([rows, ev_users_module.look_up_by_partial(dense, ids)[1]]))
  session.run(train)
  print(session.run(v.export()[0]))
""" % folder.full_path
    lines = " ".join(subprocess.run(
        [sys.executable, "-c", program], check=True,
        stdout=subprocess.PIPE).stdout.decode().split())
    self.assertRegex(lines, "'v': module ev_users_module calls TensorFlow's own safe_emb")
    self.assertIn("[[0., 0.], [1., 1.], [0., 0.]]", lines)
    self.assertTrue(lines.endswith("[5]"), lines)


class HorovodTest(absltest.TestCase):

  def setUp(self):
    super(HorovodTest, self).setUp()
    try:
      import horovod.tensorflow as hvd  # pylint: disable=g-import-not-at-top
    except ImportError:
      self.skipTest("Horovod is not installed")
    self._hvd = hvd
    hvd.init()

  def test_tables_are_local_and_not_broadcast(self):
    with tf.Graph().as_default(), pairs.session() as session:
      v = tf.get_embedding_variable("v", 3)
      dense = tf.get_variable("dense", [3])
      loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(v, [1, 2]) + dense))
      optimizer = self._hvd.DistributedOptimizer(tf.train.AdagradOptimizer(.1))
      train = optimizer.minimize(loss)
      broadcasts = [self._hvd.broadcast_global_variables(0),
                    self._hvd.broadcast_variables([v, dense], 0)]
      # References to variables on TensorFlow 2.x.
      names = [getattr(x, "deref", lambda x=x: x)().name
               for x in optimizer._local_vars]  # pylint: disable=protected-access
      self.assertEqual([v.name], names)
      session.run(tf.global_variables_initializer())
      session.run(broadcasts)
      first = session.run([loss, train])[0]
      self.assertLess(session.run(loss), first)
      self.assertEqual(session.run(v)[0], 2)


def _evaluated(session, merged):
  """Returns {tag: value} of a merged summary."""
  found = tf.Summary.FromString(session.run(merged))
  return {value.tag: value.simple_value for value in found.value}


class SummariesTest(absltest.TestCase):

  def test_rows_bytes_and_new_rows(self):
    with tf.Graph().as_default(), pairs.session() as session:
      with tf.variable_scope("scope"):
        v = tf.get_embedding_variable("v", 3)
      tf.get_embedding_variable("w", 3)
      ids = tf.placeholder(tf.int64, [None])
      train = tf.train.AdagradOptimizer(.1).minimize(
          tf.reduce_sum(tf.nn.embedding_lookup(v, ids)))
      self.assertLen(ev.summaries(), 6)
      merged = tf.summary.merge_all()
      # Running the variables' own initializers is enough.
      session.run(tf.global_variables_initializer())
      found = _evaluated(session, merged)
      self.assertCountEqual(found, [
          "%s/%s" % (name, what) for name in ("scope.v", "w")
          for what in ("rows", "bytes", "new_rows")])
      self.assertEqual(found["scope.v/rows"], 0)
      rows, new_rows = [], []
      for batch in ([1, 2, 1], [2, 3], [2, 3], [4, 5, 6]):
        session.run(train, {ids: batch})
        found = _evaluated(session, merged)
        rows.append(found["scope.v/rows"])
        new_rows.append(found["scope.v/new_rows"])
      self.assertEqual(rows, [2, 3, 3, 6])
      self.assertEqual(new_rows, [2, 1, 0, 3])
      self.assertGreater(found["scope.v/bytes"], 0)
      self.assertEqual(found["w/new_rows"], 0)

  def test_a_table_is_a_group_with_a_short_name(self):
    with tf.Graph().as_default():
      for i in (1, 2):
        with tf.variable_scope("input_layer/C%d_embedding" % i):
          tf.get_embedding_variable("embedding_weights", 3,
                                    partitioner=tf.fixed_size_partitioner(2))
      tags = [s.op.inputs[0].op.get_attr("value").string_val[0].decode()
              for s in ev.summaries()]
    # The parts of a table are summed.
    self.assertEqual(tags, ["C1/rows", "C1/bytes", "C1/new_rows",
                            "C2/rows", "C2/bytes", "C2/new_rows"])

  def test_parts_are_added_up(self):
    with tf.Graph().as_default(), pairs.session() as session:
      v = tf.get_embedding_variable("v", 3, partitioner=tf.fixed_size_partitioner(2))
      train = tf.train.AdagradOptimizer(.1).minimize(
          tf.reduce_sum(tf.nn.embedding_lookup(v, tf.range(7, dtype=tf.int64))))
      ev.summaries()
      merged = tf.summary.merge_all()
      session.run(tf.global_variables_initializer())
      session.run(train)
      found = _evaluated(session, merged)
    self.assertEqual((found["v/rows"], found["v/new_rows"]), (7, 7))

  def test_chosen_variables(self):
    with tf.Graph().as_default():
      v = tf.get_embedding_variable("v", 3, partitioner=tf.fixed_size_partitioner(2))
      w = tf.get_embedding_variable("w", 3)
      self.assertLen(ev.summaries([v]), 3)
      self.assertLen(ev.summaries([w, v]), 6)
      with self.assertRaisesRegex(ValueError, "expected embedding variables.*dense"):
        ev.summaries([tf.get_variable("dense", [3])])

  def test_counters_of_a_filter_and_of_a_capacity(self):
    with tf.Graph().as_default(), pairs.session() as session:
      v = tf.get_embedding_variable(
          "v", 3, ev_option=tf.EmbeddingVariableOption(
              filter_option=tf.CounterFilter(filter_freq=2)))
      small = tf.get_embedding_variable("small", 3, ev_option=tf.EmbeddingVariableOption(
              storage_option=tf.StorageOption(max_capacity=4)))
      ids = tf.placeholder(tf.int64, [None])
      train = tf.train.AdagradOptimizer(.1).minimize(tf.reduce_sum(
          tf.nn.embedding_lookup(v, ids) + tf.nn.embedding_lookup(small, ids)))
      ev.summaries()
      merged = tf.summary.merge_all()
      session.run(tf.global_variables_initializer())
      for batch in ([1, 2, 1], [3, 4], [5, 6, 7, 8]):
        session.run(train, {ids: batch})
      found = _evaluated(session, merged)
      self.assertEqual((found["v/admitted"], found["v/filtered"]), (1, 7))
      self.assertGreater(found["v/filter_bytes"], 0)
      self.assertNotIn("v/evicted", found)
      self.assertEqual(found["small/evicted"],
                       found["small/new_rows"] - found["small/rows"])
      self.assertGreater(found["small/evicted"], 0)
      self.assertNotIn("small/filtered", found)
      # Counts since the last evaluation.
      self.assertEqual(_evaluated(session, merged)["small/evicted"], 0)

  def test_hits_of_a_table_with_rows_on_an_ssd(self):
    with tf.Graph().as_default(), pairs.session() as session:
      v = tf.get_embedding_variable(
          "v", 3, ev_option=tf.EmbeddingVariableOption(storage_option=tf.StorageOption(
              storage_type=config_pb2.StorageType.DRAM_SSDHASH,
              storage_path=self.create_tempdir().full_path)))
      rows = tf.nn.embedding_lookup(v, tf.constant([1, 2, 3], tf.int64))
      train = tf.train.AdagradOptimizer(.1).minimize(tf.reduce_sum(rows))
      ev.summaries()
      merged = tf.summary.merge_all()
      session.run(tf.global_variables_initializer())
      session.run(train)
      _evaluated(session, merged)
      session.run(rows)
      found = _evaluated(session, merged)
    self.assertEqual((found["v/rows_in_memory"], found["v/rows_on_ssd"]), (3, 0))
    self.assertEqual((found["v/hits"], found["v/misses"]), (3, 0))

  def test_chosen_variables_and_collections(self):
    with tf.Graph().as_default():
      v = tf.get_embedding_variable("v", 3)
      tf.get_embedding_variable("w", 3)
      self.assertLen(ev.summaries([v], collections=["mine"]), 3)
      self.assertLen(tf.get_collection("mine"), 3)
      self.assertIsNone(tf.summary.merge_all())


if __name__ == "__main__":
  absltest.main()
