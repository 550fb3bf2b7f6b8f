# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the interface of SOK before 2.0, in one process."""

import itertools
import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from sparse_operation_kit import experiment as sok
from sparse_operation_kit import testing
from sparse_operation_kit.compat import layers
from sparse_operation_kit.compat import saver


class _GraphTest(parameterized.TestCase):

  def setUp(self):
    super(_GraphTest, self).setUp()
    graph = tf.Graph().as_default()
    graph.__enter__()
    self.addCleanup(graph.__exit__, None, None, None)

  def _session(self):
    session = tf.compat.v1.Session()
    self.addCleanup(session.close)
    session.run(tf.compat.v1.global_variables_initializer())
    return session


class LayersTest(_GraphTest):

  def test_init_is_an_op(self):
    operation = sok.Init(global_batch_size=64, seed=5)
    self._session().run(operation)
    self.assertEqual(tf.compat.v1.get_default_graph().seed, 5)
    with self.assertRaisesRegex(ValueError, "global_batch_size"):
      sok.Init(global_batch_size=0)

  def test_the_optimizer_of_scripts_for_1_15(self):
    # pylint: disable=g-import-not-at-top
    from sparse_operation_kit.tf.keras.optimizers import LazyAdamOptimizer
    self.assertIs(sok.tf.keras.optimizers.LazyAdamOptimizer, LazyAdamOptimizer)
    layer = sok.All2AllDenseEmbedding(8, 4, 1, 1, embedding_initializer="ones")
    output = layer(tf.constant([[1], [3]], tf.int64))
    table = layer.embedding_variable
    optimizer = LazyAdamOptimizer(learning_rate=.5)
    train = optimizer.apply_gradients(
        zip(tf.gradients(tf.reduce_sum(output), [table]), [table]))
    rows = tf.nn.embedding_lookup(table, [1, 2])
    session = self._session()
    session.run(train)
    np.testing.assert_allclose([.5, 1.], session.run(rows)[:, 0], rtol=1e-5)

  @parameterized.product(use_hashtable=[True, False], combiner=["sum", "mean"])
  def test_distributed_embedding_trains(self, use_hashtable, combiner):
    layer = sok.DistributedEmbedding(
        combiner, max_vocabulary_size_per_gpu=8, embedding_vec_size=4, slot_num=2,
        max_nnz=2, use_hashtable=use_hashtable, embedding_initializer="ones")
    ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0], [3, 0]],
                          tf.constant([1, 2, 2, 7], tf.int64), [4, 2])
    output = layer(ids, training=True)
    self.assertEqual(output.shape.as_list(), [2, 2, 4])
    train = tf.compat.v1.train.GradientDescentOptimizer(.5).minimize(
        tf.reduce_sum(output))
    session = self._session()
    first = 2. if combiner == "sum" else 1.
    np.testing.assert_array_equal(
        session.run(output)[..., 0], [[first, 1.], [0., 1.]])
    session.run(train)
    rows = session.run(tf.nn.embedding_lookup(layer.embedding_variable, [1, 2, 7, 3]))
    share = .5 if combiner == "sum" else .25
    np.testing.assert_allclose(rows[:, 0], [1 - share, .5 - share, .5, 1.])
    self.assertEqual([id(v) for v in layer.trainable_variables],
                     [id(layer.embedding_variable)])
    self.assertEqual([id(v) for v in tf.compat.v1.trainable_variables()],
                     [id(layer.embedding_variable)])

  @parameterized.parameters(True, False)
  def test_not_trainable(self, use_hashtable):
    pooled = sok.DistributedEmbedding("sum", 8, 2, slot_num=1, max_nnz=2,
                                      use_hashtable=use_hashtable, trainable=False)
    each = sok.All2AllDenseEmbedding(8, 2, slot_num=1, nnz_per_slot=1,
                                     use_hashtable=use_hashtable, trainable=False)
    for layer in (pooled, each):
      self.assertEmpty(layer.trainable_weights)
    self.assertEmpty(tf.compat.v1.trainable_variables())

  def test_all2all_dense_embedding(self):
    layer = sok.All2AllDenseEmbedding(100, 4, slot_num=3, nnz_per_slot=2)
    dynamic = sok.All2AllDenseEmbedding(100, 4, 3, 2, dynamic_input=True,
                                        key_dtype=tf.int32)
    ids = np.arange(12).reshape(2, 3, 2)
    output = layer(tf.constant(ids))
    flat = dynamic(tf.constant(np.arange(5), tf.int32))
    self.assertEqual(output.shape.as_list(), [2, 3, 2, 4])
    session = self._session()
    rows = session.run(output)
    self.assertBetween(rows.min(), -.05, 0.)
    self.assertBetween(rows.max(), 0., .05)
    np.testing.assert_array_equal(
        rows, session.run(tf.nn.embedding_lookup(layer.embedding_variable, ids)))
    self.assertEqual(session.run(flat).shape, (5, 4))
    self.assertIsInstance(layer.embedding_variable, sok.DynamicVariable)
    self.assertEqual(dynamic.embedding_variable.key_type, tf.int32)

  @parameterized.parameters(True, False)
  def test_ids_of_another_shape(self, use_hashtable):
    pooled = sok.DistributedEmbedding("sum", 8, 2, slot_num=2, max_nnz=2, name="pooled",
                                      use_hashtable=use_hashtable)
    ids = tf.SparseTensor([[0, 0, 0], [0, 1, 0]], tf.constant([1, 2], tf.int64), [1, 2, 1])
    for wrong, kind in ((ids, "SparseTensor"),
                        (tf.ragged.constant([[[1], [2]]], dtype=tf.int64), "RaggedTensor")):
      with self.assertRaisesRegex(
          ValueError, r"layer 'pooled': its ids: expected the shape \[batch \* 2 slots, ids\]"
          ", of rank 2, got a %s of rank 3 and shape" % kind):
        pooled(wrong)
    good = pooled(tf.sparse.reshape(ids, [2, 1]))
    each = sok.All2AllDenseEmbedding(8, 2, slot_num=3, nnz_per_slot=2, name="each")
    with self.assertRaisesRegex(
        ValueError, r"layer 'each': its ids: expected the shape \[batch, 3, 2\], got "
        r"\(1, 3, 4\)"):
      each(tf.zeros([1, 3, 4], tf.int64))
    outputs = [each(tf.zeros(shape, tf.int64)) for shape in ([1, 3, 2], [1, 6], [6])]
    found = self._session().run([good] + outputs)
    self.assertEqual([f.shape for f in found], [(1, 2, 2)] + [(1, 3, 2, 2)] * 3)

  def test_split(self):
    dense = tf.compat.v1.get_variable("d", [1])
    layer = sok.All2AllDenseEmbedding(10, 4, 1, 1)
    ours, others = sok.split_embedding_variable_from_others(
        [dense, layer.embedding_variable])
    self.assertEqual([id(v) for v in ours], [id(layer.embedding_variable)])
    self.assertEqual([id(v) for v in others], [id(dense)])

  def test_optimizer_scope(self):
    v = sok.All2AllDenseEmbedding(10, 2, 1, 1).embedding_variable
    optimizer = tf.compat.v1.train.GradientDescentOptimizer(1.)
    gradient = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([3], tf.int64))
    layers._log_scope.cache_clear()
    with sok.OptimizerScope([v]), self.assertLogs(level="WARNING") as logs:
      with sok.OptimizerScope([v]):
        tf.compat.v1.logging.warning("inside")
    self.assertLen(logs.output, 1)
    with sok.OptimizerScope([v]):
      train = optimizer.apply_gradients([(gradient, v)])
    with sok.OptimizerScope(v):
      pass
    session = self._session()
    before = session.run(tf.nn.embedding_lookup(v, [3]))
    session.run(train)
    np.testing.assert_allclose(
        session.run(tf.nn.embedding_lookup(v, [3])), before - 1)
    with self.assertRaisesRegex(TypeError, "expected variables, got 3"):
      with sok.OptimizerScope([v, 3]):
        pass

  @parameterized.parameters(
      ("combiner", dict(combiner="sqrtn")), ("slot_num", dict(slot_num=0)),
      ("embedding_vec_size", dict(embedding_vec_size=1.5)), ("max_nnz", dict(max_nnz=-1)),
      ("key_dtype", dict(key_dtype=tf.float32)),
      ("max_vocabulary", dict(max_vocabulary_size_per_gpu=None)))
  def test_wrong_arguments(self, words, kwargs):
    good = dict(combiner="sum", max_vocabulary_size_per_gpu=8, embedding_vec_size=4,
                slot_num=2, max_nnz=2)
    with self.assertRaisesRegex(ValueError, words):
      sok.DistributedEmbedding(**dict(good, **kwargs))


class SaverTest(_GraphTest):

  def setUp(self):
    super(SaverTest, self).setUp()
    self._folder = self.create_tempdir().full_path + "/saved"

  @parameterized.parameters("uint32", tf.uint32)
  def test_uint32_keys(self, key_dtype):
    pooled = sok.DistributedEmbedding("sum", 8, 2, slot_num=1, max_nnz=2,
                                      key_dtype=key_dtype)
    each = sok.All2AllDenseEmbedding(8, 2, slot_num=1, nnz_per_slot=2,
                                     key_dtype=key_dtype)
    largest = 2**32 - 1
    ids = tf.constant(np.array([[7, largest]], np.uint32))
    sparse = tf.SparseTensor([[0, 0], [0, 1]], ids[0], [1, 2])
    outputs = [pooled(sparse), pooled(tf.RaggedTensor.from_tensor(ids)), each(ids)]
    v = pooled.embedding_variable
    self.assertEqual(v.m_var_name, "EmbeddingVariable")
    self.assertEqual(each.embedding_variable.m_var_name, "EmbeddingVariable_1")
    saver = sok.Saver()
    session = self._session()
    for layer in (pooled, each):
      session.run(sok.assign(layer.embedding_variable, [7, largest],
                             [[1., 2.], [10., 20.]]))
    for output, expected in zip(session.run(outputs), (
        [[[11, 22]]], [[[11, 22]]], [[[[1, 2], [10, 20]]]])):
      np.testing.assert_array_equal(output, expected)
    session.run(saver.dump_to_file(v, self._folder))
    keys = np.fromfile("%s/%s_keys.file" % (self._folder, v.m_var_name), np.uint32)
    np.testing.assert_array_equal(keys, [7, largest])
    session.run(sok.assign(v, [7, 8], [[0., 0.], [0., 0.]]))
    session.run(saver.restore_from_file(v, self._folder))
    found = session.run(sok.export(v))
    np.testing.assert_array_equal(found[0], [7, largest])
    np.testing.assert_array_equal(found[1], [[1, 2], [10, 20]])
    session.run(sok.assign(v, [-1], [[0., 0.]]))
    with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                "key -1 of .* does not fit into uint32"):
      session.run(saver.dump_to_file(v, self._folder))

  @parameterized.parameters((tf.int64, np.int64), (tf.int32, np.uint32))
  def test_round_trip(self, key_type, file_type):
    v = sok.DynamicVariable(2, "1", var_type="auto", key_type=key_type, name="scope/v")
    saver = sok.Saver()
    session = self._session()
    session.run(sok.assign(v, [5, -3], [[1., 2.], [3., 4.]]))
    session.run(saver.dump_to_file(v, self._folder))
    self.assertEqual(sorted(os.listdir(self._folder)),
                     ["scope_v_keys.file", "scope_v_sums.file",
                      "scope_v_values.file"])
    keys = np.fromfile(self._folder + "/scope_v_keys.file", file_type)
    np.testing.assert_array_equal(keys.view(key_type.as_numpy_dtype), [-3, 5])
    np.testing.assert_array_equal(
        np.fromfile(self._folder + "/scope_v_values.file", np.float32), [3, 4, 1, 2])
    session.run(sok.assign(v, [5, 9], [[0., 0.], [0., 0.]]))
    session.run(saver.restore_from_file(v, self._folder))
    found = session.run(sok.export(v))
    np.testing.assert_array_equal(found[0], [-3, 5])
    np.testing.assert_array_equal(found[1], [[3, 4], [1, 2]])

  def test_files_of_a_layer_of_an_earlier_release(self):
    layer = sok.All2AllDenseEmbedding(8, 2, slot_num=1, nnz_per_slot=1)
    named = sok.All2AllDenseEmbedding(8, 2, slot_num=1, nnz_per_slot=1, name="named")
    v, w = layer.embedding_variable, named.embedding_variable
    self.assertEqual(v.m_var_name, "EmbeddingVariable")
    self.assertEqual(w.m_var_name, "named_embedding")
    session = self._session()
    os.makedirs(self._folder)
    before = "%s/%s" % (self._folder, v.op.name.replace("/", "_"))
    np.array([4], np.int64).tofile(before + "_keys.file")
    np.array([1, 2], np.float32).tofile(before + "_values.file")
    session.run(sok.Saver().restore_from_file(v, self._folder))
    self.assertEqual(session.run(sok.export(v))[1].tolist(), [[1, 2]])
    session.run(sok.assign(v, [4], [[3., 4.]]))
    for table in (v, w):
      session.run(sok.Saver().dump_to_file(table, self._folder))
    session.run(v.initializer)
    session.run(sok.Saver().restore_from_file(v, self._folder))
    self.assertEqual(session.run(sok.export(v))[1].tolist(), [[3, 4]])
    self.assertContainsSubset(
        ["EmbeddingVariable_keys.file", "EmbeddingVariable_values.file",
         "named_embedding_keys.file"], os.listdir(self._folder))

  def test_variables_with_one_file_name(self):
    variables = [sok.DynamicVariable(1, "1", var_type="auto", name=name)
                 for name in ("a/b", "a_b")]
    dumps, restores = zip(*[(sok.Saver().dump_to_file(v, self._folder),
                             sok.Saver().restore_from_file(v, self._folder))
                            for v in variables])
    session = self._session()
    for v in variables:
      session.run(sok.assign(v, [1], [[2.]]))
    session.run(dumps[0])
    for op in (dumps[1], restores[1]):
      with self.assertRaisesRegex(tf.errors.OpError,
                                  "variable 'a_b': .*are those of variable 'a/b'"):
        session.run(op)
    session.run(dumps[0])
    session.run(restores[0])
    os.remove(self._folder + "/a_b_sums.file")
    session.run(restores[1])  # as for files of other programs
    session.run(dumps[1])
    with self.assertRaisesRegex(tf.errors.OpError, "are those of variable 'a_b'"):
      session.run(restores[0])

  def test_a_dump_that_fails_leaves_the_last_one(self):
    v = sok.DynamicVariable(2, "1", name="v")
    dump = sok.Saver().dump_to_file(v, self._folder)
    restore = sok.Saver().restore_from_file(v, self._folder)
    session = self._session()
    session.run(sok.assign(v, [5], [[1., 2.]]))
    session.run(dump)
    session.run(sok.assign(v, [5, 6], [[8., 8.], [9., 9.]]))
    # Creating the file of rows fails.
    os.mkdir(self._folder + "/v_values.file.part")
    with self.assertRaisesRegex(tf.errors.UnknownError, "v_values.file.part"):
      session.run(dump)
    os.rmdir(self._folder + "/v_values.file.part")
    self.assertEqual(sorted(os.listdir(self._folder)),
                     ["v_keys.file", "v_sums.file", "v_values.file"])
    session.run(restore)
    np.testing.assert_array_equal(session.run(sok.export(v))[1], [[1, 2]])
    os.remove(self._folder + "/v_keys.file")
    with self.assertRaisesRegex(tf.errors.OpError, "'v': there is no .*v_keys.file"):
      session.run(restore)

  def test_a_dump_that_is_killed_at_any_step(self):
    self._folder = os.path.join(testing.folder_in_memory(self), "tables")
    v = sok.DynamicVariable(1, "1", var_type="auto", name="v")
    dump = sok.Saver().dump_to_file(v, self._folder)
    restore = sok.Saver().restore_from_file(v, self._folder)
    assign, export = sok.assign(v, [1], [[1.]]), sok.export(v)
    session = self._session()
    writing = saver._write
    seen = []
    for step in itertools.count():
      session.run(assign)
      session.run(dump)
      with testing.Killed(step) as killed:
        writing(self._folder, v, np.array([2]), np.array([[2.]], np.float32))
      session.run(restore)
      keys, values = session.run(export)
      self.assertEqual(keys.tolist(), values.ravel().tolist())
      seen.append(keys.tolist())
      if not killed.happened:
        break
      session.run(v.initializer)
    self.assertEqual([k for i, k in enumerate(seen) if i == 0 or seen[i - 1] != k],
                     [[1], [2]])
    self.assertGreater(len(seen), 5)

  def test_damage_is_named(self):
    v = sok.DynamicVariable(1, "1", name="v")
    dump = sok.Saver().dump_to_file(v, self._folder)
    session = self._session()
    session.run(sok.assign(v, [1], [[1.]]))
    session.run(dump)
    with open(self._folder + "/v_values.file", "r+b") as f:
      f.write(b"x")
    with self.assertRaisesRegex(tf.errors.OpError, "'v': .*v_values.file has 4 bytes"):
      session.run(sok.Saver().restore_from_file(v, self._folder))

  def test_load_embedding_values(self):
    v = sok.DynamicVariable(2, "1", name="v")
    w = sok.Variable(np.zeros([3, 2]))
    values = np.arange(6, dtype=np.float32).reshape(3, 2)
    session = self._session()
    session.run(sok.Saver().load_embedding_values(v, [values[:1], tf.constant(values[1:])]))
    session.run(sok.Saver().load_embedding_values(w, values))
    np.testing.assert_array_equal(session.run(sok.export(v))[0], [0, 1, 2])
    np.testing.assert_array_equal(session.run(sok.export(v))[1], values)
    np.testing.assert_array_equal(session.run(w), values)
    with self.assertRaisesRegex(ValueError, "expected shape"):
      sok.Saver().load_embedding_values(v, np.zeros([3, 3]))

  def test_refuses_files_that_do_not_fit(self):
    v = sok.Variable(np.zeros([3, 2]), name="v")
    session = self._session()
    restore = sok.Saver().restore_from_file(v, self._folder)
    os.makedirs(self._folder)
    with self.assertRaisesRegex(tf.errors.OpError, "there is no .*v_keys.file for 'v'"):
      session.run(restore)
    np.zeros(5, np.float32).tofile(self._folder + "/v_values.file")
    np.arange(3).tofile(self._folder + "/v_keys.file")
    with self.assertRaisesRegex(tf.errors.OpError, "not keys and rows"):
      session.run(restore)
    np.zeros(6, np.float32).tofile(self._folder + "/v_values.file")
    np.array([0, 1, 1]).tofile(self._folder + "/v_keys.file")
    with self.assertRaisesRegex(tf.errors.OpError, "exactly the rows 0 to 2"):
      session.run(restore)

  def test_refuses_other_variables(self):
    dense = tf.compat.v1.get_variable("d", [1, 1])
    for method in (sok.Saver().dump_to_file, sok.Saver().restore_from_file,
                   sok.Saver().load_embedding_values):
      with self.assertRaisesRegex(TypeError, "expected a SOK variable"):
        method(dense, "x")


if __name__ == "__main__":
  absltest.main()
