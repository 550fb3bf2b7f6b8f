# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0

import inspect
import os
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf
from embedding_variable.tf_names import context
from embedding_variable.tf_names import tf_logging
from embedding_variable.tf_names import variable_scope
from embedding_variable.tf_names import variables

import embedding_variable as ev


class CreationTest(parameterized.TestCase):

  def setUp(self):
    super(CreationTest, self).setUp()
    self._graph = tf.Graph().as_default()
    self._graph.__enter__()
    self.addCleanup(self._graph.__exit__, None, None, None)

  def _run(self, fetches, **kwargs):
    with tf.Session() as session:
      session.run(tf.global_variables_initializer())
      return session.run(fetches, **kwargs)

  def test_get_is_tf_get_embedding_variable(self):
    self.assertIs(ev.get, ev.get_embedding_variable)
    with tf.Graph().as_default():
      table = ev.get("t", embedding_dim=4)
      self.assertIsInstance(table, ev.EmbeddingVariable)

  def test_signature_is_deeprecs(self):
    parameters = inspect.signature(tf.get_embedding_variable).parameters
    self.assertEqual(list(parameters), [
        "name", "embedding_dim", "key_dtype", "value_dtype", "initializer",
        "regularizer", "trainable", "collections", "caching_device", "partitioner",
        "validate_shape", "custom_getter", "constraint", "steps_to_live",
        "init_data_source", "ev_option"
    ])
    self.assertEqual(parameters["key_dtype"].default, tf.int64)
    self.assertIs(parameters["trainable"].default, True)

  def test_collections(self):
    v = tf.get_embedding_variable("v", 4)
    w = tf.get_embedding_variable("w", 4, trainable=False, collections=["mine"])
    self.assertEqual(tf.global_variables(), [v])
    self.assertEqual(tf.trainable_variables(), [v])
    self.assertEqual(tf.get_collection("mine"), [w])
    self.assertEqual(tf.get_collection(tf.GraphKeys.EMBEDDING_VARIABLES), [v, w])
    self.assertFalse(w.trainable)

  def test_scopes_and_reuse(self):
    with tf.variable_scope("a"):
      v = tf.get_embedding_variable("v", 4)
    with tf.variable_scope("a", reuse=True):
      self.assertIs(tf.get_embedding_variable("v", 4), v)
    with tf.variable_scope("a", reuse=tf.AUTO_REUSE):
      self.assertIs(tf.get_embedding_variable("v", 4), v)
      w = tf.get_embedding_variable("w", 4)
      self.assertIs(tf.get_embedding_variable("w", 4), w)
    self.assertEqual(v.name, "a/v:0")
    with tf.name_scope("not_in_the_name"):
      self.assertEqual(tf.get_embedding_variable("x", 4).op.name, "x")

  @parameterized.parameters(
      (dict(name="v", embedding_dim=4), "Variable v already exists", False),
      (dict(name="v", embedding_dim=5), r"specified shape \(5,\) and found", True),
      (dict(name="v", embedding_dim=4, key_dtype=tf.int32),
       "v, but specified key_dtype int32 and found int64", True),
      (dict(name="dense", embedding_dim=3), "a variable that is not an embedding variable", True),
      (dict(name="new", embedding_dim=3), "Variable new does not exist", True),
  )
  def test_wrong_reuse(self, kwargs, message, reuse):
    tf.get_embedding_variable("v", 4)
    tf.get_variable("dense", [3])
    with tf.variable_scope("", reuse=reuse):
      with self.assertRaisesRegex(ValueError, message):
        tf.get_embedding_variable(**kwargs)

  @parameterized.parameters(
      (dict(embedding_dim=0), ValueError, "embedding_dim: .* got 0"),
      (dict(embedding_dim=-3), ValueError, "embedding_dim: .* got -3"),
      (dict(embedding_dim=2.5), ValueError, "embedding_dim: .* got 2.5"),
      (dict(embedding_dim=None), ValueError, "embedding_dim: .* got None"),
      (dict(embedding_dim=[2, 3]), ValueError, r"got \[2, 3\]"),
      (dict(embedding_dim=3, key_dtype=tf.string), ValueError,
       "key_dtype: .* got string"),
      (dict(embedding_dim=3, value_dtype=tf.float64), ValueError,
       "value_dtype: expected float32, float16 or bfloat16, got float64"),
      (dict(embedding_dim=3, regularizer=tf.nn.l2_loss), ValueError, "regularizer"),
      (dict(embedding_dim=3, constraint=abs), ValueError, "constraint"),
      (dict(embedding_dim=3, caching_device="/cpu:0"), ValueError,
       "caching_device"),
      (dict(embedding_dim=3, steps_to_live=-5), ValueError, "steps_to_live"),
      (dict(embedding_dim=3, init_data_source="x"), NotImplementedError,
       "init_data_source"),
      (dict(embedding_dim=3, initializer=tf.zeros([4])), ValueError,
       r"a scalar or of shape \[3\], got \(4,\)"),
  )
  def test_wrong_arguments_name_the_variable(self, kwargs, error, message):
    with tf.variable_scope("scope"):
      with self.assertRaisesRegex(error, "'scope/v'.*" + message):
        tf.get_embedding_variable("v", **kwargs)
    self.assertEqual(tf.global_variables(), [])

  def test_steps_to_live_and_l2_exclude_each_other(self):
    option = ev.EmbeddingVariableOption(evict_option=ev.L2WeightEvict(.5))
    with self.assertRaisesRegex(ValueError, "exclude each other"):
      tf.get_embedding_variable("v", 3, steps_to_live=5, ev_option=option)

  def test_deprecated_steps_to_live_is_global_step_evict(self):
    v = tf.get_embedding_variable("v", 3, steps_to_live=5)
    self.assertEqual(v.steps_to_live, 5)
    option = ev.EmbeddingVariableOption(evict_option=ev.GlobalStepEvict(7))
    self.assertEqual(
        tf.get_embedding_variable("w", 3, ev_option=option).steps_to_live, 7)
    with self.assertRaisesRegex(ValueError, "'x': steps_to_live is given twice"):
      tf.get_embedding_variable("x", 3, steps_to_live=5, ev_option=option)

  def test_a_new_key_copies_its_default_row(self):
    rows = np.arange(15, dtype=np.float32).reshape(5, 3)
    option = ev.EmbeddingVariableOption(
        init_option=ev.InitializerOption(
            initializer=lambda shape, dtype: tf.constant(rows),
            default_value_dim=5))
    v = tf.get_embedding_variable("v", 3, ev_option=option)
    keys = [0, 4, 5, -1, -5, 2**63 - 1, -2**63]
    found = self._run(tf.nn.embedding_lookup(v, np.array(keys, np.int64)))
    np.testing.assert_array_equal(found, rows[[k % 5 for k in keys]])

  def test_default_initializer(self):
    v = tf.get_embedding_variable("v", 8)
    self.assertEqual(v.initial_value.shape.as_list(), [4096, 8])
    value = self._run(v.initial_value)
    # tf.truncated_normal_initializer(): no value exceeds two standard deviations.
    self.assertLessEqual(np.abs(value).max(), 2.0)
    self.assertAlmostEqual(value.std(), 0.88, delta=0.02)

  @parameterized.parameters(
      (tf.ones_initializer(), 1.0), (tf.zeros_initializer(), 0.0),
      (tf.constant_initializer(2.5), 2.5), (tf.ones_initializer, 1.0), (3.0, 3.0))
  def test_uniform_initializers_make_one_row(self, initializer, expected):
    v = tf.get_embedding_variable("v", 3, initializer=initializer)
    np.testing.assert_array_equal(
        self._run(v.initial_value), np.full([1, 3], expected))

  def test_constant_row(self):
    v = tf.get_embedding_variable("v", 3, initializer=[1.0, 2.0, 3.0])
    np.testing.assert_array_equal(
        self._run(tf.nn.embedding_lookup(v, [7, 8])), [[1, 2, 3]] * 2)

  @parameterized.parameters(3, 15)
  def test_constants_of_many_numbers(self, count):
    values = np.arange(count, dtype=np.float32)
    option = ev.EmbeddingVariableOption(init_option=ev.InitializerOption(
        initializer=tf.constant_initializer(values), default_value_dim=5))
    v = tf.get_embedding_variable("v", 3, ev_option=option)
    np.testing.assert_array_equal(self._run(v.initial_value), values.reshape([-1, 3]))

  def test_a_constant_of_a_wrong_size(self):
    with self.assertRaises((TypeError, ValueError)):
      tf.get_embedding_variable("v", 3, initializer=tf.constant_initializer([1.] * 6))

  def test_precedence_of_initializers(self):
    one, two = tf.constant_initializer(1.0), tf.constant_initializer(2.0)
    option = ev.EmbeddingVariableOption(init_option=ev.InitializerOption(two))
    with tf.variable_scope("s", initializer=tf.constant_initializer(3.0)):
      a = tf.get_embedding_variable("a", 1, initializer=one, ev_option=option)
      b = tf.get_embedding_variable("b", 1, initializer=one)
      c = tf.get_embedding_variable("c", 1)
    self.assertEqual(
        self._run([v.initial_value for v in (a, b, c)]), [[[2.]], [[1.]], [[3.]]])

  def test_custom_getter(self):
    seen = []

    def custom_getter(getter, name, **kwargs):
      seen.append(name)
      return getter(name + "_renamed", **kwargs)

    v = tf.get_embedding_variable("v", 3, custom_getter=custom_getter)
    self.assertEqual(seen, ["v"])
    self.assertEqual(v.op.name, "v_renamed")

  def test_scope_regularizer_is_not_applied(self):
    with tf.variable_scope("s", regularizer=tf.nn.l2_loss):
      tf.get_embedding_variable("v", 3)
    self.assertEqual(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES), [])

  def test_partitioner(self):
    parts = tf.fixed_size_partitioner(4)
    v = tf.get_embedding_variable("v", 3, partitioner=parts)
    self.assertIsInstance(v, variables.PartitionedVariable)
    self.assertEqual([p.op.name for p in v],
                     ["v/part_%d" % i for i in range(4)])
    with tf.variable_scope("s", partitioner=parts, reuse=tf.AUTO_REUSE):
      w = tf.get_embedding_variable("w", 3)
      self.assertLen(list(w), 4)
      self.assertIs(tf.get_embedding_variable("w", 3), w)
    with tf.variable_scope("s", reuse=True):
      self.assertIs(tf.get_embedding_variable("w", 3), w)
    # The scope's partitioner is unchanged and splits dense variables.
    with tf.variable_scope("t", partitioner=parts) as scope:
      tf.get_embedding_variable("w", 3)
      self.assertIs(scope.partitioner, parts)

  def test_wrong_partitioners(self):
    with self.assertRaisesRegex(ValueError, "'v': the partitioner must cut"):
      tf.get_embedding_variable(
          "v", 4, partitioner=tf.fixed_size_partitioner(2, axis=1))
    tf.get_embedding_variable("w", 4, partitioner=tf.fixed_size_partitioner(3))
    with tf.variable_scope("", reuse=True):
      with self.assertRaisesRegex(ValueError, "2 parts were requested"):
        tf.get_embedding_variable(
            "w", 4, partitioner=tf.fixed_size_partitioner(2))

  def test_records_by_environment(self):
    v = tf.get_embedding_variable("v", 3)
    self.addCleanup(os.environ.pop, "TF_RECORD_FREQ")
    os.environ["TF_RECORD_FREQ"] = "1"
    w = tf.get_embedding_variable("w", 3)
    self.assertFalse(v.need_counts())
    self.assertTrue(w.need_counts())

  def test_initializer_in_a_loop(self):
    def body(i):
      tf.get_embedding_variable("v", 3)
      return i + 1

    tf.while_loop(lambda i: i < 2, body, [0])
    self._run([])
    self.assertLen(tf.global_variables(), 1)

  def test_eager_mode(self):
    with context.eager_mode():
      with self.assertRaisesRegex(
          ValueError, "'v'.*graph mode only.*disable_eager_execution"):
        tf.get_embedding_variable("v", 3)

      @tf.function
      def function():
        return tf.nn.embedding_lookup(tf.get_embedding_variable("v", 3), [1])

      with self.assertRaisesRegex(
          ValueError, "'v'.*graph mode only.*disable_eager_execution"):
        function()

  def test_method_of_a_scope(self):
    """DeepRec's `VariableScope.get_embedding_variable` with `EmbeddingVariableConfig`."""
    store = variable_scope._get_default_variable_store()  # pylint: disable=protected-access
    config = variables.EmbeddingVariableConfig(
        steps_to_live=7, filter_strategy=ev.CounterFilter(3), default_value_dim=5,
        handle_name="v", default_value_no_permission=.5)
    with tf.variable_scope("outer") as scope:
      pass
    v = scope.get_embedding_variable(store, "v", shape=[4], evconfig=config,
                                     initializer=tf.ones_initializer())
    self.assertEqual((v.op.name, v.dim, v.key_dtype), ("outer/v", 4, tf.int64))
    self.assertEqual((v.steps_to_live, v.policy.filter_freq), (7, 3))
    self.assertEqual(v.policy.no_permission, .5)
    self.assertIs(scope.get_embedding_variable(store, "v", 4, reuse=True,
                                               evconfig=config), v)
    w = tf.get_variable_scope().get_embedding_variable(
        store, "w", 2, invalid_key=-1, partitioner=tf.fixed_size_partitioner(2))
    self.assertEqual([x.op.name for x in w], ["w/part_0", "w/part_1"])
    self.assertEqual(list(w)[0].key_dtype, tf.int32)
    l2 = variables.EmbeddingVariableConfig(l2_weight_threshold=.1)
    x = scope.get_embedding_variable(store, "x", 2, evconfig=l2)
    self.assertAlmostEqual(x.policy.l2_weight_threshold, .1)
    for kwargs, error, message in [
        (dict(l2reg_theta=.1), NotImplementedError, "'y'.* l2reg_theta"),
        (dict(init_data_source="x"), NotImplementedError, "'outer/y'.*init_data_source"),
        (dict(ckpt_to_load_from="x"), NotImplementedError, "'outer/y'"),
        (dict(steps_to_live=1, l2_weight_threshold=.1), ValueError, "'y'.*exclude")]:
      with self.assertRaisesRegex(error, message):
        scope.get_embedding_variable(
            store, "y", 2, evconfig=variables.EmbeddingVariableConfig(**kwargs))
    with self.assertRaisesRegex(ValueError, "'y': invalid_key"):
      scope.get_embedding_variable(store, "y", 2, invalid_key=3)
    with self.assertRaisesRegex(ValueError, "'y': var_store"):
      scope.get_embedding_variable(None, "y", 2)

  def test_two_graphs(self):
    v = tf.get_embedding_variable("v", 3)
    with tf.Graph().as_default():
      w = tf.get_embedding_variable("v", 5)
      self.assertEqual(tf.global_variables(), [w])
    self.assertEqual(tf.global_variables(), [v])
    self.assertEqual((v.dim, w.dim), (3, 5))

  def test_same_seed_same_rows(self):
    values = []
    for seed in (1, 1, 2):
      with tf.Graph().as_default():
        tf.set_random_seed(seed)
        v = tf.get_embedding_variable("v", 4)
        values.append(self._run(tf.nn.embedding_lookup(v, [1, 5000])))
    np.testing.assert_array_equal(values[0], values[1])
    self.assertFalse((values[0] == values[2]).any())


def _central(*devices):
  return tf.distribute.experimental.CentralStorageStrategy(list(devices), "/cpu:0")


class LaterGetTest(parameterized.TestCase):
  """Arguments of a call that gets an existing variable."""

  @parameterized.parameters(
      ({}, None), ({"initializer": tf.ones_initializer()}, None),
      ({"initializer": tf.zeros_initializer()}, "initializer"),
      ({"ev_option": ev.EmbeddingVariableOption()}, None),
      ({"ev_option": ev.EmbeddingVariableOption(
          filter_option=ev.CounterFilter(filter_freq=3))}, "ev_option"),
      ({"steps_to_live": 5}, "ev_option"),
      ({"value_dtype": tf.float32}, None), ({"value_dtype": tf.float16}, "value_dtype"),
      ({"collections": ["c"]}, "collections"),
      ({"collections": [tf.GraphKeys.GLOBAL_VARIABLES]}, None),
      ({"collections": ["c"], "trainable": False}, "trainable=False and collections"))
  def test_what_has_no_effect_is_reported_once(self, arguments, reported):
    def get(**kwargs):
      with tf.variable_scope("s", reuse=tf.AUTO_REUSE):
        return tf.get_embedding_variable("t", 2, **kwargs)

    with tf.Graph().as_default():
      table = get(initializer=tf.ones_initializer())
      with mock.patch.object(tf_logging, "warning") as log:
        self.assertIs(table, get(**arguments))
        self.assertIs(table, get(**arguments))
    messages = [call[0][0] % call[0][1:] for call in log.call_args_list]
    messages = [m for m in messages if "no effect" in m]
    self.assertLen(messages, 0 if reported is None else 1)
    if reported is not None:
      self.assertIn("'s/t' exists, so %s of another" % reported, messages[0])


class StrategiesTest(parameterized.TestCase):
  """Variables in the scope of strategies of tf.distribute."""

  @parameterized.named_parameters(
      ("_one_device", lambda: tf.distribute.MirroredStrategy(["/cpu:0"]), "MirroredStrategy"),
      ("_two_devices", lambda: tf.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"]),
       "MirroredStrategy"),
      ("_workers", tf.distribute.experimental.MultiWorkerMirroredStrategy,
       "CollectiveAllReduce"),
      ("_contrib", lambda: tf.contrib.distribute.MirroredStrategy(num_gpus=0),
       "MirroredStrategy"))
  def test_mirrored_variables_are_refused(self, make, name):
    message = "^embedding variable 'v': tf.distribute's %s.*cannot be copied" % name
    with tf.Graph().as_default():
      with make().scope(), self.assertRaisesRegex(NotImplementedError, message):
        tf.get_embedding_variable("v", 3)
      self.assertEmpty(tf.global_variables())
      # Created outside of the scope, trained inside it.
      v = tf.get_embedding_variable("v", 3)
      for optimizer in (tf.train.AdagradOptimizer(.1), tf.keras.optimizers.Adagrad(.1)):
        with self.assertRaisesRegex(NotImplementedError, message):
          self._train(make(), optimizer, lambda: v)

  def _train(self, strategy, optimizer, variable):
    """Returns the loss of each replica after the update."""

    def step():
      v = variable()
      loss = tf.reduce_sum(tf.nn.embedding_lookup(v, [1, 2]))
      gradients = tf.gradients(loss, [v])
      with tf.control_dependencies([optimizer.apply_gradients(zip(gradients, [v]))]):
        return tf.identity(loss)

    with strategy.scope():
      # The latter is the name in TensorFlow 1.15.
      run = getattr(strategy, "run", None) or strategy.experimental_run_v2
      return strategy.experimental_local_results(run(step))

  @parameterized.named_parameters(
      *[("_%s%s" % (name, kind), strategy, optimizer)
        for name, strategy in (
            ("one_device", lambda: tf.distribute.OneDeviceStrategy("/cpu:0")),
            ("central", lambda: _central("/cpu:0")),
            ("parameter_server", tf.distribute.experimental.ParameterServerStrategy))
        for kind, optimizer in (("", tf.train.AdagradOptimizer),
                                ("_keras", tf.keras.optimizers.Adagrad))])
  def test_one_replica_trains(self, strategy, optimizer):
    with tf.Graph().as_default(), tf.Session() as session:
      results = self._train(strategy(), optimizer(.1),
                            lambda: tf.get_embedding_variable("v", 3))
      session.run(tf.global_variables_initializer())
      session.run(results)
      v, = tf.get_collection(tf.GraphKeys.EMBEDDING_VARIABLES)
      self.assertEqual(session.run(v.total_count()).tolist(), [2, 3])

  @parameterized.parameters(
      (lambda: _central("/cpu:0"), "CentralStorageStrategy"),
      (tf.distribute.experimental.ParameterServerStrategy, "ParameterServerStrategy"))
  def test_no_device(self, make, name):
    for optimizer in (tf.train.AdagradOptimizer(.1), tf.keras.optimizers.Adagrad(.1)):
      with tf.Graph().as_default():
        strategy = make()
        with strategy.scope():
          v = tf.get_embedding_variable("v", 3)
          with tf.device("/cpu:0"):
            w = tf.get_embedding_variable("w", 3)
        with self.assertRaisesRegex(ValueError, "'v' has no device, .*'s %s" % name):
          self._train(strategy, optimizer, lambda: v)
        self.assertLen(self._train(strategy, optimizer, lambda: w), 1)

  def test_several_replicas_are_refused(self):
    with tf.Graph().as_default():
      with self.assertRaisesRegex(
          NotImplementedError, "'v': tf.distribute's CentralStorageStrategy with several"):
        self._train(_central("/cpu:0", "/cpu:1"), tf.train.AdagradOptimizer(.1),
                    lambda: tf.get_embedding_variable("v", 3))


if __name__ == "__main__":
  absltest.main()
