# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Feature columns whose tables are embedding variables."""

import contextlib
import sys
import unittest

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf
from tensorflow.python.feature_column import feature_column_v2

import embedding_variable as ev
from embedding_variable import tf_names
import pairs

try:
  # pylint: disable=g-import-not-at-top
  from tensorflow.contrib import feature_column as contrib_feature_column
  from tensorflow.contrib import framework as contrib_framework
  from tensorflow.contrib import layers as contrib_layers
except ImportError:
  contrib_layers = None

# TensorFlow 2.x has it in Keras.
dense_features_v2 = tf_names.find(
    "tensorflow.python.feature_column.dense_features_v2") or tf_names.keras_modules(
        "feature_column.dense_features_v2")[0]

_ROWS, _DIM = 12, 3
_fc = tf.feature_column

_IDS = tf.SparseTensorValue(
    np.array([[0, 0], [0, 1], [2, 0], [3, 1]], np.int64),
    np.array([3, 7, 3, 11], np.int64), [4, 2])
_WEIGHTS = _IDS._replace(values=np.array([.5, 2, 1, 3], np.float32))


def _features():
  return {
      "ids": tf.SparseTensor.from_value(_IDS),
      "others": tf.SparseTensor.from_value(
          _IDS._replace(values=np.array([1, 3, 2, 2], np.int64))),
      "weights": tf.SparseTensor.from_value(_WEIGHTS),
      "words": tf.constant([["a"], ["b"], ["a"], [""]]),
  }


def _initializer(shape, dtype=None, partition_info=None):
  del dtype, partition_info
  rows = pairs.rows(_ROWS, shape[-1])
  return tf.constant(rows[:shape[0]])


def _column(kind, key="ids", sequence=False, **kwargs):
  """Returns a categorical column of one kind for the integers 0 to _ROWS - 1."""
  if kind == "table":
    option = ev.EmbeddingVariableOption(
        init_option=ev.InitializerOption(default_value_dim=_ROWS))
    make = (_fc.sequence_categorical_column_with_embedding
            if sequence else _fc.categorical_column_with_embedding)
    return make(key, dtype=tf.int64, ev_option=option, **kwargs)
  make = (_fc.sequence_categorical_column_with_identity
          if sequence else _fc.categorical_column_with_identity)
  return make(key, _ROWS)


def _run(build, kind):
  """Returns (outputs, sum of all rows' gradients) of a model on one kind of variable."""
  with tf.Graph().as_default(), pairs.session() as session:
    output = build(kind)
    loss = tf.reduce_sum(tf.square(output))
    train = tf.train.GradientDescentOptimizer(.1).minimize(loss)
    session.run([tf.global_variables_initializer(),
                 tf.local_variables_initializer()])
    first = session.run(output)
    session.run(train)
    tables = tf.get_collection("embedding_variables")
    return first, session.run(output), tables, [v.op.name for v in tables]


def _input_layer(kind):
  return _fc.input_layer(_features(), [
      _fc.embedding_column(_column(kind), _DIM, initializer=_initializer)])


def _weighted(kind):
  column = _fc.weighted_categorical_column(_column(kind), "weights")
  return _fc.input_layer(_features(), [
      _fc.embedding_column(column, _DIM, "sum", initializer=_initializer)])


def _max_norm(kind):
  return _fc.input_layer(_features(), [
      _fc.embedding_column(_column(kind), _DIM, initializer=_initializer,
                           max_norm=.5)])


def _shared(kind):
  return _fc.input_layer(_features(), _fc.shared_embedding_columns(
      [_column(kind), _column(kind, "others")], _DIM, initializer=_initializer))


def _shared_v2(kind):
  columns = feature_column_v2.shared_embedding_columns_v2(
      [_column(kind), _column(kind, "others")], _DIM, initializer=_initializer)
  return tf.keras.layers.DenseFeatures(columns)(_features())


def _dense_features(kind):
  return tf.keras.layers.DenseFeatures([
      _fc.embedding_column(_column(kind), _DIM, initializer=_initializer)])(
          _features())


def _dense_features_v2(kind):
  return dense_features_v2.DenseFeatures([
      _fc.embedding_column(_column(kind, key), _DIM, initializer=_initializer)
      for key in ("ids", "others")])(_features())


def _linear_model(kind):
  return _fc.linear_model(_features(), [_column(kind)]) + 1.0


def _linear_model_v2(kind):
  return feature_column_v2.LinearModel([_column(kind)])(_features()) + 1.0


def _sequence(kind):
  column = _fc.embedding_column(
      _column(kind, sequence=True), _DIM, initializer=_initializer)
  return contrib_feature_column.sequence_input_layer(_features(), [column])[0]


def _sequence_v2(kind):
  column = _fc.embedding_column(
      _column(kind, sequence=True), _DIM, initializer=_initializer)
  return tf.keras.experimental.SequenceFeatures([column])(_features())[0]


class FeatureColumnsTest(parameterized.TestCase):

  @parameterized.parameters(
      (_input_layer, "input_layer/ids_embedding/embedding_weights"),
      (_weighted, "input_layer/ids_weighted_by_weights_embedding/"
       "embedding_weights"),
      (_max_norm, "input_layer/ids_embedding/embedding_weights"),
      (_shared, "input_layer/ids_others_shared_embedding/embedding_weights"),
      (_shared_v2, "ids_others_shared_embedding"),
      (_dense_features, "dense_features/ids_embedding/embedding_weights"),
      (_linear_model, "linear_model/ids/weights"),
      (_linear_model_v2, "linear_model/ids/weights"),
      (_sequence, "sequence_input_layer/ids_embedding/embedding_weights"),
      (_sequence_v2, "sequence_features/ids_embedding/embedding_weights"))
  def test_same_as_a_dense_table(self, build, name):
    if build is _sequence and contrib_layers is None:
      self.skipTest("this TensorFlow has no contrib")
    if build is _linear_model_v2 and not hasattr(feature_column_v2, "LinearModel"):
      self.skipTest("this TensorFlow has no LinearModel")
    first, second, tables, names = _run(build, "table")
    dense = _run(build, "dense")
    self.assertEqual(names, [name])
    self.assertEqual(tables[0].dim, 1 if "linear" in name else _DIM)
    np.testing.assert_allclose(first, dense[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(second, dense[1], rtol=1e-5, atol=1e-6)
    self.assertTrue((first != second).any())

  def test_dense_features_v2(self):
    first, second, tables, _ = _run(_dense_features_v2, "table")
    dense = _run(_dense_features_v2, "dense")
    self.assertLen(tables, 2)
    np.testing.assert_allclose(first, dense[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(second, dense[1], rtol=1e-5, atol=1e-6)

  def test_partitions(self):
    with tf.Graph().as_default(), pairs.session() as session:
      column = _column("table", partition_num=3)
      output = _fc.input_layer(_features(), [
          _fc.embedding_column(column, _DIM, initializer=_initializer)])
      self.assertEqual(
          [v.op.name.rsplit("/", 1)[1]
           for v in tf.get_collection("embedding_variables")],
          ["part_0", "part_1", "part_2"])
      session.run(tf.global_variables_initializer())
      np.testing.assert_allclose(
          session.run(output), _run(_input_layer, "dense")[0], rtol=1e-5)

  @parameterized.parameters((False,), (True,))
  def test_ckpt_to_load_from(self, shared):
    path = self.create_tempdir().full_path + "/model"

    def build(initializer, **kwargs):
      if shared:
        columns = _fc.shared_embedding_columns(
            [_column("table"), _column("table", "others")], _DIM,
            initializer=initializer, shared_embedding_collection_name="both",
            **kwargs)
      else:
        columns = [_fc.embedding_column(_column("table"), _DIM,
                                        initializer=initializer, **kwargs)]
      return _fc.input_layer(_features(), columns)

    with tf.Graph().as_default(), pairs.session() as session:
      output = build(_initializer)
      train = tf.train.GradientDescentOptimizer(.1).minimize(
          tf.reduce_sum(tf.square(output)))
      v, = tf.get_collection("embedding_variables")
      session.run(tf.global_variables_initializer())
      session.run(train)
      expected = session.run(output)
      tf.train.Saver().save(session, path)
    with tf.Graph().as_default(), pairs.session() as session:
      output = build(tf.zeros_initializer(), ckpt_to_load_from=path,
                     tensor_name_in_ckpt=v.op.name)
      session.run(tf.global_variables_initializer())
      np.testing.assert_array_equal(session.run(output), expected)

  def test_strings(self):
    with tf.Graph().as_default(), pairs.session() as session:
      column = _fc.categorical_column_with_embedding("words")
      output = _fc.input_layer(
          _features(), [_fc.embedding_column(column, _DIM)])
      v, = tf.get_collection("embedding_variables")
      train = tf.train.AdagradOptimizer(.1).minimize(tf.reduce_sum(output))
      session.run(tf.global_variables_initializer())
      found = session.run(output)
      np.testing.assert_array_equal(found[0], found[2])
      self.assertTrue((found[0] != found[1]).all())
      np.testing.assert_array_equal(found[3], np.zeros(_DIM))
      session.run(train)
      expected = session.run(
          tf.strings.to_hash_bucket_fast(["a", "b"], 2**63 - 1))
      self.assertCountEqual(session.run(v.export()[0]), expected)

  def test_example_spec(self):
    column = _fc.categorical_column_with_embedding("words")
    self.assertEqual(
        _fc.make_parse_example_spec([_fc.embedding_column(column, _DIM)]),
        {"words": tf.io.VarLenFeature(tf.string)})

  def test_initializer_option_wins(self):
    with tf.Graph().as_default(), pairs.session() as session:
      option = ev.EmbeddingVariableOption(
          init_option=ev.InitializerOption(tf.constant_initializer(4.0)))
      column = _fc.categorical_column_with_embedding(
          "ids", tf.int64, ev_option=option)
      output = _fc.input_layer(_features(), [_fc.embedding_column(column, _DIM)])
      session.run(tf.global_variables_initializer())
      np.testing.assert_array_equal(session.run(output)[0], [4.0] * _DIM)

  @parameterized.parameters("input_layer", "DenseFeatures", "partitioned", "weighted")
  def test_columns_of_a_group_are_one_op(self, layer):

    def build(kind, group):
      kwargs = dict(partition_num=2) if layer == "partitioned" and kind == "table" else {}
      with group:
        ids = _column(kind, **kwargs)
        if layer == "weighted":
          ids = _fc.weighted_categorical_column(ids, "weights")
        columns = [
            _fc.embedding_column(_column(kind, "others", **kwargs), _DIM, "sum",
                                 initializer=_initializer),
            _fc.embedding_column(ids, _DIM, initializer=_initializer)]
      # One more column is in another group, and one without a group clips its rows.
      with _fc.group_embedding_column_scope("alone"):
        columns.append(_fc.embedding_column(_column(kind, "more"), _DIM,
                                            initializer=_initializer, max_norm=.5))
      features = dict(_features(), more=_features()["ids"])
      if layer == "DenseFeatures":
        return tf.keras.layers.DenseFeatures(columns)(features)
      to_vars = {}
      output = _fc.input_layer(features, iter(columns), cols_to_vars=to_vars)
      self.assertLen(to_vars, 3)
      for column, variables in to_vars.items():
        for v in variables:
          self.assertIn("/%s/embedding_weights" % column.name, v.op.name)
      return output

    def lookups():
      return [op for op in tf.get_default_graph().get_operations()
              if op.type == "EvLookupSparse"]

    dense = _run(lambda kind: build(kind, contextlib.suppress()), "dense")
    alone = _run(lambda kind: build(kind, contextlib.suppress()), "table")
    counts = []

    def grouped(kind):
      output = build(kind, _fc.group_embedding_column_scope("g"))
      counts.append(len(lookups()))
      return output

    together = _run(grouped, "table")
    self.assertCountEqual(together[3], alone[3])
    for a, b, c in zip(together[:2], alone[:2], dense[:2]):
      np.testing.assert_array_equal(a, b)
      np.testing.assert_allclose(a, c, rtol=1e-5, atol=1e-6)
    # The clipped column reads rows. Each part of a partitioned table has its own op.
    self.assertEqual(counts, [4 if layer == "partitioned" else 1])

  def test_a_group_keeps_names_when_its_layer_is_used_again(self):
    with tf.Graph().as_default():
      with _fc.group_embedding_column_scope("g"):
        columns = [_fc.embedding_column(_column("table", key), _DIM)
                   for key in ("ids", "others")]
      with tf.variable_scope("model"):
        _fc.input_layer(_features(), columns)
        _fc.input_layer(_features(), columns)
      with tf.variable_scope("model", reuse=True):
        _fc.input_layer(_features(), columns)
      self.assertEqual(
          [v.op.name for v in tf.get_collection("embedding_variables")],
          ["model/%s/%s_embedding/embedding_weights" % (layer, key)
           for layer in ("input_layer", "input_layer_1") for key in ("ids", "others")])
    with self.assertRaisesRegex(ValueError, "name: expected a string .* 7"):
      with _fc.group_embedding_column_scope(7):
        pass
    with self.assertRaisesRegex(ValueError, "params_num_per_group: expected .* 0"):
      with _fc.group_embedding_column_scope(params_num_per_group=0):
        pass

  @parameterized.parameters((sys.maxsize, 1), (2, 2), (1, 4))
  def test_a_group_without_a_name_and_its_size(self, size, num_lookups):
    with tf.Graph().as_default() as graph:
      columns = []
      with _fc.group_embedding_column_scope(params_num_per_group=size):
        for i in range(4):
          columns.append(_fc.embedding_column(_fc.categorical_column_with_embedding(
              "c%d" % i, dtype=tf.int64), 2))
      _fc.input_layer({"c%d" % i: tf.constant([[5]], tf.int64) for i in range(4)}, columns)
      self.assertEqual([op.type for op in graph.get_operations()].count("EvLookupSparse"),
                       num_lookups)

  def test_do_fusion_changes_nothing(self):
    for kind in ("table", "dense"):
      plain, fused = [
          _run(lambda kind, kwargs=kwargs: _fc.input_layer(_features(), [
              _fc.embedding_column(_column(kind), _DIM, initializer=_initializer,
                                   **kwargs)]), kind)[1]
          for kwargs in ({}, {"do_fusion": True})]
      np.testing.assert_array_equal(plain, fused)
      plain, fused = [
          _run(lambda kind, kwargs=kwargs: _fc.linear_model(
              _features(), [_column(kind)], **kwargs), kind)[1]
          for kwargs in ({}, {"do_fusion": True})]
      np.testing.assert_array_equal(plain, fused)
    with tf.Graph().as_default():
      shared = _fc.shared_embedding_columns([_column("dense")], _DIM, do_fusion=True)
      self.assertLen(shared, 1)

  @parameterized.parameters(
      ("add", 2, (2, 2)), ("mul", (2, 2), (2, 2)), ("concat", (2, 3), (2, 3)))
  def test_multihash(self, operation, dimension, lengths):
    for layer in ("input_layer", "dense_features"):
      with tf.Graph().as_default(), pairs.session() as session:
        column = _fc.categorical_column_with_multihash(
            "ids", (4, 5), operation=operation, dtype=tf.int64)
        column = _fc.embedding_column(
            _fc.weighted_categorical_column(column, "weights"), dimension, "sum")
        if layer == "input_layer":
          output = _fc.input_layer(_features(), [column])
        else:
          output = tf.keras.layers.DenseFeatures([column])(_features())
        q, r = tf.trainable_variables()
        name = layer + "/ids_weighted_by_weights_embedding/embedding_weights/multhash_"
        self.assertEqual([v.op.name for v in (q, r)], [name + "Q", name + "R"])
        self.assertEqual([v.shape.as_list() for v in (q, r)],
                         [[4, lengths[0]], [5, lengths[1]]])
        session.run(tf.global_variables_initializer())
        got, q, r = session.run([output, q, r])
        row = {"add": lambda k: q[k // 4] + r[k % 5],
               "mul": lambda k: q[k // 4] * r[k % 5],
               "concat": lambda k: np.concatenate([q[k // 4], r[k % 5]])}[operation]
        np.testing.assert_allclose(
            got, [.5 * row(3) + 2 * row(7), 0 * row(0), row(3), 3 * row(11)], rtol=1e-5)

  def test_multihash_of_strings_and_of_shapes(self):
    with tf.Graph().as_default(), pairs.session() as session:
      column = _fc.embedding_column(
          _fc.categorical_column_with_multihash("words", [[4, 2], [4, 2]], "Q-R", "add",
                                                tf.string), 2)
      output = _fc.input_layer(_features(), [column])
      session.run(tf.global_variables_initializer())
      got, key, q, r = session.run(
          [output, tf.strings.to_hash_bucket_fast("a", 16)] + tf.trainable_variables())
      np.testing.assert_allclose(got[0], q[key // 4] + r[key % 4], rtol=1e-6)

  @parameterized.parameters("input_layer", "dense_features")
  def test_multihash_by_default_and_in_parts(self, layer):
    # The column takes integers and concatenates a row of Q and a row of R.
    got = []
    for parts in (None, 2):
      with tf.Graph().as_default(), pairs.session() as session:
        column = _fc.embedding_column(
            _fc.categorical_column_with_multihash("ids", (4, 5), partition_num=parts), 3,
            initializer=tf.ones_initializer())
        if layer == "input_layer":
          output = _fc.input_layer(_features(), [column])
        else:
          output = tf.keras.layers.DenseFeatures([column])(_features())
        self.assertEqual(output.shape.as_list()[1], 6)
        self.assertLen(tf.trainable_variables(), 2 * (parts or 1))
        session.run(tf.global_variables_initializer())
        number = 0
        for v in tf.trainable_variables():
          rows, length = v.shape.as_list()
          session.run(v.assign(np.arange(number, number + rows * length).reshape(
              [rows, length])))
          number += rows * length
        got.append(session.run(output))
    np.testing.assert_array_equal(got[0], got[1])

  @parameterized.parameters(
      (dict(dims=3), 2, "dims: expected 2"),
      (dict(dims=(3, 3), complementary_strategy=2), 2, "expected 'Q-R', got 2"),
      (dict(dims=(3, 3), operation="sub"), 2, "one of add, mul, mult, concat, got 'sub'"),
      (dict(dims=(3, 3), partition_num=0), 2, "partition_num: expected .* got 0"),
      (dict(dims=(3, 0)), 2, "two numbers of rows"),
      (dict(dims=(3, 3), operation="add"), (2, 3), "one length, got 2 and 3"),
      (dict(dims=(3, 3)), (2, 2, 2), "one length of rows or two"),
      (dict(dims=[[3, 2], [3, 2]]), 4, r"lengths \(2, 2\), but dimension is 4"))
  def test_multihash_refuses(self, arguments, dimension, message):
    with self.assertRaisesRegex(ValueError, "'ids': .*" + message):
      _fc.embedding_column(
          _fc.categorical_column_with_multihash("ids", dtype=tf.int64, **arguments),
          dimension)

  def test_wrong_types(self):
    with self.assertRaisesRegex(ValueError, "ids"):
      _fc.categorical_column_with_embedding("ids", tf.float32)
    with tf.Graph().as_default():
      column = _fc.categorical_column_with_embedding("ids")
      with self.assertRaisesRegex(ValueError, "'ids'.*string.*int64"):
        _fc.input_layer(_features(), [_fc.embedding_column(column, _DIM)])

  def test_indicators(self):
    with tf.Graph().as_default():
      for wrap in (lambda c: c, lambda c: _fc.weighted_categorical_column(c, "weights")):
        column = _fc.indicator_column(wrap(_column("table")))
        for build in (_fc.input_layer, _fc.linear_model):
          with self.assertRaisesRegex(ValueError, "indicator_column of 'ids'.*unbounded"):
            build(_features(), [column])
      _fc.input_layer(_features(), [_fc.indicator_column(_column("dense"))])

  def test_options_that_this_version_lacks(self):
    option = ev.EmbeddingVariableOption(ckpt=ev.CheckpointOption("/somewhere"))
    with tf.Graph().as_default():
      column = _fc.categorical_column_with_embedding(
          "ids", tf.int64, ev_option=option)
      with self.assertRaisesRegex(
          NotImplementedError,
          "'input_layer/ids_embedding/embedding_weights'.*CheckpointOption"):
        _fc.input_layer(_features(), [_fc.embedding_column(column, _DIM)])


@unittest.skipIf(contrib_layers is None, "this TensorFlow has no contrib")
class ContribLayersTest(parameterized.TestCase):
  """Columns of `tf.contrib.layers`."""

  def column(self, kind, key="ids", **kwargs):
    if kind == "table":
      option = ev.EmbeddingVariableOption(
          init_option=ev.InitializerOption(default_value_dim=_ROWS))
      return contrib_layers.sparse_column_with_embedding(
          key, dtype=tf.int64, ev_option=option, **kwargs)
    return contrib_layers.sparse_column_with_integerized_feature(key, _ROWS)

  def check(self, build, names):
    """Compares a model with tables with one with dense variables."""
    first, second, tables, got_names = _run(build, "table")
    dense = _run(build, "dense")
    self.assertEqual(got_names, names)
    np.testing.assert_allclose(first, dense[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(second, dense[1], rtol=1e-5, atol=1e-6)
    self.assertTrue((first != second).any())
    return tables

  @parameterized.parameters(None, 3)
  def test_embedding_column(self, partition_num):

    def build(kind):
      kwargs = {} if kind == "dense" else {"partition_num": partition_num}
      return contrib_layers.input_from_feature_columns(_features(), [
          contrib_layers.embedding_column(self.column(kind, **kwargs), _DIM,
                                          initializer=_initializer)])

    name = "input_from_feature_columns/ids_embedding/weights"
    self.check(build, [name] if partition_num is None else [
        "%s/part_%d" % (name, i) for i in range(3)])

  def test_weighted_and_clipped(self):
    self.check(lambda kind: contrib_layers.input_from_feature_columns(_features(), [
        contrib_layers.embedding_column(
            contrib_layers.weighted_sparse_column(self.column(kind), "weights"), _DIM,
            "sum", initializer=_initializer, max_norm=.5)]),
               ["input_from_feature_columns/ids_weighted_by_weights_embedding/weights"])

  def test_shared(self):
    # The columns must share one table, whatever their order.
    self.check(lambda kind: contrib_layers.input_from_feature_columns(
        _features(), contrib_layers.shared_embedding_columns(
            [self.column(kind), self.column(kind, "others")], _DIM,
            shared_embedding_name="both", initializer=_initializer)),
               ["input_from_feature_columns/ids_shared_embedding/both"])
    with tf.Graph().as_default():
      for dim, key in ((2, "ids"), (3, "others")):
        column = contrib_layers.shared_embedding_columns(
            [self.column("table", key)], dim, shared_embedding_name="one")
        if dim == 2:
          contrib_layers.input_from_feature_columns(_features(), column)
      with self.assertRaisesRegex(ValueError, "shared embedding 'one'.*dimension 3"):
        contrib_layers.input_from_feature_columns(_features(), column)

  @parameterized.parameters(None, 2)
  def test_weighted_sum(self, partition_num):

    def build(kind):
      kwargs = {} if kind == "dense" else {"partition_num": partition_num}
      output, variables, _ = contrib_layers.weighted_sum_from_feature_columns(
          _features(), [self.column(kind, **kwargs)], num_outputs=2)
      self.assertLen(list(variables.values())[0], partition_num or 1
                     if kind == "table" else 1)
      return output + 1.0

    name = "weighted_sum_from_feature_columns/ids/weights"
    self.check(build, [name] if partition_num is None else [
        "%s/part_%d" % (name, i) for i in range(2)])

  def test_sequence(self):
    self.check(lambda kind: contrib_layers.sequence_input_from_feature_columns(
        _features(), [contrib_layers.embedding_column(self.column(kind), _DIM,
                                                      initializer=_initializer)]),
               ["sequence_input_from_feature_columns/ids_embedding/weights"])

  def test_in_a_column_of_core(self):
    self.check(lambda kind: _fc.input_layer(_features(), [
        _fc.embedding_column(self.column(kind), _DIM, initializer=_initializer)]),
               ["input_layer/ids_embedding/embedding_weights"])

  def test_strings_and_indices_beyond_the_shape(self):
    with tf.Graph().as_default(), pairs.session() as session:
      column = contrib_layers.sparse_column_with_embedding("words", steps_to_live=5)
      self.assertEqual(column.ev_option.evict.steps_to_live, 5)
      # DeepRec's scripts and tests use column indices beyond the dense shape.
      words = tf.SparseTensor([[0, 0], [1, 1], [2, 2], [3, 3]], ["a", "b", "a", "c"],
                              [5, 2])
      output = contrib_layers.input_from_feature_columns(
          {"words": words}, [contrib_layers.embedding_column(column, 9)])
      v, = tf.get_collection("embedding_variables")
      self.assertIn(v, tf.get_collection(tf.GraphKeys.MODEL_VARIABLES))
      train = tf.train.AdagradOptimizer(.1).minimize(tf.reduce_sum(output))
      session.run(tf.global_variables_initializer())
      got = session.run(output)
      np.testing.assert_array_equal(got[0], got[2])
      np.testing.assert_array_equal(got[4], np.zeros(9))
      # Initialized without the usual division by the root of the row count, which a table
      # does not have.
      self.assertBetween(np.abs(got[:4]).mean(), .05, 1)
      session.run(train)
      self.assertCountEqual(
          session.run(v.export()[0]),
          session.run(tf.strings.to_hash_bucket_fast(["a", "b", "c"], 2**63 - 1)))

  def test_init_from_checkpoint(self):
    path = self.create_tempdir().full_path + "/model"
    with tf.Graph().as_default(), pairs.session() as session:
      table = pairs.table("a", pairs.rows(3, _DIM))
      rows = tf.nn.embedding_lookup(table, [0, 1])
      train = tf.train.GradientDescentOptimizer(.1).minimize(tf.reduce_sum(rows))
      tf.get_variable("dense", initializer=[1., 2.])
      session.run(tf.global_variables_initializer())
      session.run(train)
      expected = session.run(rows)
      tf.train.Saver().save(session, path)
    with tf.Graph().as_default(), pairs.session() as session:
      table = pairs.table("b", np.zeros([1, _DIM], np.float32))
      dense = tf.get_variable("other", [2])
      contrib_framework.init_from_checkpoint(path, {"a": table, "dense": "other"})
      session.run(tf.global_variables_initializer())
      np.testing.assert_array_equal(
          session.run(tf.nn.embedding_lookup(table, [0, 1])), expected)
      np.testing.assert_array_equal(session.run(dense), [1, 2])

  def test_refuses(self):
    make = contrib_layers.sparse_column_with_embedding
    with self.assertRaisesRegex(ValueError, "c"):
      make("c", tf.float32)
    with self.assertRaisesRegex(ValueError, "'c': evconfig"):
      make("c", ev_option=ev.EmbeddingVariableOption(),
           evconfig=ev.EmbeddingVariableOption())
    with self.assertRaisesRegex(NotImplementedError, "'c': .*init_data_source"):
      make("c", init_data_source="x")
    with tf.Graph().as_default():
      with self.assertRaisesRegex(ValueError, "'ids'.*string.*int64"):
        contrib_layers.weighted_sum_from_feature_columns(_features(), [make("ids")], 1)
      with self.assertRaisesRegex(ValueError, "'ids'.*weighted_sum_from"):
        contrib_layers.joint_weighted_sum_from_feature_columns(
            _features(), [make("ids", tf.int64)], 1)
      with self.assertRaisesRegex(ValueError, "not compatible"):
        contrib_layers.shared_embedding_columns(
            [self.column("table"), self.column("dense", "others")], _DIM)


if __name__ == "__main__":
  absltest.main()
