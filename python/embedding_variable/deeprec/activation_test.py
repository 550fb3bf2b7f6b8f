# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the launcher prepares: options, names, versions, protocols."""

import contextlib
import importlib
import io
import os
import sys

from absl.testing import absltest
from absl.testing import parameterized
import tensorflow as tf

import embedding_variable  # pylint: disable=unused-import
from embedding_variable.deeprec import activation
from embedding_variable.deeprec import main
from embedding_variable.deeprec import names
from embedding_variable.tf_names import server_lib
from embedding_variable.deeprec import notices
from embedding_variable.deeprec import session_options
from embedding_variable.deeprec.patches import sessions_patch

_VERSION = "1.15.5+deeprec2402"


def _found(name):
  """Returns the object of a dotted name, or None."""
  parts = name.split(".")
  for depth in range(len(parts), 0, -1):
    try:
      value = tf if parts[0] == "tf" else importlib.import_module(
          ".".join(parts[:depth]))
    except ImportError:
      continue
    for part in parts[1 if parts[0] == "tf" else depth:]:
      value = getattr(value, part, None)
    return value
  return None


class BeforeTest(absltest.TestCase):
  """Runs first: importing the package alone changes nothing."""

  def test_nothing_is_active(self):
    self.assertFalse(hasattr(tf, "staged"))
    self.assertIsNone(_found("tensorflow.python.ops.work_queue.WorkQueue"))
    with self.assertRaises(AttributeError):
      tf.ConfigProto().graph_options.optimizer_options.do_op_fusion = True
    with self.assertRaises(AttributeError):
      tf.variable_scope("a").keep_weights()
    self.assertIsNone(_found("tf.config.experimental.enable_distributed_strategy"))


class LaunchedTest(parameterized.TestCase):

  @classmethod
  def setUpClass(cls):
    super(LaunchedTest, cls).setUpClass()
    activation.activate(_VERSION, is_quiet=True)
    activation.activate(_VERSION)
    cls.lines = []

  def _lines_of(self, function):
    """Returns the notices that a function prints."""
    notices._printed.clear()  # pylint: disable=protected-access
    text = io.StringIO()
    with contextlib.redirect_stderr(text):
      function()
    return [l for l in text.getvalue().splitlines() if l.startswith("deeprec: ")]

  def test_the_list_of_names_is_true(self):
    for group in names.groups():
      for name in group["names"]:
        self.assertIn(name["is"], names.KINDS, name)
        text = name["name"]
        if "(" in text or not text.startswith(("tf.", "tensorflow.")):
          continue
        with self.subTest(text):
          if name["is"] == "error" and not text.endswith("CheckpointOption"):
            self.assertIsNone(_found(text))
          else:
            self.assertIsNotNone(_found(text))

  def test_the_list_has_every_option_and_environment_variable(self):
    listed = " ".join(
        "%s %s" % (n["name"], n["how"]) for g in names.groups() for n in g["names"])
    for field in session_options.TABLE:
      if not field.name.startswith(("do_smart_stage_gpu", "embedding_layer_", "device_pl",
                                    "run_graph_mode_lite")):
        self.assertIn(field.name, listed)
    for group in names.groups():
      for name in group["names"]:
        kind, option = name["is"], session_options.BY_NAME.get(
            name["name"].split(".")[-1])
        if option is not None:
          self.assertEqual(kind, "stands in" if option.why is None else "no effect", name)
        if name["name"] in sessions_patch.ENVIRONMENT:
          self.assertEqual(kind, "no effect", name)

  @parameterized.parameters(*[f.name for f in session_options.TABLE])
  def test_options(self, name):
    field = session_options.BY_NAME[name]
    message = field.owner()
    before = message.SerializeToString()
    lines = self._lines_of(lambda: self._set(message, field))
    self.assertLen(lines, 0 if field.why is None else 1)
    if field.has_parts:
      self.assertEqual(message.SerializeToString(), before)
      return
    self.assertEqual(getattr(message, name),
                     3 if name in session_options.NUMBERS else True)
    copied = field.owner.FromString(message.SerializeToString())
    self.assertEqual(getattr(copied, name), getattr(message, name))
    self.assertTrue(getattr(field.owner(**{name: True}), name))
    setattr(message, name, 0)
    self.assertEqual(getattr(message, name), 0)
    with self.assertRaisesRegex(ValueError, name):
      setattr(message, name, -1)

  def _set(self, message, field):
    if field.has_parts:
      getattr(message, field.name).threads_num = 4
      getattr(message, field.name).add().value = 4
    else:
      setattr(message, field.name, 3)

  def test_options_reach_the_session(self):
    config = tf.ConfigProto(executor_policy=tf.ExecutorPolicy.USE_INLINE_EXECUTOR)
    config.graph_options.optimizer_options.micro_batch_num = 2
    config = tf.estimator.RunConfig(session_config=config).session_config
    with tf.Graph().as_default():
      number = tf.data.make_one_shot_iterator(tf.data.Dataset.range(9)).get_next()
      a = tf.get_variable("a", initializer=0.)
      train_op = tf.train.GradientDescentOptimizer(-1.).minimize(
          a * tf.cast(number, tf.float32))
      with tf.Session(config=config) as session:
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        session.run(train_op)
        self.assertEqual(session.run(a), 0 + 1 + 2 + 3)

  def test_other_options_stay(self):
    config = tf.ConfigProto(allow_soft_placement=True, inter_op_parallelism_threads=3)
    self.assertEqual(config.inter_op_parallelism_threads, 3)
    with self.assertRaises(ValueError):
      tf.ConfigProto(no_such_option=1)

  def test_environment(self):
    os.environ["START_STATISTIC_STEP"] = "100"
    lines = self._lines_of(lambda: tf.Session(graph=tf.Graph()).close())
    self.assertLen([l for l in lines if "START_STATISTIC_STEP: no effect" in l], 1)

  def test_version(self):
    import pkg_resources  # pylint: disable=g-import-not-at-top
    self.assertEqual(pkg_resources.get_distribution("Tensorflow").version, _VERSION)
    self.assertNotIn("deeprec", pkg_resources.get_distribution("numpy").version)
    self.assertNotIn("deeprec", tf.__version__)

  @parameterized.parameters("grpc++", "star_server")
  def test_protocols(self, protocol):
    lines = self._lines_of(lambda: self.assertEqual(
        server_lib.Server({"worker": ["localhost:0"]}, "worker", 0, protocol=protocol,
                          start=False).server_def.protocol, "grpc"))
    self.assertEqual(lines, ["deeprec: protocol %s: stand-in: grpc" % protocol])

  def test_bfloat16_is_checked_when_a_session_is_made(self):
    with tf.Graph().as_default():
      with tf.variable_scope("a").keep_weights():
        tf.tanh(tf.get_variable("w", [2], tf.bfloat16))
      with self.assertRaisesRegex(NotImplementedError, "Tanh for bfloat16"):
        tf.Session()

  def test_saving_listeners(self):
    saves = []

    class Listener(tf.train.CheckpointSaverListener):

      def after_save(self, session, step):
        saves.append(step)

    with tf.Graph().as_default():
      step = tf.train.get_or_create_global_step()
      with tf.train.MonitoredTrainingSession(
          checkpoint_dir=self.create_tempdir().full_path, saving_listeners=[Listener()],
          target_nodes_or_tensors=[step]) as session:
        session.run(step)
    self.assertEqual(saves, [0])

  def test_notices_are_printed_once(self):
    def use():
      for _ in range(2):
        with tf.stream(1):
          tf.async_embedding_mark_node(None)
    self.assertLen(self._lines_of(use), 2)

  def test_collective_only(self):
    with self.assertRaisesRegex(ValueError, "'collective', got 'parameter_server'"):
      tf.config.experimental.enable_distributed_strategy("parameter_server")

  def test_command_line(self):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
      self.assertEqual(main.main(["--list"]), 0)
    self.assertIn("stands in  tf.staged", text.getvalue())
    text = io.StringIO()
    with contextlib.redirect_stderr(text):
      self.assertEqual(main.main(["no_such.py"]), 2)
      with self.assertRaises(SystemExit):
        main.main([])
    self.assertIn("no script no_such.py", text.getvalue())

  def test_a_script_runs_as_main(self):
    folder = self.create_tempdir()
    folder.create_file("helper.py", "VALUE = 7\n")
    script = folder.create_file(
        "train.py", "import sys, helper, tensorflow as tf\n"
        "assert __name__ == '__main__' and tf.staged\n"
        "print(sys.argv[1:], helper.VALUE)\n").full_path
    text, argv, path = io.StringIO(), sys.argv, list(sys.path)
    try:
      with contextlib.redirect_stdout(text):
        self.assertEqual(main.main(["--quiet", script, "--quiet", "x"]), 0)
    finally:
      sys.argv, sys.path[:] = argv, path
    self.assertEqual(text.getvalue(), "['--quiet', 'x'] 7\n")


if __name__ == "__main__":
  absltest.main()
