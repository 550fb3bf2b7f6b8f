# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Publications from eager execution and Keras, and the server that follows them."""

import contextlib
import io
import os
import time
from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import embedding_variable as ev
from embedding_variable.checkpoint import job
from embedding_variable.checkpoint_format import errors
from embedding_variable.ops import delta_ops
from embedding_variable.tools import main
from embedding_variable_serving import testing
import sparse_operation_kit as sok

keras = tf.keras

_KEYS = [1, 2, 3, -4, 77]
_PREDICT = "/v1/models/m:predict"


class Model(tf.Module):
  """A table and a dense variable; a score is mean(row) + 1000 * dense."""

  def __init__(self, option=None, dim=4):
    super().__init__()
    self.users = tf.compat.v1.get_embedding_variable(
        "users", dim, initializer=tf.zeros_initializer(), ev_option=option)
    self.dense = tf.Variable(0.)

  @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
  def score(self, ids):
    rows = tf.nn.embedding_lookup(self.users, ids)
    return {"scores": tf.reduce_mean(rows, axis=1) + 1000 * self.dense}

  def scores(self):
    return self.score(tf.constant(_KEYS, tf.int64))["scores"].numpy().tolist()


class _Test(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = os.path.join(testing.folder(), "m")

  def make(self, option=None, **kwargs):
    """Creates a model, its optimizer and its publisher."""
    self.model = Model(option)
    self.optimizer = keras.optimizers.SGD(1.)
    self.publisher = ev.publish.EagerPublisher(self.folder, self.model, self.model.score,
                                               **kwargs)

  def train(self, keys=tuple(_KEYS)):
    """Adds 1 to each of some rows, and 1 to the dense variable."""
    variables = [self.model.users, self.model.dense]
    with tf.GradientTape() as tape:
      rows = tf.nn.embedding_lookup(self.model.users, tf.constant(keys, tf.int64))
      loss = -tf.reduce_sum(rows) - self.model.dense
    self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))

  def current(self):
    return ev.publications.read(self.folder)

  def start(self):
    server = testing.start("--model_base_path=" + self.folder, "--model_name=m")
    self.addCleanup(server.stop, 5)
    self.assertTrue(server.manager.wait(["m"], 60))
    return server

  def served(self, server, instances=tuple(_KEYS)):
    status, answer = testing.http(server, _PREDICT, {"instances": list(instances)})
    self.assertEqual(status, 200, answer)
    return answer["predictions"]

  def assert_serves(self, server, expected, keys=tuple(_KEYS)):
    """Asserts that a server soon returns the expected scores of some keys."""
    end = time.time() + 30
    while self.served(server, keys) != expected and time.time() < end:
      time.sleep(0.05)
    self.assertEqual(self.served(server, keys), expected)

  def checked(self):
    """Returns (exit status, output) of the command that checks a folder."""
    with contextlib.redirect_stdout(io.StringIO()) as out, \
        contextlib.redirect_stderr(out):
      return main.main(["publish", "--check", self.folder]), out.getvalue()


class EagerPublisherTest(_Test):

  @parameterized.parameters("float16", "uint8")
  def test_rows_in_fewer_bytes(self, row_type):
    self.make(row_type=row_type)
    self.train()
    self.publisher.full()
    server = self.start()
    self.assert_serves(server, self.model.scores())
    self.train([2])
    reader = tf.train.load_checkpoint(self.publisher.delta())
    stored = {name: dtype.name for name, dtype in reader.get_variable_to_dtype_map().items()
              if name.endswith("-sparse_incr_values")}
    self.assertEqual(list(stored.values()), [row_type])
    self.assert_serves(server, self.model.scores())
    self.assertEqual(self.checked()[0], 0)

  def test_answers_are_those_of_the_step(self):
    self.make()
    self.assertEqual(self.publisher.plan(), {
        "folder": self.folder, "version": 1, "tables": ["users"], "variables": ["dense"]})
    self.assertFalse(os.path.exists(self.folder))
    self.assertFalse(self.publisher.can_continue)
    with self.assertRaisesRegex(ValueError, "call full"):
      self.publisher.delta()
    self.train()
    self.assertEqual(self.publisher.full(self.optimizer.iterations), 1)
    self.assertTrue(self.publisher.can_continue)
    server = self.start()
    self.assertEqual(self.served(server), self.model.scores())
    first = self.model.scores()
    for number, (change, keys, erased) in enumerate((
        (self.train, sorted(_KEYS), []),
        (lambda: self.train([77, 78]), [77, 78], []),
        (lambda: self.model.users.erase([2, 3]), [], [2, 3]),
        (lambda: self.train([3]), [3], []))):
      change()
      prefix = self.publisher.delta(self.optimizer.iterations)
      self.assert_serves(server, self.model.scores())
      delta = tf.train.load_checkpoint(prefix)
      self.assertCountEqual(delta.get_tensor("users-sparse_incr_keys"), keys)
      self.assertCountEqual(delta.get_tensor("users-sparse_incr_erased_keys"), erased)
      self.assertEqual(prefix, ev.publication_checks.check_delta(
          self.folder, self.current(), number + 1))
    state = self.current()
    self.assertEqual([state["full"]["step"]] + [d["step"] for d in state["deltas"]],
                     [1, 2, 3, 3, 4])
    status, text = self.checked()
    self.assertEqual(status, 0, text)
    self.assertIn("version 1, step 4", text)
    late = self.start()  # Starts at the current state.
    self.assertEqual(self.served(late), self.model.scores())
    # The version stays as it was written, and stock code reads it.
    path = os.path.join(self.folder, "1")
    loaded = tf.saved_model.load(path)
    ids = tf.constant(_KEYS, tf.int64)
    self.assertEqual(loaded.score(ids)["scores"].numpy().tolist(), first)
    self.assertEqual(
        loaded.signatures["serving_default"](ids=ids)["scores"].numpy().tolist(), first)
    tf.saved_model.experimental.read_fingerprint(path)
    self.train()
    self.assertEqual(self.publisher.full(), 2)
    for one in (server, late):
      self.assert_serves(one, self.model.scores())
    self.train([5])
    self.publisher.delta()
    for one in (server, late):
      self.assert_serves(one, self.model.scores())
    self.assertIsNone(self.current()["step"])

  def test_without_slots_and_optimizer(self):
    self.make()
    self.optimizer = keras.optimizers.Adam(.1)
    self.train()
    self.publisher.full()
    names = [n for n, _ in tf.train.list_variables(
        ev.publications.stored_prefix(self.folder, 1))]
    self.assertIn("users-values", names)
    self.assertEmpty([n for n in names if n.startswith("users/") or "optimizer" in n])
    # Checkpoints outside of publications have them.
    path = tf.train.Checkpoint(model=self.model).save(os.path.join(self.folder, "c"))
    self.assertNotEmpty([n for n, _ in tf.train.list_variables(path)
                         if n.startswith("model/users/")])

  def test_a_filter(self):
    self.make(tf.EmbeddingVariableOption(filter_option=tf.CounterFilter(filter_freq=2)))
    self.train([1, 1, 2])
    self.publisher.full()
    server = self.start()
    self.assertEqual(self.served(server, [1, 2, 3]), [1002., 1000., 1000.])
    self.train([2, 3])  # The second occurrence of 2, and the first of 3.
    self.publisher.delta()
    self.assert_serves(server, [2002., 2001., 2000.], [1, 2, 3])
    self.train([3])
    self.publisher.delta()
    self.assert_serves(server, [3002., 3001., 3001.], [1, 2, 3])

  def test_evicted_keys_are_gone(self):
    self.make(tf.EmbeddingVariableOption(evict_option=tf.GlobalStepEvict(steps_to_live=2)))
    self.train([1, 2])
    self.publisher.full()
    server = self.start()
    for _ in range(4):
      self.train([2])
    self.assertEqual(self.model.users.evict(step=self.optimizer.iterations).numpy(), 1)
    self.publisher.delta()
    self.assert_serves(server, [5000., 5005.], [1, 2])

  def test_a_damaged_delta_is_refused_until_the_next_full_version(self):
    self.make()
    self.train()
    self.publisher.full()
    server = self.start()
    old = self.model.scores()
    self.train()
    original = ev.publications.write

    def write(folder, state):
      prefix = ev.publications.delta_prefix(folder, state, len(state["deltas"]))
      for name in os.listdir(os.path.dirname(prefix)):
        if ".data-" in name:
          with open(os.path.join(os.path.dirname(prefix), name), "r+b") as f:
            f.seek(5)
            f.write(b"\xff\xfe")
      original(folder, state)

    with mock.patch.object(ev.publications, "write", write):
      with self.assertLogs(level="ERROR") as logs:
        self.publisher.delta()
        end = time.time() + 30
        while not any("keeps its state" in line for line in logs.output) and (
            time.time() < end):
          time.sleep(.05)
    self.assertRegex("".join(logs.output), "delta 1 of version 1 .*is damaged")
    self.assertEqual(self.served(server), old)
    self.assertEqual(self.checked()[0], 2)
    self.train()
    self.publisher.delta()
    time.sleep(.3)
    self.assertEqual(self.served(server), old)
    self.publisher.full()
    self.assert_serves(server, self.model.scores())
    self.assertEqual(self.checked()[0], 0)

  def test_a_delta_that_cannot_be_written(self):
    self.make()
    self.train()
    self.publisher.full()
    before = self.current()
    self.train([9])
    with mock.patch.object(delta_ops, "publish_checkpoint", side_effect=OSError("full")):
      with self.assertRaisesRegex(OSError, "full"):
        self.publisher.delta()
    self.assertEqual(self.current(), before)
    directory = os.path.join(self.folder, "1", ".incremental_checkpoint")
    self.assertEmpty(os.listdir(directory))
    # The next delta has the changes.
    self.assertTrue(self.publisher.can_continue)
    delta = tf.train.load_checkpoint(self.publisher.delta())
    self.assertEqual(delta.get_tensor("users-sparse_incr_keys").tolist(), [9])
    self.assertEqual(self.checked()[0], 0)

  def test_interrupted_publications(self):
    self.make(keep=2)
    self.train()
    self.publisher.full()
    self.train()
    before = self.current()
    for publish in (self.publisher.delta, self.publisher.full):
      with mock.patch.object(ev.publications, "write", side_effect=OSError("disk is full")):
        with self.assertRaisesRegex(OSError, "disk is full"):
          publish()
      self.assertEqual(self.current(), before)
      self.assertFalse(self.publisher.can_continue)
      with self.assertRaisesRegex(ValueError, "call full"):
        self.publisher.delta()
    os.makedirs(os.path.join(self.folder, "3.part", "left"))  # A killed publication's.
    self.assertEqual(self.publisher.full(), 3)
    self.assertCountEqual(os.listdir(self.folder), ["2", "3", "current.json"])
    self.publisher.delta()
    self.publisher.restart()
    self.assertFalse(self.publisher.can_continue)

  def test_a_file_system_without_renames_of_folders(self):
    self.folder = "ram://publications/eager"
    self.make(keep=1)
    for version in (1, 2):
      self.train()
      self.assertEqual(self.publisher.full(version), version)
      self.train()
      self.publisher.delta(version)
      state = self.current()
      self.assertEqual((state["version"], state["step"]), (version, version))
      ev.publication_checks.check_full(self.folder, state)
      self.assertTrue(tf.io.gfile.exists(
          ev.publications.delta_prefix(self.folder, state, 1) + ".index"))
    names = [name.strip("/") for name in tf.io.gfile.listdir(self.folder)]
    self.assertNotIn("2.part", names)
    self.assertFalse(tf.io.gfile.exists(self.folder + "/1/saved_model.pb"))

  def test_a_restore_between_publications(self):
    self.make()
    self.train()
    checkpoint = tf.train.Checkpoint(model=self.model)
    path = checkpoint.save(os.path.join(self.folder + "-checkpoints", "c"))
    self.train([5, 6])
    self.publisher.full()
    server = self.start()
    self.assertEqual(self.served(server, [1, 5]), [2001., 2001.])
    checkpoint.restore(path)
    self.train([6])
    self.publisher.delta()
    self.assert_serves(server, [2001., 2000., 2001.], [1, 5, 6])

  def test_tables_of_tensorflow(self):
    self.make()
    self.model.seen = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
    def score(ids):
      scores = self.model.score(ids)["scores"]
      return {"scores": scores + self.model.seen.lookup(ids)}

    self.model.with_seen = score
    self.publisher = ev.publish.EagerPublisher(self.folder, self.model,
                                               {"serving_default": score})
    self.train()
    self.publisher.full()
    server = self.start()
    for keys in ([1], [1, 2, 3]):
      self.model.seen.insert(tf.constant(keys, tf.int64), tf.cast(keys, tf.float32))
      self.train([2])
      self.publisher.delta()
      self.assert_serves(
          server, score(tf.constant(_KEYS, tf.int64))["scores"].numpy().tolist())

  def test_an_own_export(self):
    self.make()
    save = lambda folder: tf.saved_model.save(self.model, folder, self.model.score)
    publisher = ev.publish.EagerPublisher(self.folder, self.model, export=save)
    self.train()
    publisher.full()
    self.train()
    publisher.delta()
    self.assertEqual(self.served(self.start()), self.model.scores())
    other = Model()
    with self.assertRaisesRegex(ValueError, "lacks embedding variable 'users'"):
      ev.publish.EagerPublisher(self.folder, other, export=save).full()
    self.assertEqual(self.current()["version"], 1)

  def test_load(self):
    with self.assertRaisesRegex(errors.CheckpointError, "has no current.json"):
      ev.publish.load(self.folder)
    self.make(tf.EmbeddingVariableOption(filter_option=tf.CounterFilter(filter_freq=2)))
    self.train()
    self.train()
    self.publisher.full()
    first = self.model.scores()
    for change in (lambda: self.train([2, 77]), lambda: self.model.users.erase([1, 3])):
      change()
      prefix = self.publisher.delta()
    ids = tf.constant(_KEYS, tf.int64)
    loaded = ev.publish.load(self.folder)
    self.assertEqual(loaded.score(ids)["scores"].numpy().tolist(), self.model.scores())
    self.assertEqual(loaded.users.total_count().numpy()[0], 3)
    self.assertNotEqual(self.model.scores(), first)
    data = prefix + ".index"
    os.rename(data, data + ".hidden")
    with self.assertRaisesRegex(errors.CheckpointError, "delta 2 of version 1 .*is missing"):
      ev.publish.load(self.folder)
    os.rename(data + ".hidden", data)
    loaded = ev.publish.load(self.folder)
    self.assertEqual(loaded.score(ids)["scores"].numpy().tolist(), self.model.scores())

  def test_load_of_what_a_session_published(self):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      make = lambda: tf.compat.v1.get_embedding_variable("users", 4)
      make()
      session.run(tf.compat.v1.global_variables_initializer())

      def serving_fn():
        ids = tf.compat.v1.placeholder(tf.int64, [None])
        return {"ids": ids}, {"rows": tf.nn.embedding_lookup(make(), ids)}

      ev.publish.Publisher(self.folder, serving_fn).full(session)
    with self.assertRaisesRegex(ValueError, "version 1 was published by a session"):
      ev.publish.load(self.folder)
    self.make()
    self.publisher.full()
    self.assertEqual(ev.publish.load(self.folder).users.total_count().numpy()[0], 0)

  def test_rank_0_publishes_what_is_not_spread(self):
    self.make()
    with mock.patch.object(type(job.current()), "rank", return_value=1):
      self.assertIsNone(self.publisher.full())
      self.assertIsNone(self.publisher.delta())
    self.assertFalse(os.path.exists(self.folder))
    self.assertEqual(self.publisher.full(), 1)

  def test_wrong_arguments(self):
    self.make()
    with self.assertRaisesRegex(ValueError, "keep: expected at least 1, got 0"):
      ev.publish.EagerPublisher(self.folder, self.model, keep=0)
    with self.assertRaisesRegex(ValueError, "expected signatures or export, got both"):
      ev.publish.EagerPublisher(self.folder, self.model, self.model.score, export=print)
    with tf.Graph().as_default(), self.assertRaisesRegex(RuntimeError, "use Publisher"):
      ev.publish.EagerPublisher(self.folder, self.model, self.model.score)
    dense = tf.Module()
    dense.variable = tf.Variable(1.)
    publisher = ev.publish.EagerPublisher(self.folder, dense)
    for call in (publisher.full, publisher.plan):
      with self.assertRaisesRegex(ValueError, "no embedding variable"):
        call()
    spread = mock.patch.object(type(job.current()), "placement", return_value=[0, 1])
    for call in (self.publisher.full, self.publisher.delta, self.publisher.plan):
      with spread, self.assertRaisesRegex(NotImplementedError, "'users' is spread over"):
        call()
    skip = tf.saved_model.SaveOptions(experimental_skip_saver=True)
    export = lambda folder: tf.saved_model.save(self.model, folder, self.model.score, skip)
    with self.assertRaisesRegex(ValueError, "no ops that restore it"):
      ev.publish.EagerPublisher(self.folder, self.model, export=export).full()
    self.assertIsNone(self.current())
    self.assertEqual(self.publisher.full(), 1)


def _keras_model():
  given = keras.Input((3,), dtype="int64")
  rows = [sok.layers.Embedding(dim, combiner="sum", key_dtype=key_dtype, initializer="ones")(given)
          for dim, key_dtype in ((4, "int64"), (3, "int32"))]
  hidden = keras.layers.BatchNormalization()(keras.layers.Concatenate()(rows))
  model = keras.Model(given, keras.layers.Dense(1)(hidden))
  model.compile(keras.optimizers.Adam(.1), "mse")
  return model


_IDS = np.random.RandomState(0).randint(0, 50, [24, 3])
_LABELS = (_IDS.sum(1) % 7).astype(np.float32)[:, None]


class PublishCallbackTest(_Test):

  def fit(self, model, callback, epochs=1):
    model.fit(_IDS, _LABELS, batch_size=4, epochs=epochs, verbose=0, callbacks=[callback])

  def assert_close(self, found, expected):
    # A prediction near 0 is a sum of terms near 1, whose order may differ between programs.
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=5e-7)

  def assert_serves_predictions(self, server, model):
    expected = model.predict(_IDS, verbose=0)
    found, end = None, time.time() + 30
    while time.time() < end:
      found = self.served(server, _IDS.tolist())
      if np.allclose(found, expected, rtol=1e-5, atol=5e-7):
        break
      time.sleep(.05)
    self.assert_close(found, expected)

  @parameterized.parameters("export", "signatures", "module")
  def test_fit(self, how):
    model = root = _keras_model()
    signatures = None
    if how == "module":
      root = tf.Module()
      root.inner = model
    if how != "export":
      signatures = tf.function(lambda ids: {"scores": model(ids, training=False)}
                               ).get_concrete_function(tf.TensorSpec([None, 3], tf.int64))
    publisher = ev.publish.EagerPublisher(self.folder, root, signatures, keep=9)
    self.assertLen(publisher.plan()["tables"], 2)
    seen = []

    class Watch(keras.callbacks.Callback):

      def on_train_batch_end(watch, batch, logs=None):
        state = self.current()
        seen.append((state["version"], state["step"], len(state["deltas"])))

    callback = ev.publish.PublishCallback(publisher, every_steps=2, full_every=2)
    model.fit(_IDS, _LABELS, batch_size=4, verbose=0, callbacks=[callback, Watch()])
    self.assertEqual(
        seen, [(1, 1, 0), (1, 1, 0), (1, 3, 1), (1, 3, 1), (2, 5, 0), (2, 5, 0)])
    state = self.current()
    self.assertEqual((state["version"], state["step"], len(state["deltas"])), (2, 6, 1))
    server = self.start()
    self.assert_serves_predictions(server, model)
    # Another fit continues, and ends with what it trained last.
    self.fit(model, ev.publish.PublishCallback(publisher, every_steps=4, full_every=100))
    state = self.current()
    self.assertEqual((state["version"], [d["step"] for d in state["deltas"]]),
                     (2, [6, 7, 11, 12]))
    self.assert_serves_predictions(server, model)
    self.assertEqual(self.checked()[0], 0)
    # The rows of each table are in the version once, without slots.
    names = [n for n, _ in tf.train.list_variables(
        ev.publications.stored_prefix(self.folder, 2)) if n.endswith("-values")]
    self.assertLen(names, 2)
    loaded = tf.saved_model.load(os.path.join(self.folder, "2"))
    self.assertIn("serving_default", loaded.signatures)
    loaded = ev.publish.load(self.folder)
    serve = loaded.signatures["serving_default"]
    name, = serve.structured_input_signature[1]
    found, = serve(**{name: tf.constant(_IDS)}).values()
    self.assert_close(found, model.predict(_IDS, verbose=0))

  def test_load_model(self):
    if hasattr(keras, "Variable"):
      self.skipTest("load_model of Keras 3 reads no SavedModel")
    model = _keras_model()
    publisher = ev.publish.EagerPublisher(
        self.folder, model, export=lambda folder: model.save(folder, save_format="tf"))
    model.fit(_IDS, _LABELS, verbose=0)
    publisher.full()
    loaded = keras.models.load_model(os.path.join(self.folder, "1"))
    self.assert_close(loaded.predict(_IDS, verbose=0), model.predict(_IDS, verbose=0))
    model.fit(_IDS, _LABELS, verbose=0)
    publisher.delta()
    self.assert_serves_predictions(self.start(), model)

  def test_every_secs_and_a_model_without_iterations(self):
    model = _keras_model()
    publisher = ev.publish.EagerPublisher(self.folder, model)
    callback = ev.publish.PublishCallback(publisher, every_secs=1000, step=tf.Variable(7))
    self.fit(model, callback)
    state = self.current()
    self.assertEqual((state["version"], state["step"], state["deltas"]), (1, 7, []))

  def test_wrong_arguments(self):
    model = _keras_model()
    publisher = ev.publish.EagerPublisher(self.folder, model)
    for kwargs in ({}, {"every_steps": 1, "every_secs": 1.}):
      with self.assertRaisesRegex(ValueError, "every"):
        ev.publish.PublishCallback(publisher, **kwargs)
    with self.assertRaisesRegex(ValueError, "full_every: expected at least 1, got 0"):
      ev.publish.PublishCallback(publisher, every_steps=1, full_every=0)
    callback = ev.publish.PublishCallback(publisher, every_steps=100)
    callback.set_model(tf.Module())
    with self.assertRaisesRegex(ValueError, "without an optimizer"):
      callback.on_train_begin()
    self.assertFalse(os.path.exists(self.folder))
    self.fit(model, callback)
    self.assertEqual(self.current()["step"], 6)


if __name__ == "__main__":
  absltest.main()
