# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Calls the functions of TensorFlow that the package replaces, on stock objects.

  stock_calls.py stock | patched

Prints a JSON object with the result of each case. "patched" imports embedding_variable
first, and also prints the replacements that no case has called. No case uses a table.
"""

import importlib
import json
import os
import sys
import tempfile
import threading
import traceback

import numpy as np
import tensorflow as tf

import stock_call_parts as parts

tf1 = tf.compat.v1
_cases = []


def case(function):
  _cases.append(function)
  return function


@case
def lookups(unused_folder):

  def build():
    v, ids, weights = parts.variable(), parts.ids(), parts.weights()
    params = tf1.get_variable("parts", [8, 3], initializer=tf1.ones_initializer(),
                              partitioner=tf1.fixed_size_partitioner(3))
    nn, nn2 = tf1.nn, tf.compat.v2.nn
    return [
        nn.embedding_lookup(v, [1, 4], "mod", None, True, 1.),
        nn.embedding_lookup(params=params, ids=[1], partition_strategy="div", max_norm=.5),
        nn.embedding_lookup_sparse(v, ids, weights, "mod", None, "sum", 1.),
        nn.embedding_lookup_sparse(params=params, sp_ids=ids, sp_weights=None,
                                   combiner="mean"),
        nn.safe_embedding_lookup_sparse(v, ids, weights, "sqrtn", 3, None, "div", 2.),
        nn.safe_embedding_lookup_sparse(embedding_weights=v, sparse_ids=ids),
        nn2.embedding_lookup(v, [1, 4], 1., "name"),
        nn2.embedding_lookup_sparse(v, ids, weights, "sum", 1., "name"),
        nn2.safe_embedding_lookup_sparse(v, ids, weights, "sum", 1, 2., "name"),
    ]

  return parts.run(build)


@case
def gather(unused_folder):

  def build():
    ragged = tf1.ragged.constant([[1], [2, 0]])
    v = parts.variable()
    deep = tf.constant(np.arange(24).reshape(2, 4, 3))
    calls = [parts.outcome(tf.gather, v, ragged),
             parts.outcome(tf.gather, deep, ragged, batch_dims=1),
             parts.outcome(tf.gather, v, ragged, name="a"), parts.outcome(tf.gather, ragged, [1]),
             parts.outcome(tf.gather, deep, ragged, axis=1, batch_dims=1),
             parts.outcome(tf.gather, deep, [1, 0], axis=1),
             parts.outcome(tf.gather, params=v, indices=ragged, axis=1)]
    return [c.to_tensor() if hasattr(c, "to_tensor") else c for c in calls]

  return parts.run(build)


@case
def control_flow(unused_folder):

  def build():
    v, w = parts.variable(), parts.variable("w")
    flag = tf1.placeholder_with_default(True, [])
    picked = tf1.cond(flag, lambda: tf.gather(v, [1]) * 2., lambda: tf.gather(w, [2]))

    def body(i, total):
      one, unused_other = tf.split(tf.gather(w, [1, 2]), 2)
      return i + 1, total + one + tf1.nn.embedding_lookup(v, [i])

    _, total = tf1.while_loop(lambda i, t: i < 3, body, [0, tf.zeros([1, 3])])
    loss = tf.reduce_sum(picked) + tf.reduce_sum(total)
    return [tf.convert_to_tensor(g) for g in tf1.gradients(loss, [v, w])]

  results = []
  for choose in (tf1.disable_control_flow_v2, tf1.enable_control_flow_v2):
    choose()
    results.append(parts.run(build))
  if parts.IS_1:
    tf1.disable_control_flow_v2()
  return results


@case
def optimizers(unused_folder):

  def build():
    train = tf1.train
    fetches = []
    step = train.get_or_create_global_step()
    for i, opt in enumerate([train.AdagradOptimizer(.1), train.AdamOptimizer(.1),
                             train.MomentumOptimizer(.1, .9)]):
      v = parts.variable("v%d" % i)
      loss = tf.reduce_sum(tf.square(tf.gather(v, [1, 3]))) + tf.reduce_sum(v)
      pairs = opt.compute_gradients(loss, [v])
      applied = opt.apply_gradients(pairs, step, "applied%d" % i)
      average = train.ExponentialMovingAverage(.5)
      with tf1.control_dependencies([applied]):
        with tf1.control_dependencies([average.apply([v])]):
          fetches.append([tf.identity(v), tf.identity(average.average(v))])
    return fetches

  return parts.run(build)


@case
def sync_replicas(unused_folder):

  def build():
    v = parts.variable()
    opt = tf1.train.SyncReplicasOptimizer(tf1.train.GradientDescentOptimizer(.1), 1)
    op = opt.minimize(tf.reduce_sum(tf.gather(v, [1])),
                      global_step=tf1.train.get_or_create_global_step())
    return tf.constant(op.name)

  return parts.run(build)


@case
def keras_optimizers_of_graphs(unused_folder):
  found = {}
  for keras in parts.kerases():
    optimizers = getattr(keras.optimizers, "legacy", keras.optimizers)
    if not hasattr(getattr(optimizers, "SGD", None), "add_slot"):
      continue
    base = [c for c in optimizers.SGD.__mro__ if "add_slot" in vars(c)][0]
    if base.__module__ in found:
      continue

    def build(optimizers=optimizers):
      v = tf1.get_variable("v", initializer=parts.ROWS, use_resource=True)
      opt = optimizers.SGD(.1, momentum=.9)
      pairs = [(tf.ones_like(v), v)]
      with tf1.control_dependencies([opt.apply_gradients(pairs, "name"),
                                     opt.add_slot(v, "own", "ones").initializer]):
        return tf.identity(v)

    found[base.__module__] = parts.run(build)
  return sorted(found.items())


@case
def keras_optimizers(unused_folder):
  if parts.IS_1:
    return None
  results, seen = {}, set()
  for keras in parts.kerases():
    base = keras.optimizers.Optimizer
    if not hasattr(base, "update_step"):
      continue
    for name, cls in sorted(vars(keras.optimizers).items()):
      if not isinstance(cls, type) or not issubclass(cls, base) or cls in seen or (
          cls is base):
        continue
      seen.add(cls)
      inner = keras.optimizers.SGD(.1)
      arguments = {"LossScaleOptimizer": [inner],
                   "MultiOptimizer": [lambda unused_var, inner=inner: inner]}
      opt = parts.outcome(cls, *arguments.get(name, []))
      if not isinstance(opt, cls):
        continue
      v = (keras.Variable if hasattr(keras, "Variable") else tf.Variable)(parts.ROWS, name="v")
      value = lambda: np.asarray(tf.convert_to_tensor(v))
      parts.outcome(opt.build, [v])
      opt.apply_gradients([(tf.ones([8, 3]), v)])
      first = value()
      if hasattr(opt, "apply"):
        opt.apply([tf.ones([8, 3])], [v])
        opt.apply([tf.ones([8, 3])])
      results["%s.%s" % (cls.__module__, name)] = [first, value()]
    if hasattr(base, "build"):
      parts.outcome(base.build, opt, [v])
  return sorted(results.items())


@case
def keras_models(folder):
  results = []

  def outcome(what, function, *args, **kwargs):
    value = parts.outcome(function, *args, **kwargs)
    results.append([what, value.numpy() if hasattr(value, "numpy") and hasattr(
        value, "dtype") and value.dtype == tf.string else str(type(value).__name__)])

  def use(keras, suffix):
    dense = keras.layers.Dense(2, kernel_initializer="ones")
    for is_built in (False, True):
      model = keras.Sequential([dense])
      if is_built:
        model.build((None, 3))
      path = os.path.join(folder, "%s%d" % (suffix, is_built))
      for ending in (".h5", ".keras"):
        outcome("save", model.save, path + ending)
        outcome("save", model.save, path + ending, True)
      for ending in (".h5", ".weights.h5", ""):
        outcome("weights", model.save_weights, path + "w" + ending)
        outcome("weights", model.save_weights, filepath=path + "w" + ending,
                overwrite=True)
      outcome("tf", model.save_weights, path + "t", True, "tf")
      outcome("tf", model.save_weights, path + "t", True, "tf",
              tf.train.CheckpointOptions() if hasattr(tf.train, "CheckpointOptions")
              else None)
      outcome("h5", model.save_weights, path + "x", True, "h5")

  if parts.IS_1:
    with tf.Graph().as_default(), tf1.Session().as_default():
      use(tf.keras, "graph")
  else:
    use(tf.keras, "eager")
    if parts.module("tf_keras"):
      use(parts.module("tf_keras"), "old")
  return results


@case
def keras_training(folder):
  results = []

  def use(keras, name):
    model = keras.Sequential([keras.layers.Dense(1, kernel_initializer="ones")])
    model.compile(keras.optimizers.SGD(.1), "mse")
    board = keras.callbacks.TensorBoard(os.path.join(folder, name), histogram_freq=1)
    callbacks = [keras.callbacks.EarlyStopping("loss", restore_best_weights=True)]
    if parts.module("tensorboard"):
      callbacks.append(board)
    board = tf.compat.v2.keras.callbacks.TensorBoard(folder)
    parts.outcome(board._log_weights, 0)  # pylint: disable=protected-access
    for _ in range(2):
      history = model.fit(parts.ROWS, parts.ROWS[:, :1], 4, 2, 0, callbacks, validation_data=(
          parts.ROWS, parts.ROWS[:, :1]), shuffle=False)
    weights = model.get_weights()
    model.layers[0].set_weights(weights)
    model.set_weights(weights)
    path = os.path.join(folder, name + (".h5" if parts.IS_1 else ".keras"))
    model.save(path)
    loaded = keras.models.load_model(path)
    results.append([weights, loaded.get_weights(), history.history["loss"],
                    model.predict(parts.ROWS, verbose=0),
                    keras.backend.batch_get_value(model.weights) if hasattr(
                        keras.backend, "batch_get_value") else None])

  def old(keras):
    legacy = getattr(keras.optimizers, "legacy", keras.optimizers)
    if not hasattr(getattr(legacy, "SGD", None), "get_updates"):
      return
    with tf.Graph().as_default(), tf1.Session() as session:
      v, w = (tf1.get_variable(n, initializer=parts.ROWS, use_resource=True) for n in "vw")
      train = [legacy.SGD(.1).minimize(lambda: tf.reduce_sum(v), [v]),
               legacy.SGD(.1).get_updates(tf.reduce_sum(w), [w])]
      session.run(tf1.global_variables_initializer())
      session.run(train)
      results.append(session.run([v, w]))

  found = [tf.keras] + [k for k in [parts.module("tf_keras")] if k is not None]
  for i, keras in enumerate(found):
    if parts.IS_1:
      with tf.Graph().as_default(), tf1.Session().as_default():
        use(keras, "training%d" % i)
    else:
      use(keras, "training%d" % i)
    parts.outcome(old, keras)
  return results


@case
def savers(folder):

  def build(sharded):
    v, w = parts.variable(), parts.variable("w")
    saver = tf1.train.Saver({"v": v, "other": w}, True, sharded, 5)
    return v, w, saver

  results = []
  for sharded in (False, True):
    with tf.Graph().as_default(), tf1.Session() as session:
      v, w, saver = build(sharded)
      session.run(tf1.global_variables_initializer())
      path = saver.save(session, os.path.join(folder, "s%d" % sharded), 3,
                        "state%d" % sharded, "meta", True, True)
      session.run(v.assign(v * 2))
      saver.restore(session, path)
      results.append([session.run([v, w]),
                      sorted(n for n, _ in tf.train.list_variables(path))])
      saver.restore(sess=session, save_path=path)
      tf1.train.remove_checkpoint(path, tf1.train.SaverDef.V2, "meta")
      results.append(tf1.train.checkpoint_exists(path))
  with tf.Graph().as_default(), tf1.Session() as session:
    v = parts.variable()
    old = tf1.train.Saver([v], write_version=tf1.train.SaverDef.V1)
    session.run(tf1.global_variables_initializer())
    path = old.save(session, os.path.join(folder, "old"))
    old.restore(session, path)
    results.append(session.run(v))
  from tensorflow.python.training import saver as saver_lib  # pylint: disable=g-import-not-at-top
  with tf.Graph().as_default(), tf1.Session() as session:
    v = parts.variable()
    builder = saver_lib.BaseSaverBuilder()
    saver = tf1.train.Saver([v], builder=builder)
    session.run(tf1.global_variables_initializer())
    saver.restore(session, saver.save(session, os.path.join(folder, "base")))
    results.append(session.run(v))
  return results


@case
def object_checkpoints(folder):

  def use():
    v = tf.Variable(parts.ROWS, name="v")
    checkpoint = tf.train.Checkpoint(v=v)
    return v, checkpoint

  if not parts.IS_1:
    v, checkpoint = use()
    path = checkpoint.save(os.path.join(folder, "object"))
    v.assign(v * 2)
    checkpoint.restore(path).assert_consumed()
    return v.numpy()
  with tf.Graph().as_default(), tf1.Session() as session:
    v, checkpoint = use()
    session.run([tf1.global_variables_initializer()])
    path = checkpoint.save(os.path.join(folder, "object"), session)
    session.run(v.assign(v * 2))
    checkpoint.restore(path).assert_consumed().run_restore_ops(session)
    return session.run(v)


class _OwnHook(tf1.train.CheckpointSaverHook):
  """A hook that does not call the base class's constructor."""

  def __init__(self, folder):  # pylint: disable=super-init-not-called
    self._checkpoint_dir = folder
    self._save_path = os.path.join(folder, "model.ckpt")
    self._scaffold = self._saver = self._saver_def = None
    self._timer = tf1.train.SecondOrStepTimer(every_steps=2)
    self._listeners = []
    self._steps_per_run = 1
    self._save_graph_def = True


def _hooks(folder):
  """Returns hooks that are made before embedding_variable is imported."""
  return [tf1.train.CheckpointSaverHook(os.path.join(folder, "first"), None, 2),
          _OwnHook(os.path.join(folder, "own"))]


@case
def sessions(folder):
  with tf.Graph().as_default():
    step = tf1.train.get_or_create_global_step()
    v = parts.variable()
    train = tf.group(step.assign_add(1), v.assign_add(tf.ones([8, 3])))
    scaffold = tf1.train.Scaffold(None, None)
    later = tf1.train.CheckpointSaverHook(os.path.join(folder, "later"), None, 2, None,
                                          "name.ckpt", scaffold)
    for hook in early_hooks[0] + [later]:
      hook._scaffold = scaffold  # pylint: disable=protected-access
    with tf1.train.MonitoredTrainingSession("", True, os.path.join(folder, "session"),
                                            scaffold, early_hooks[0] + [later],
                                            save_checkpoint_steps=2) as session:
      for _ in range(5):
        session.run(train)
      value = session.run(v)
  return [value] + [sorted(f for f in os.listdir(os.path.join(folder, d))
                           if "events" not in f)
                    for d in ("first", "own", "later", "session")]


@case
def starts_from_checkpoints(folder):
  path = os.path.join(folder, "start")
  with tf.Graph().as_default(), tf1.Session() as session:
    v = parts.variable()
    session.run(tf1.global_variables_initializer())
    path = tf1.train.Saver().save(session, path)
  results = []
  for start in (lambda: tf1.train.init_from_checkpoint(path, {"v": "w"}),
                lambda: tf1.train.init_from_checkpoint(
                    ckpt_dir_or_file=path, assignment_map={"v": v}),
                lambda: tf1.train.warm_start(path, ".*", None, {"w": "v"}),
                lambda: tf1.train.warm_start(ckpt_to_initialize_from=path,
                                             var_name_to_prev_var_name={"w": "v"})):
    with tf.Graph().as_default(), tf1.Session() as session:
      v = tf1.get_variable("w", [8, 3], initializer=tf1.zeros_initializer())
      start()
      session.run(tf1.global_variables_initializer())
      results.append(session.run(v))
  return results


@case
def meta_graphs(folder):
  with tf.Graph().as_default():
    tf1.get_variable("r", initializer=parts.ROWS, use_resource=True)
    definition = tf1.train.export_meta_graph(os.path.join(folder, "meta"))
  with tf.Graph().as_default(), tf1.Session() as session:
    tf1.train.import_meta_graph(definition, import_scope="scope")
    variable = tf1.global_variables()[0]
    copy = type(variable).from_proto(variable.to_proto(), None)
    session.run(tf1.global_variables_initializer())
    return [variable.op.name, session.run([variable, copy])]


@case
def feature_columns(unused_folder):
  fc = tf1.feature_column

  def build():
    a = fc.categorical_column_with_identity("a", 8)
    b = fc.categorical_column_with_identity("b", 8)
    features = {"a": tf.constant([[1], [2]]), "b": tf.constant([[3], [4]])}
    ones = tf1.ones_initializer()
    one = fc.embedding_column(a, 3, "mean", ones)
    shared = fc.shared_embedding_columns([a, b], 2, "sum", ones)
    columns = [one, fc.indicator_column(a)] + shared
    outputs = [fc.input_layer(features, columns, None, True),
               fc.input_layer(features=features, feature_columns=columns[:2]),
               fc.linear_model(features, [a, b], 2, "mean")]
    for keras in parts.kerases() + [tf.compat.v2.keras]:
      if hasattr(keras.layers, "DenseFeatures"):
        outputs.append(keras.layers.DenseFeatures([one, fc.indicator_column(a)])(features))
    for package in ("keras", "tf_keras"):
      module = parts.module(package + ".src.feature_column.dense_features")
      if module is not None:
        outputs.append(module.DenseFeatures([one, fc.indicator_column(a)])(features))
    return outputs

  return parts.run(build)


@case
def contrib(folder):
  if not parts.IS_1:
    return None
  from tensorflow.contrib import framework, layers, mixed_precision  # pylint: disable=g-import-not-at-top,g-multiple-import
  path = os.path.join(folder, "contrib")
  with tf.Graph().as_default(), tf1.Session() as session:
    parts.variable()
    session.run(tf1.global_variables_initializer())
    path = tf1.train.Saver().save(session, path)

  def build():
    a, b = (layers.sparse_column_with_integerized_feature(n, 8) for n in "ab")
    features = {"a": parts.ids(), "b": parts.ids()}
    ones = tf1.ones_initializer()
    v = parts.variable()
    step = tf1.train.get_or_create_global_step()
    loss = tf.reduce_sum(tf.square(v))
    scaled = mixed_precision.LossScaleOptimizer(
        tf1.train.GradientDescentOptimizer(.1), mixed_precision.FixedLossScaleManager(8.))
    w = parts.variable("w")
    framework.init_from_checkpoint(path, {"v": w})
    outputs = [
        layers.safe_embedding_lookup_sparse(v, parts.ids(), parts.weights(), "sum", 1, None, "div"),
        layers.input_from_feature_columns(
            features, [layers.embedding_column(a, 3, "sum", ones)]),
        layers.weighted_sum_from_feature_columns(features, [a], 2)[0],
        layers.joint_weighted_sum_from_feature_columns(features, [a, b], 2)[0]]
    # After the lookups, which read v.
    with tf1.control_dependencies(outputs):
      noisy = layers.optimize_loss(loss, step, .1, "SGD", gradient_noise_scale=0.)
      train = scaled.minimize(tf.reduce_sum(tf.square(w)), var_list=[w])
    with tf1.control_dependencies([noisy, train]):
      return outputs + [tf.identity(w)]

  return parts.run(build)


@case
def estimators(folder):
  name = "tensorflow_estimator.python.estimator.estimator_lib"
  lib = parts.module(name)
  if lib is None:
    return None
  fc = tf1.feature_column
  column = fc.categorical_column_with_identity("a", 8)
  linear = parts.module("tensorflow_estimator.python.estimator.canned.linear")
  estimator = getattr(linear, "LinearClassifier")([column], os.path.join(folder, "est"))
  data = lambda: tf1.data.Dataset.from_tensors(
      ({"a": tf.constant([[1], [2]])}, tf.constant([[0], [1]]))).repeat(3)
  estimator.train(data)
  receiver = lib.export.build_parsing_serving_input_receiver_fn(
      fc.make_parse_example_spec([column]))
  results = [len(os.listdir(estimator.export_saved_model(
      os.path.join(folder, "export"), receiver, None, False)))]
  if hasattr(estimator, "export_savedmodel"):
    results.append(len(os.listdir(estimator.export_savedmodel(
        os.path.join(folder, "export_old"), receiver))))
  results.append(estimator.get_variable_value("global_step"))
  with tf.Graph().as_default(), tf1.Session() as session:
    results.append(session.run(linear._compute_fraction_of_zero([tf.zeros([3])])))  # pylint: disable=protected-access
  return results


@case
def saved_models(folder):
  with tf.Graph().as_default(), tf1.Session() as session:
    v = parts.variable()
    session.run(tf1.global_variables_initializer())
    builder = tf1.saved_model.builder.SavedModelBuilder(os.path.join(folder, "model"))
    builder.add_meta_graph_and_variables(session, ["serve"], None)
    builder.add_meta_graph(["other"])
    builder.save()
    frozen = tf1.graph_util.convert_variables_to_constants(
        session, session.graph_def, [v.op.name], None, None)
  return [sorted(os.listdir(os.path.join(folder, "model"))), len(frozen.node)]


@case
def checks_and_norms(unused_folder):

  def build():
    v = parts.variable()
    slices = tf.IndexedSlices(tf.ones([2, 3]), tf.constant([1, 2]), [8, 3])
    check = tf1.add_check_numerics_ops()
    with tf1.control_dependencies([check]):
      return [tf.linalg.global_norm([v, slices], "name") if hasattr(
          tf.linalg, "global_norm") else tf1.global_norm([v, slices], "name"),
              tf1.clip_by_norm(v, 1., [0], "name"), tf.clip_by_norm(t=v, clip_norm=.5),
              tf1.clip_by_average_norm(v, .1, "name"),
              tf.clip_by_global_norm([v, slices], 1., None, "name")[1]]

  return parts.run(build)


@case
def loss_scales(unused_folder):
  experimental = importlib.import_module(
      "tensorflow.python.training.experimental.loss_scale")

  def build():
    scale = experimental.DynamicLossScale(8., 2)
    _, finite = scale.update([tf.ones([2]), tf.constant([np.inf])])
    outputs = [finite]
    for keras in parts.kerases():
      scaling = getattr(keras, "mixed_precision", None)
      scaling = getattr(scaling, "experimental", scaling)
      cls = getattr(scaling, "LossScaleOptimizer", None)
      arguments = ("dynamic",) if parts.IS_1 else ()
      opt = parts.outcome(lambda: cls(parts.sgd(keras), *arguments))
      if hasattr(opt, "get_unscaled_gradients"):
        v = tf1.get_variable("v%d" % len(outputs), initializer=parts.ROWS, use_resource=True)
        outputs.append(opt.get_unscaled_gradients([tf.ones([2])]))
        applied = opt.apply_gradients([(tf.ones_like(v), v)])
        if applied is not None:
          outputs.append(tf.group(applied))
    return outputs

  with_keras = parts.run(build)
  return [np.shape(r) if r is not None else None for r in with_keras]


@case
def tapes(unused_folder):
  if parts.IS_1:
    return None
  v = tf.Variable(parts.ROWS)
  with tf.GradientTape(True) as tape:
    y = tf.reduce_sum(tf.square(v))
  return [tape.gradient(y, v, None, tf.UnconnectedGradients.ZERO),
          tape.gradient(target=y, sources=[v])[0]]


@case
def horovod(unused_folder):
  hvd = parts.module("horovod.tensorflow")
  if hvd is None:
    return None
  hvd.init()

  def build():
    v = parts.variable()
    opt = hvd.DistributedOptimizer(tf1.train.GradientDescentOptimizer(.1))
    pairs = opt.compute_gradients(tf.reduce_sum(v), [v])
    with tf1.control_dependencies([opt.apply_gradients(pairs),
                                   hvd.broadcast_variables([v], 0)]):
      return tf.identity(v)

  def build_tape():
    v = tf1.get_variable("v", initializer=parts.ROWS, use_resource=True)
    with tf.GradientTape() as tape:
      y = tf.reduce_sum(v)
    return hvd.DistributedGradientTape(tape).gradient(y, [v], None)

  def build_keras():
    v = tf1.get_variable("v", initializer=parts.ROWS, use_resource=True)
    opt = parts.module("horovod.tensorflow.keras").DistributedOptimizer(parts.sgd(tf.keras))
    gradients = opt.get_gradients(tf.reduce_sum(v), [v]) if parts.IS_1 else []
    train = [opt.apply_gradients([(tf.ones_like(v), v)])]
    if not parts.IS_1:
      train.append(opt.minimize(lambda: tf.reduce_sum(v), [v]))
    with tf1.control_dependencies(train):
      return gradients + [tf.identity(v)]

  results = [parts.run(build), parts.run(build_tape)]
  if not hasattr(tf.keras, "Variable"):  # Keras 2
    results.append(parts.run(build_keras))
  else:  # Keras 3, which Horovod 0.28.1 does not know
    results.append(parts.run(lambda: parts.outcome(lambda: tf.constant(type(
        parts.module("horovod.tensorflow.keras").DistributedOptimizer(
            parts.sgd(tf.keras))).__name__))))
  # Horovod calls the first at exit, scripts call the second.
  parts.module("horovod.tensorflow.mpi_ops")._basics.shutdown()  # pylint: disable=protected-access
  hvd.shutdown()
  return results


def _plain(value):
  """Returns a value as JSON has it."""
  if isinstance(value, dict):
    return {str(k): _plain(v) for k, v in value.items()}
  if isinstance(value, (list, tuple)):
    return [_plain(v) for v in value]
  if isinstance(value, bytes):
    return value.decode()
  if value is None or isinstance(value, (str, int, float, bool)):
    return value
  return _plain(np.asarray(value).tolist())


def _called(replaced, function):
  """Returns the function's result, and which replacements it has called."""
  found = set()

  def profile(frame, event, unused_arg):
    # Horovod makes classes for single objects, so the list grows while the cases run.
    if event == "call" and frame.f_code.co_filename.endswith(
        ("_patch.py", "patching.py")):
      found.add((frame.f_code, id(frame.f_locals.get("stock"))))

  threading.setprofile(profile)
  sys.setprofile(profile)
  try:
    result = function()
  finally:
    sys.setprofile(None)
    threading.setprofile(None)
  return result, {(owner.__name__, name) for owner, name, stock, r in replaced
                  if (r.__code__, id(stock)) in found}


early_hooks = []


def main():
  with tempfile.TemporaryDirectory() as folder:
    early_hooks.append(_hooks(folder))
    replaced = []
    if sys.argv[1] == "patched":
      replaced = importlib.import_module("embedding_variable.integration.patching").replaced
    if parts.IS_1:
      importlib.import_module("tensorflow.contrib.mixed_precision")
      importlib.import_module("tensorflow.contrib.layers")

    failed = []

    def run():
      results = {}
      for function in _cases:
        try:
          results[function.__name__] = _plain(function(folder))
        except Exception:  # pylint: disable=broad-except
          failed.append("%s: %s" % (function.__name__, traceback.format_exc()))
      return results

    results, called = _called(replaced, run)
  not_called = sorted("%s.%s" % (owner.__name__, name) for owner, name, _, _ in replaced
                      if (owner.__name__, name) not in called)
  print(json.dumps({"results": results, "not_called": not_called, "failed": failed}))


if __name__ == "__main__":
  main()
