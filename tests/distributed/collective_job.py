# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A rank of a job that trains by DeepRec's CollectiveStrategy.

  collective_job.py FOLDER

Prints "done" if all checks hold. Works on one rank, too.
"""

import os
import sys

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

from embedding_variable.deeprec import activation

_RATE = .1
_STEPS = 4
_BATCH = 8
_COLUMNS = ("a", "b")


def check(name, found, expected):
  np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6, err_msg=name)


def _gathered(value):
  """Returns the list of all ranks' values."""
  with tf.Graph().as_default(), tf.Session() as session:
    return hvd.allgather_object(value, session=session)


def _batches(count=_STEPS):
  """Returns a dict of arrays [steps, batch] for all ranks together."""
  numbers = np.random.RandomState(3)
  data = {c: numbers.randint(0, 9, [count, _BATCH, 1]) for c in _COLUMNS}
  data["label"] = numbers.rand(count, _BATCH).astype(np.float32)
  return data


def _own(data, rank, size):
  return {k: v[:, rank::size] for k, v in data.items()}


def _next(data):
  return tf.data.make_one_shot_iterator(
      tf.data.Dataset.from_tensor_slices(data)).get_next()


def _logits(features, is_group):
  fc = tf.feature_column

  def columns():
    return [fc.embedding_column(
        fc.categorical_column_with_embedding(c, dtype=tf.int64), 4,
        initializer=tf.constant_initializer(.1)) for c in _COLUMNS]

  if is_group:
    with fc.group_embedding_column_scope(name="group"):
      made = columns()
  else:
    made = columns()
  net = fc.input_layer({c: features[c] for c in _COLUMNS}, made)
  net = tf.layers.dense(net, 3, tf.tanh, kernel_initializer=tf.constant_initializer(
      np.linspace(-1, 1, 24).reshape(8, 3)))
  return tf.squeeze(tf.layers.dense(net, 1, kernel_initializer=tf.ones_initializer()), 1)


def _loss(features, is_group):
  return tf.reduce_mean(tf.square(_logits(features, is_group) - features["label"]))


def _num_exchanges():
  return [op.type for op in tf.get_default_graph().get_operations()].count("SokRoute")


def _reference():
  """Returns the losses of one process that trains on the merged batches."""
  with tf.Graph().as_default(), tf.Session() as session:
    loss = _loss(_next(_batches()), False)
    assert not _num_exchanges()
    train = tf.train.AdagradOptimizer(_RATE * hvd.size()).minimize(loss)
    session.run(tf.global_variables_initializer())
    return [session.run([loss, train])[0] for _ in range(_STEPS)]


def _losses(folder, stop):
  """Trains up to step `stop` by a monitored session; returns the losses over ranks."""
  data = _own(_batches(), hvd.rank(), hvd.size())
  with tf.Graph().as_default():
    step = tf.train.get_or_create_global_step()
    loss = _loss(_next(data), True)
    # Starts with another value on each rank.
    own = tf.get_variable("own", initializer=float(hvd.rank() + 7), trainable=False)
    optimizer = tf.train.AdagradOptimizer(_RATE)
    assert isinstance(optimizer, tf.train.AdagradOptimizer)
    train = optimizer.minimize(loss, global_step=step)
    losses = []
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=folder, is_chief=hvd.rank() == 0, save_checkpoint_steps=2,
        save_summaries_steps=None, log_step_count_steps=None,
        hooks=[tf.train.StopAtStepHook(last_step=stop)]) as session:
      while not session.should_stop():
        losses.append(session.run([loss, train, own])[::2])
  assert all(o == 7 for _, o in losses), losses
  return np.mean(_gathered([l for l, _ in losses]), 0)


def trains(strategy, folder):
  """Ranks train as one process does, save and continue."""
  expected = _reference()
  with strategy.scope(), strategy.embedding_scope():
    found = _losses(os.path.join(folder, "once"), _STEPS)
    check("losses", found, expected)
    again = os.path.join(folder, "again")
    check("first losses", _losses(again, 2), expected[:2])
    # The input starts anew, and the tables go on.
    rest = _losses(again, 3)
  assert len(rest) == 1 and not np.allclose(rest[0], expected[0]), rest


def exports(strategy, folder):
  """Rank 0 exports the rows of all ranks; the server needs no Horovod."""

  def signature():
    ids = {c: tf.placeholder(tf.int64, [None, 1], c) for c in _COLUMNS}
    logits = _logits(ids, True)
    assert not _num_exchanges()
    return tf.saved_model.predict_signature_def(ids, {"logits": logits})

  target = os.path.join(folder, "exported")
  with strategy.scope():
    try:
      strategy.export_saved_model(target, folder)
      assert hvd.rank(), "no error"
    except ValueError as e:
      assert "signature_def_fn" in str(e), e
    # The folder of the last monitored session.
    result = strategy.export_saved_model(target, signature_def_fn=signature)
  assert result == (None if hvd.rank() else target), result
  _gathered(None)
  checkpoint = tf.train.load_checkpoint(tf.train.latest_checkpoint(
      os.path.join(folder, "again")))
  # A table has a part of each rank.
  parts = sorted(n for n in checkpoint.get_variable_to_shape_map()
                 if n.endswith("-keys") and not n.endswith("Adagrad-keys"))
  assert len(parts) == len(_COLUMNS) * hvd.size(), parts
  with tf.Graph().as_default(), tf.Session() as session:
    model = tf.saved_model.load(session, ["serve"], target)
    outputs = model.signature_def["serving_default"].outputs
    data = _batches()
    served = session.run(outputs["logits"].name,
                         {c + ":0": data[c][0] for c in _COLUMNS})
  # All ranks predict the same rows through the exchange.
  with tf.Graph().as_default(), strategy.scope(), tf.Session() as session:
    logits = _logits({c: tf.constant(_batches()[c][0]) for c in _COLUMNS}, True)
    assert bool(_num_exchanges()) == (hvd.size() > 1)
    tf.train.Saver().restore(session, tf.train.latest_checkpoint(
        os.path.join(folder, "again")))
    check("served", served, session.run(logits))
  assert np.ptp(served) > 1e-3, served


def estimates(strategy, folder):
  """An Estimator of the strategy trains, evaluates, predicts and exports."""

  def model_fn(features, labels, mode):
    logits = _logits(features, True)
    if mode == tf.estimator.ModeKeys.PREDICT:
      return tf.estimator.EstimatorSpec(mode, {"logits": logits})
    loss = tf.reduce_mean(tf.square(logits - labels))
    train = tf.train.AdagradOptimizer(_RATE).minimize(
        loss, global_step=tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, train_op=train,
        eval_metric_ops={"mean": tf.metrics.mean(logits)})

  def input_fn():
    data = _own(_batches(), hvd.rank(), hvd.size())
    return tf.data.Dataset.from_tensor_slices(
        ({c: data[c] for c in _COLUMNS}, data["label"]))

  try:
    strategy.estimator(model_fn)
    assert False, "no error"
  except ValueError as e:
    assert "config" in str(e), e
  config = tf.estimator.RunConfig(os.path.join(folder, "estimator"),
                                  log_step_count_steps=None, save_summary_steps=None)
  estimator = strategy.estimator(model_fn, config=config)

  def receiver():
    ids = {c: tf.placeholder(tf.int64, [None, 1], c) for c in _COLUMNS}
    return tf.estimator.export.ServingInputReceiver(ids, ids)

  history = []
  exporters = [tf.estimator.LatestExporter("latest", receiver),
               tf.estimator.FinalExporter("final", receiver)]
  last = estimator.train_and_evaluate(
      tf.estimator.TrainSpec(input_fn, max_steps=_STEPS),
      tf.estimator.EvalSpec(input_fn, steps=2, exporters=exporters), eval_every_n_iter=2,
      eval_history=history)
  _gathered(None)
  for name, count in (("latest", 2), ("final", 1)):
    exports = tf.gfile.Glob(os.path.join(config.model_dir, "export", name, "*"))
    assert len(exports) == count, exports
  assert [h["global_step"] for h in history] == [2, _STEPS], history
  assert last is history[-1] and last["loss"] < history[0]["loss"], history
  found = estimator.evaluate(input_fn, steps=2)
  assert found["global_step"] == _STEPS
  check("evaluated", found["loss"], last["loss"])
  predictions = list(estimator.predict(input_fn))
  assert len(predictions) == _STEPS * _BATCH // hvd.size(), len(predictions)
  check("predicted", np.mean([p["logits"] for p in predictions[:len(predictions) // 2]]),
        found["mean"])

  path = estimator.export_saved_model(os.path.join(folder, "estimator_export"), receiver)
  assert (path is None) == (hvd.rank() > 0)
  _gathered(None)
  if path is not None:
    with tf.Graph().as_default(), tf.Session() as session:
      tf.saved_model.load(session, ["serve"], path)
      data = _own(_batches(), 0, hvd.size())
      logits = session.graph.get_tensor_by_name("Squeeze:0")
      check("exported", session.run(logits, {c + ":0": data[c][0] for c in _COLUMNS}),
            [p["logits"] for p in predictions[:_BATCH // hvd.size()]])


def dense_only(strategy, folder):
  """Without a table that is spread, only rank 0 writes."""
  own = os.path.join(folder, "dense_%d" % hvd.rank())
  with strategy.scope(), tf.Graph().as_default():
    v = tf.get_variable("v", initializer=float(hvd.rank()))
    loss = v * float(hvd.rank() + 1)
    train = tf.train.GradientDescentOptimizer(1.).minimize(
        loss, global_step=tf.train.get_or_create_global_step())
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=own, save_summaries_steps=None) as session:
      session.run(train)
      # The mean of 1, 2, ... W is (W + 1) / 2; the rate is W.
      check("dense", session.run(v), -hvd.size() * (hvd.size() + 1) / 2)
    tf.train.Saver(var_list=[])
  assert (tf.train.latest_checkpoint(own) is not None) == (hvd.rank() == 0)


def is_undone():
  """After the scope, stock names do what they do otherwise."""
  with tf.Graph().as_default(), tf.Session() as session:
    loss = _loss(_next(_batches()), True)
    assert not _num_exchanges()
    v = tf.get_variable("v", initializer=0.)
    train = tf.train.GradientDescentOptimizer(1.).minimize(
        loss * 0. + v * float(hvd.rank() + 1))
    session.run(tf.global_variables_initializer())
    session.run(train)
    check("alone", session.run(v), -(hvd.rank() + 1))
    try:
      tf.train.Saver(var_list=[])
      assert False, "no error"
    except ValueError as e:
      assert "No variables" in str(e), e


def main(folder):
  activation.activate("1.15.5+deeprec2402", is_quiet=True)
  from tensorflow.python.distribute.group_embedding_collective_strategy import CollectiveStrategy  # pylint: disable=g-import-not-at-top
  os.environ["COLLECTIVE_STRATEGY"] = "none"
  try:
    CollectiveStrategy()
    assert False, "no error"
  except ValueError as e:
    assert "COLLECTIVE_STRATEGY" in str(e), e
  os.environ["COLLECTIVE_STRATEGY"] = "sok"
  strategy = CollectiveStrategy()
  assert strategy.world_size() == hvd.size() and strategy.rank() == hvd.rank()
  trains(strategy, folder)
  exports(strategy, folder)
  estimates(strategy, folder)
  dense_only(strategy, folder)
  is_undone()
  print("done")


if __name__ == "__main__":
  main(sys.argv[1])
