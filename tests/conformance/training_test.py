# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Embedding variables with TensorFlow's training features."""

import os
import subprocess
import sys
import threading

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
from embedding_variable import _lib
import pairs

_ROWS, _DIM = 40, 4


def _model_fn(features, labels, mode, params):
  """A regression with one categorical feature."""
  column = tf.feature_column.embedding_column(
      tf.feature_column.categorical_column_with_embedding(
          "ids", dtype=tf.int64, partition_num=params.get("parts")),
      _DIM, combiner="sum")
  net = tf.feature_column.input_layer(features, [column])
  prediction = tf.reduce_sum(
      net * tf.get_variable("w", [_DIM], initializer=tf.ones_initializer()), 1)
  if mode == tf.estimator.ModeKeys.PREDICT:
    return tf.estimator.EstimatorSpec(
        mode, predictions={"y": prediction},
        export_outputs={
            "serving_default": tf.estimator.export.PredictOutput(
                {"y": prediction})})
  loss = tf.losses.mean_squared_error(labels, prediction)
  if mode == tf.estimator.ModeKeys.EVAL:
    return tf.estimator.EstimatorSpec(mode, loss=loss)
  train = params["optimizer"]().minimize(
      loss, global_step=tf.train.get_global_step())
  return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def _input_fn():
  random = np.random.RandomState(0)
  ids = random.randint(0, _ROWS, size=[64, 3]).astype(np.int64)
  labels = (ids % 2).sum(axis=1).astype(np.float32)
  dataset = tf.data.Dataset.from_tensor_slices(({"ids": ids}, labels))
  return dataset.batch(16).repeat(30)


class EstimatorTest(parameterized.TestCase):

  @parameterized.parameters(
      (None, lambda: tf.train.AdagradOptimizer(.2)),
      (2, lambda: tf.train.AdamOptimizer(.05)),
      (None, lambda: tf.train.ProximalAdagradOptimizer(.2)))
  def test_train_evaluate_predict_export(self, parts, optimizer):
    directory = self.create_tempdir().full_path
    estimator = tf.estimator.Estimator(
        _model_fn, os.path.join(directory, "model"),
        config=tf.estimator.RunConfig(tf_random_seed=1, save_checkpoints_steps=25),
        params={"parts": parts, "optimizer": optimizer})
    estimator.train(_input_fn, steps=10)
    first = estimator.evaluate(_input_fn, steps=4)["loss"]
    estimator.train(_input_fn, steps=50)
    second = estimator.evaluate(_input_fn, steps=4)
    self.assertLess(second["loss"], first)
    self.assertEqual(second["global_step"], 60)
    predicted = [p["y"] for p in estimator.predict(_input_fn)][:64]
    self.assertLen(predicted, 64)

    def serving():
      ids = tf.placeholder(tf.int64, [None, 3])
      return tf.estimator.export.ServingInputReceiver({"ids": ids}, {"ids": ids})

    exported = estimator.export_saved_model(
        os.path.join(directory, "export"), serving)
    ids = np.random.RandomState(0).randint(0, _ROWS, size=[64, 3])
    if hasattr(tf, "contrib"):
      served = tf.contrib.predictor.from_saved_model(exported)({"ids": ids})["y"]
    else:
      with tf.Session(graph=tf.Graph()) as session:
        meta = tf.saved_model.loader.load(session, ["serve"], exported)
        signature = meta.signature_def["serving_default"]
        served = session.run(signature.outputs["y"].name,
                             {signature.inputs["ids"].name: ids})
    np.testing.assert_allclose(served, predicted, rtol=1e-6)
    self._serve_without_the_package(exported, ids[:3], predicted[:3])

  def _serve_without_the_package(self, exported, ids, expected):
    """Serves in a process with only stock TensorFlow and the op library."""
    program = """
import sys, numpy as np, tensorflow as tf
tf.load_op_library(sys.argv[1])
with tf.Session(graph=tf.Graph()) as session:
  meta = tf.saved_model.loader.load(session, ["serve"], sys.argv[2])
  signature = meta.signature_def["serving_default"]
  y = session.run(signature.outputs["y"].name,
                  {signature.inputs["ids"].name: np.array(%s)})
assert "embedding_variable" not in sys.modules
print("RESULT", " ".join("%%.9g" %% x for x in y))
""" % (ids.tolist(),)
    output = subprocess.check_output(
        [sys.executable, "-c", program, _lib.library_path(),
         exported.decode()], stderr=subprocess.PIPE).decode()
    result = output.split("RESULT")[1].split()
    np.testing.assert_allclose([float(x) for x in result], expected, rtol=1e-6)

  def test_canned_estimator(self):
    column = tf.feature_column.categorical_column_with_embedding(
        "ids", dtype=tf.int64)
    estimator = tf.estimator.DNNLinearCombinedRegressor(
        model_dir=self.create_tempdir().full_path,
        linear_feature_columns=[column],
        dnn_feature_columns=[tf.feature_column.embedding_column(column, _DIM)],
        dnn_hidden_units=[4], config=tf.estimator.RunConfig(tf_random_seed=1))
    estimator.train(_input_fn, steps=10)
    first = estimator.evaluate(_input_fn, steps=4)["average_loss"]
    estimator.train(_input_fn, steps=100)
    self.assertLess(estimator.evaluate(_input_fn, steps=4)["average_loss"], first)
    tables = {name.rsplit("-", 1)[0] for name in estimator.get_variable_names()
              if name.endswith("-keys")}
    # The wide and the deep part each have their optimizer's slots.
    self.assertTrue(any("linear" in t and "Ftrl" in t for t in tables), tables)
    self.assertTrue(any("dnn" in t and "Adagrad" in t for t in tables), tables)


class SessionsTest(parameterized.TestCase):

  def _graph(self, optimizer=lambda: tf.train.AdagradOptimizer(.1)):
    tf.set_random_seed(1)
    step = tf.train.get_or_create_global_step()
    v = tf.get_embedding_variable("v", _DIM)
    ids = tf.placeholder(tf.int64, [None], name="ids")
    loss = tf.reduce_sum(
        tf.square(tf.nn.embedding_lookup(v, ids) - 1.0), name="loss")
    train = optimizer().minimize(loss, global_step=step, name="train")
    return v, ids, loss, train

  def test_monitored_training_session(self):
    directory = self.create_tempdir().full_path
    losses = []
    for last in (3, 6):
      with tf.Graph().as_default():
        _, ids, loss, train = self._graph()
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=directory, save_checkpoint_steps=1,
            hooks=[tf.train.StopAtStepHook(last_step=last)]) as session:
          while not session.should_stop():
            losses.append(session.run([loss, train], {ids: [1, 2, 1]})[0])
    self.assertLen(losses, 6)
    with tf.Graph().as_default(), tf.Session() as session:
      v, ids, loss, train = self._graph()
      session.run(tf.global_variables_initializer())
      straight = [session.run([loss, train], {ids: [1, 2, 1]})[0]
                  for _ in range(6)]
    self.assertEqual(losses, straight)

  def test_slots_after_the_initializer(self):
    with tf.Graph().as_default(), tf.Session() as session:
      v = tf.get_embedding_variable("v", _DIM)
      loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(v, [1, 2])))
      init = v.initializer
      session.run(init)
      sgd = tf.train.GradientDescentOptimizer(.1).minimize(loss)
      session.run(sgd)
      # Rows exist and are then widened.
      before = session.run(pairs.read_all(v, 3))
      adam = tf.train.AdamOptimizer()
      train = adam.minimize(loss)
      session.run(tf.variables_initializer(
          [x for x in tf.global_variables() if x is not v]))
      np.testing.assert_array_equal(session.run(pairs.read_all(v, 3)), before)
      first = session.run([loss, train])[0]
      self.assertLess(session.run(loss), first)

  def test_two_optimizers(self):
    with tf.Graph().as_default(), tf.Session() as session:
      v = tf.get_embedding_variable("v", _DIM)
      loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(v, [1, 2])))
      one = tf.train.AdagradOptimizer(.1)
      two = tf.train.AdagradOptimizer(.1)
      trains = [one.minimize(loss), two.minimize(loss)]
      self.assertEqual(list(v.slot_columns), ["Adagrad", "Adagrad_1"])
      session.run(tf.global_variables_initializer())
      for train in trains:
        session.run(train)
      accumulators = session.run([
          o.get_slot(v, "accumulator").sparse_read([1]) for o in (one, two)])
      self.assertTrue((accumulators[0] != accumulators[1]).any())

  def test_slot_view(self):
    with tf.Graph().as_default():
      v = tf.get_embedding_variable("v", _DIM)
      optimizer = tf.train.AdamOptimizer()
      optimizer.minimize(tf.reduce_sum(tf.nn.embedding_lookup(v, [1])))
      m = optimizer.get_slot(v, "m")
      self.assertEqual(m.name, "v/Adam:0")
      self.assertEqual(optimizer.get_slot(v, "v").name, "v/Adam_1:0")
      self.assertEqual(m.shape.as_list(), [_DIM])
      self.assertEqual(optimizer.get_slot_names(), ["m", "v"])
      self.assertIn(m, optimizer.variables())
      self.assertCountEqual([x.op.name for x in tf.global_variables()],
                            ["v", "beta1_power", "beta2_power"])

  def test_meta_graph(self):
    path = os.path.join(self.create_tempdir().full_path, "model")
    with tf.Graph().as_default(), tf.Session() as session:
      v, ids, loss, train = self._graph(tf.train.AdamOptimizer)
      tf.get_embedding_variable("p", 2, partitioner=tf.fixed_size_partitioner(2))
      saver = tf.train.Saver()
      session.run(tf.global_variables_initializer())
      session.run(train, {ids: [1, 2, 1]})
      saver.save(session, path)
      expected = [session.run([loss, train], {ids: [1, 3]})[0] for _ in range(3)]
    with tf.Graph().as_default() as graph, tf.Session() as session:
      saver = tf.train.import_meta_graph(path + ".meta")
      saver.restore(session, path)
      v, = [x for x in tf.global_variables() if x.op.name == "v"]
      self.assertTrue(ev.is_embedding_variable(v))
      self.assertIn(v, tf.get_collection("embedding_variables"))
      self.assertEqual(v.shape.as_list(), [_DIM])
      self.assertEqual(list(v.slot_columns), ["Adam", "Adam_1"])
      self.assertEqual(session.run(v).tolist(), [2, _DIM])
      # A Saver made from the imported variables saves the slots as well.
      tf.train.Saver().save(session, path + "_again")
      self.assertEqual(
          tf.train.load_variable(path + "_again", "v/Adam_1-values").shape,
          (2, _DIM))
      train = graph.get_operation_by_name("train")
      losses = [session.run(["loss:0", train], {"ids:0": [1, 3]})[0]
                for _ in range(3)]
      self.assertEqual(losses, expected)
      # New lookups and a new optimizer work with the imported variable.
      more = tf.train.AdagradOptimizer(.1).minimize(
          tf.reduce_sum(tf.nn.embedding_lookup(v, [9])))
      session.run(tf.variables_initializer([
          x for x in tf.global_variables() if "Adagrad" in x.op.name]))
      session.run(more)
      self.assertEqual(session.run(v)[0], 4)

  def test_import_scope(self):
    with tf.Graph().as_default():
      self._graph()
      meta = tf.train.export_meta_graph()
    with tf.Graph().as_default(), tf.Session() as session:
      tf.train.import_meta_graph(meta, import_scope="one", clear_devices=True)
      v, = tf.get_collection("embedding_variables")
      self.assertEqual(v.op.name, "one/v")
      session.run(tf.global_variables_initializer())
      session.run("one/train", {"one/ids:0": [1]})
      self.assertEqual(session.run(v)[0], 1)

  def test_parameter_servers(self):
    with tf.Graph().as_default():
      with tf.device(tf.train.replica_device_setter(ps_tasks=2)):
        v, ids, _, train = self._graph()
        w = tf.get_embedding_variable("w", _DIM)
        p = tf.get_embedding_variable("p", _DIM,
                                      partitioner=tf.fixed_size_partitioner(2))
        outputs = ev.lookup_sparse(
            [v, w, p], [tf.RaggedTensor.from_row_splits(ids, [0, 1])] * 3)
      del train
      for variable in [v, w] + list(p):
        self.assertIn("/job:ps/", variable.device)
      self.assertNotEqual(v.device, w.device)
      lookups = [op for op in tf.get_default_graph().get_operations()
                 if op.type == "EvLookupSparse"]
      for op in lookups:
        for handle in list(op.inputs)[:op.get_attr("num_tables")]:
          self.assertEqual(op.device, handle.device)
      self.assertLen(outputs, 3)

  def test_tables_do_not_become_constants(self):
    freeze = tf.graph_util.convert_variables_to_constants
    with tf.Graph().as_default() as graph, tf.Session() as session:
      v, _, _, _ = self._graph()
      tf.add(tf.get_variable("dense", [2]), 1, name="dense_plus_one")
      session.run(tf.global_variables_initializer())
      graph_def = graph.as_graph_def()
      for call in (freeze, tf.compat.v1.graph_util.convert_variables_to_constants):
        with self.assertRaisesRegex(ValueError, "constants: 'v'.*SavedModel"):
          call(session, graph_def, ["loss"])
      # Outputs without a table, and tables that stay variables, are accepted.
      frozen = freeze(session, graph_def, ["dense_plus_one"])
      self.assertNotIn("EvHandle", [node.op for node in frozen.node])
      frozen = freeze(session, graph_def, ["loss"], variable_names_blacklist=[v.op.name])
      self.assertIn("EvHandle", [node.op for node in frozen.node])

  @parameterized.parameters(
      (tf.train.AdagradOptimizer,), (tf.train.ProximalGradientDescentOptimizer,))
  def test_check_numerics_of_all_ops(self, optimizer):
    with tf.Graph().as_default(), tf.Session() as session:
      v = tf.get_embedding_variable("v", 1, initializer=tf.ones_initializer())
      ids = tf.placeholder(tf.int64, [None])
      divisor = tf.placeholder(tf.float32, [])
      sparse = tf.SparseTensor(
          tf.stack([tf.range(tf.size(ids, out_type=tf.int64))] * 2, 1), ids, [2, 2])
      rows = tf.nn.embedding_lookup(v, ids) + tf.nn.embedding_lookup_sparse(
          v, sparse, None, combiner="sum")
      loss = tf.reduce_sum(rows / divisor)
      train = optimizer(.1).minimize(loss)
      init = tf.global_variables_initializer()
      check = tf.add_check_numerics_ops()
      session.run(init)
      session.run([train, check], {ids: [1, 2], divisor: 2})
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "Inf"):
        session.run([check], {ids: [1, 2], divisor: 0})

  def test_train_on_a_server(self):
    server = tf.train.Server.create_local_server()
    with tf.Graph().as_default():
      v, ids, loss, train = self._graph()
      with tf.Session(server.target) as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([loss, train], {ids: [1, 2]})[0] for _ in range(4)]
        self.assertLess(losses[-1], losses[0])
        self.assertEqual(session.run(v)[0], 2)

  @parameterized.parameters(
      (lambda: tf.train.AdagradOptimizer(.1),),
      (lambda: tf.train.GradientDescentOptimizer(.1),),
      # Takes the generic path.
      (lambda: tf.train.ProximalGradientDescentOptimizer(.1),))
  def test_concurrent_steps(self, optimizer):
    # Every step adds the same value to each of its rows, so the order does not matter.
    with tf.Graph().as_default(), pairs.session() as session:
      v = tf.get_embedding_variable("v", 1, initializer=tf.zeros_initializer())
      ids = tf.placeholder(tf.int64, [None])
      made = optimizer()
      train = made.minimize(-tf.reduce_sum(tf.nn.embedding_lookup(v, ids)))
      rows = tf.nn.embedding_lookup(v, tf.range(200, dtype=tf.int64))
      session.run(tf.global_variables_initializer())
      errors = []

      def work(seed):
        random = np.random.RandomState(seed)
        try:
          for _ in range(40):
            session.run(train, {ids: random.permutation(200)[:100]})
        except Exception as e:  # pylint: disable=broad-except
          errors.append(e)

      threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
      for thread in threads:
        thread.start()
      for thread in threads:
        thread.join()
      self.assertEqual(errors, [])
      counts = np.zeros(200)
      for seed in range(4):
        random = np.random.RandomState(seed)
        for _ in range(40):
          counts[random.permutation(200)[:100]] += 1
      if isinstance(made, tf.train.AdagradOptimizer):
        step = .1 / np.sqrt(.1 + np.arange(1, counts.max() + 1))
        expected = np.array([step[:int(n)].sum() for n in counts])
      else:
        expected = .1 * counts
      np.testing.assert_allclose(session.run(rows)[:, 0], expected, rtol=1e-5)

  def test_clipping_and_other_gradient_changes(self):
    changes = [
        lambda g: tf.clip_by_global_norm(g, .1)[0],
        lambda g: [tf.clip_by_norm(x, .1) for x in g],
        lambda g: [tf.IndexedSlices(tf.clip_by_value(x.values, -.1, .1), x.indices)
                   for x in g],
        lambda g: [tf.math.scalar_mul(.5, x) for x in g],
        tf.tuple,
    ]
    for change in changes:
      results = []
      for kind in ("table", "resource"):
        with tf.Graph().as_default(), pairs.session() as session:
          v = pairs.make(kind, "v", pairs.rows(_ROWS, _DIM))
          loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(v, [1, 2, 3])))
          optimizer = tf.train.AdagradOptimizer(.1)
          gradients = change([g for g, _ in optimizer.compute_gradients(loss)])
          train = optimizer.apply_gradients(zip(gradients, [v]))
          session.run(tf.global_variables_initializer())
          session.run(train)
          results.append(session.run(pairs.read_all(v, _ROWS)))
      np.testing.assert_allclose(results[0], results[1], rtol=1e-6)

  def test_dense_gradient(self):
    with tf.Graph().as_default():
      v = tf.get_embedding_variable("v", _DIM)
      for optimizer in (tf.train.AdagradOptimizer(.1), tf.keras.optimizers.SGD()):
        with self.assertRaisesRegex(
            TypeError, "'v': its gradient: expected an IndexedSlices"):
          optimizer.apply_gradients([(tf.zeros([_DIM]), v)])

  @parameterized.named_parameters(
      ("_converted", tf.convert_to_tensor), ("_identity", tf.identity),
      ("_stop_gradient", tf.stop_gradient),
      ("_check_numerics", lambda g: tf.check_numerics(g, "g")),
      ("_assert_all_finite", lambda g: tf.debugging.assert_all_finite(g, "g")),
      ("_is_finite", tf.math.is_finite), ("_reduce_sum", tf.reduce_sum),
      ("_product", lambda g: tf.constant(2.) * g),
      # Gradients averaged over towers.
      ("_expand_dims", lambda g: tf.expand_dims(g, 0)),
      ("_stack", lambda g: tf.stack([g, g])),
      ("_concat", lambda g: tf.concat([g, g], 0)), ("_add_n", lambda g: tf.add_n([g, g])),
      # A gradient that passed through other ops.
      ("_identity_of_clipped", lambda g: tf.identity(tf.clip_by_norm(g, 1.))),
      ("_identity_of_unique",
       lambda g: tf.identity(tf.IndexedSlices(g.values, tf.unique(g.indices)[0]))),
      ("_identity_of_cond",
       lambda g: tf.identity(tf.cond(tf.constant(True), lambda: g, lambda: g))))
  def test_a_gradient_does_not_become_dense(self, use):
    with tf.Graph().as_default():
      v = tf.get_embedding_variable("scope/v", _DIM)
      ragged = tf.RaggedTensor.from_row_splits(tf.constant([1, 2], tf.int64), [0, 2])
      for loss in (tf.nn.embedding_lookup(v, [1, 2]),
                   ev.lookup_sparse([v], [ragged], combiners=["sum"])[0],
                   # Two lookups of one variable; a lookup in a loop.
                   tf.nn.embedding_lookup(v, [1]) + tf.nn.embedding_lookup(v, [2]),
                   tf.map_fn(lambda i: tf.nn.embedding_lookup(v, i), tf.range(3),
                             dtype=tf.float32)):
        with self.assertRaisesRegex(
            NotImplementedError,
            r"^embedding variable 'scope/v': its gradient g has no dense value.*Work on "
            r"g\.values"):
          use(tf.gradients(loss, v)[0])

  def test_slices_of_the_script_become_dense(self):
    with tf.Graph().as_default(), tf.Session() as session:
      v = tf.get_embedding_variable("v", _DIM)
      gradient, = tf.gradients(tf.nn.embedding_lookup(v, [1]), v)
      session.run(v.initializer)
      slices = tf.IndexedSlices(gradient.values, gradient.indices, [3, _DIM])
      np.testing.assert_array_equal(session.run(tf.convert_to_tensor(slices)),
                                    np.outer([0, 1, 0], np.ones(_DIM)))
      with self.assertRaisesRegex(ValueError, "without dense_shape"):
        tf.convert_to_tensor(tf.IndexedSlices(tf.ones([1, _DIM]), [1]))

  def test_gradient_noise(self):
    with tf.Graph().as_default():
      v = tf.get_embedding_variable("v", _DIM)
      w = tf.get_variable("w", [_DIM])
      loss = tf.reduce_sum(tf.nn.embedding_lookup(v, [1]) * w)

      def optimize(**kwargs):
        return tf.contrib.layers.optimize_loss(
            loss, tf.train.get_or_create_global_step(), .1, "Adagrad", **kwargs)

      with self.assertRaisesRegex(
          NotImplementedError, "'v': its gradient.* gradient_noise_scale cannot"):
        optimize(gradient_noise_scale=.1)
      self.assertIsNotNone(optimize(gradient_noise_scale=.1, variables=[w]))

  def test_random_slots(self):
    class Noisy(tf.train.GradientDescentOptimizer):

      def _create_slots(self, var_list):
        for var in var_list:
          self._get_or_make_slot_with_initializer(
              var, tf.random_normal_initializer(), var.shape, tf.float32, "noise",
              "Noise")

    with tf.Graph().as_default():
      v = tf.get_embedding_variable("v", _DIM)
      with self.assertRaisesRegex(
          ValueError, "'v': the initial value of optimizer slot 'Noise': expected a "
          "constant"):
        Noisy(.1).minimize(tf.reduce_sum(tf.nn.embedding_lookup(v, [1])))


def _graph_rewrite(optimizer):
  return tf.train.experimental.enable_mixed_precision_graph_rewrite(optimizer)


def _keras_dynamic(optimizer):
  return tf.keras.mixed_precision.experimental.LossScaleOptimizer(optimizer, "dynamic")


def _contrib_dynamic(optimizer):
  mixed_precision = tf.contrib.mixed_precision
  return mixed_precision.LossScaleOptimizer(
      optimizer, mixed_precision.ExponentialUpdateLossScaleManager(
          2.**10, 1000, decr_every_n_nan_or_inf=1, decr_ratio=.5))


def _keras_fixed(optimizer):
  return tf.keras.mixed_precision.experimental.LossScaleOptimizer(optimizer, 8.)


def _contrib_fixed(optimizer):
  mixed_precision = tf.contrib.mixed_precision
  return mixed_precision.LossScaleOptimizer(
      optimizer, mixed_precision.FixedLossScaleManager(8.))


class LossScaleTest(parameterized.TestCase):

  def tearDown(self):
    super(LossScaleTest, self).tearDown()
    tf.train.experimental.disable_mixed_precision_graph_rewrite()

  def _train(self, kind, scaled, optimizer, pooled, factors):
    """Trains one step for each factor of the loss. Returns rows, tables' sizes, steps."""
    with tf.Graph().as_default(), pairs.session() as session:
      v = pairs.make(kind, "v", pairs.rows(_ROWS, _DIM))
      w = tf.get_variable("w", initializer=np.ones(_DIM, np.float32), use_resource=True)
      factor = tf.placeholder(tf.float32, [])
      if pooled:
        ids = tf.SparseTensor([[0, 0], [0, 1], [1, 0]],
                              tf.constant([1, 2, 1], tf.int64), [2, 2])
        if pooled == "narrow":
          rows, = ev.lookup_sparse([v], [ids], combiners=["sum"], output_dtype=tf.float16)
        else:
          rows = tf.nn.embedding_lookup_sparse(v, ids, None, combiner="sum")
      else:
        rows = tf.nn.embedding_lookup(v, [1, 2, 1])
      # Casts as in a script, or as the graph rewrite inserts them on a GPU.
      rows = tf.cast(tf.cast(rows, tf.float16), tf.float32)
      loss = factor * tf.reduce_sum(tf.square(rows * w))
      made = scaled(optimizer())
      step = tf.train.get_or_create_global_step()
      if isinstance(made, tf.keras.optimizers.Optimizer):
        gradients = made.get_gradients(loss, [v, w])
        train = made.apply_gradients(zip(gradients, [v, w]))
        step = made.iterations
      else:
        train = made.minimize(loss, step)
      size = v.total_count()[0] if kind == "table" else tf.constant(0)
      session.run(tf.global_variables_initializer())
      sizes = []
      for number in factors:
        session.run(train, {factor: number})
        sizes.append(session.run(size))
      return session.run([pairs.read_all(v, _ROWS), w]), sizes, session.run(step)

  @parameterized.named_parameters(
      *[("_%s_of_%s%s" % (scale, of, "_pooled" if pooled else ""), scaled, optimizer, pooled)
        for scale, scaled, of, optimizer in [
            ("rewrite", _graph_rewrite, "adagrad", lambda: tf.train.AdagradOptimizer(.1)),
            ("rewrite", _graph_rewrite, "adam", tf.train.AdamOptimizer),
            ("rewrite", _graph_rewrite, "proximal_adagrad",
             lambda: tf.train.ProximalAdagradOptimizer(.1)),
            ("rewrite", _graph_rewrite, "keras_adagrad",
             lambda: tf.keras.optimizers.Adagrad(.1)),
            ("contrib", _contrib_dynamic, "adagrad", lambda: tf.train.AdagradOptimizer(.1)),
            ("keras", _keras_dynamic, "keras_adagrad",
             lambda: tf.keras.optimizers.Adagrad(.1)),
            ("keras", _keras_dynamic, "keras_adamax", lambda: tf.keras.optimizers.Adamax(.1)),
        ] for pooled in (False, True)])
  def test_dynamic(self, scaled, optimizer, pooled):
    inf, nan = np.inf, np.nan
    factors = [inf, 1, 1, nan, 1]
    found, sizes, steps = self._train("table", scaled, optimizer, pooled, factors)
    # A skipped step inserts no rows and is not counted.
    self.assertEqual(sizes, [0, 2, 2, 2, 2])
    self.assertEqual(steps, 3)
    # Equal to training without the skipped steps and without a loss scale, because the
    # scale is a power of two.
    expected, _, _ = self._train("table", lambda x: x, optimizer, pooled, [1, 1, 1])
    for a, b in zip(found, expected):
      np.testing.assert_array_equal(a, b)
    # in a dense variable Adam also decays the other rows
    if optimizer is not tf.train.AdamOptimizer:
      dense, _, _ = self._train("resource", scaled, optimizer, pooled, factors)
      for a, b in zip(found, dense):
        np.testing.assert_allclose(a, b, rtol=1e-5)

  @parameterized.named_parameters(
      ("_rewrite", _graph_rewrite, lambda: tf.train.AdagradOptimizer(.1)),
      ("_contrib", _contrib_dynamic, lambda: tf.train.AdagradOptimizer(.1)),
      ("_keras", _keras_dynamic, lambda: tf.keras.optimizers.Adagrad(.1)))
  def test_narrow_outputs(self, scaled, optimizer):
    # Small enough for scaled gradients in float16.
    factors = [np.inf, .01, .01, np.nan, .01]
    found, sizes, steps = self._train("table", scaled, optimizer, "narrow", factors)
    self.assertEqual(sizes, [0, 2, 2, 2, 2])
    self.assertEqual(steps, 3)
    expected, _, _ = self._train("table", lambda x: x, optimizer, "narrow", [.01] * 3)
    for a, b in zip(found, expected):
      np.testing.assert_array_equal(a, b)

  def test_a_step_whose_narrow_gradients_overflow_is_skipped(self):
    # The loss and its float32 gradients are finite; as float16 they are not.
    _, sizes, steps = self._train("table", _graph_rewrite,
                                  lambda: tf.train.AdagradOptimizer(.1), "narrow", [1e6])
    self.assertEqual((sizes, steps), ([0], 0))

  @parameterized.parameters(
      (_keras_fixed, lambda: tf.keras.optimizers.Adagrad(.1)),
      (_contrib_fixed, lambda: tf.train.AdagradOptimizer(.1)))
  def test_fixed(self, scaled, optimizer):
    found, _, _ = self._train("table", scaled, optimizer, True, [1, 1])
    expected, _, _ = self._train("table", lambda x: x, optimizer, True, [1, 1])
    for a, b in zip(found, expected):
      np.testing.assert_array_equal(a, b)

  def test_a_skipped_step_counts_nothing(self):
    with tf.Graph().as_default(), tf.Session() as session:
      option = ev.EmbeddingVariableOption(
          filter_option=ev.CounterFilter(filter_freq=2))
      v = tf.get_embedding_variable("v", _DIM, ev_option=option)
      factor = tf.placeholder(tf.float32, [])
      loss = factor * tf.reduce_sum(tf.nn.embedding_lookup(v, [7]))
      train = _graph_rewrite(tf.train.AdagradOptimizer(.1)).minimize(loss)
      counted = v.get_frequency([7])
      session.run(tf.global_variables_initializer())
      for number, expected in [(1, 1), (np.inf, 1), (1, 2)]:
        session.run(train, {factor: number})
        self.assertEqual(session.run(counted), [expected])


class DeterminismTest(parameterized.TestCase):

  def _train(self, optimizer, threads):
    with tf.Graph().as_default(), pairs.session(threads) as session:
      tf.set_random_seed(5)
      tables = [tf.get_embedding_variable("v%d" % i, d)
                for i, d in enumerate((3, 16, 17))]
      random = np.random.RandomState(2)
      ids = tf.placeholder(tf.int64, [None])
      ragged = tf.RaggedTensor.from_row_splits(
          ids, np.arange(0, 3001, 10, dtype=np.int64))
      outputs = ev.lookup_sparse(tables, [ragged] * 3,
                                 combiners=["sum", "mean", "sum"])
      rows = tf.nn.embedding_lookup(tables[1], ids[:100])
      loss = tf.add_n([tf.reduce_sum(tf.square(o)) for o in outputs + [rows]])
      train = optimizer().minimize(loss)
      export = [t.export()[:2] for t in tables]
      session.run(tf.global_variables_initializer())
      for _ in range(4):
        session.run(train, {ids: random.zipf(1.3, 3000) % 100000})
      return session.run(export)

  @parameterized.parameters(
      (lambda: tf.train.AdagradOptimizer(.1),), (tf.train.AdamOptimizer,),
      # Takes the generic path.
      (lambda: tf.train.ProximalAdagradOptimizer(.1),))
  def test_same_bits_for_any_number_of_threads(self, optimizer):
    expected = self._train(optimizer, 1)
    self.assertGreater(expected[0][0].size, 100)
    for threads in (1, 2, 8):
      found = self._train(optimizer, threads)
      for (keys, values), (other_keys, other_values) in zip(expected, found):
        np.testing.assert_array_equal(keys, other_keys)
        np.testing.assert_array_equal(values, other_values)


if __name__ == "__main__":
  absltest.main()
