# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training restarts from every folder that a kill during a save can leave, and cleans
up."""

import contextlib
import copy
import os
import re
import shutil
import tempfile

from absl.testing import absltest
from absl.testing import parameterized
import tensorflow as tf

import embedding_variable as ev

import crash_images
import trained_model

_LEFTOVER = re.compile(r"\.partial|_temp_|_part_|\.commit")


class CrashImagesTest(parameterized.TestCase):

  def setUp(self):
    super(CrashImagesTest, self).setUp()
    # In memory, because waiting for a disk a thousand times tests nothing.
    memory = "/dev/shm"
    self._root = tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None)
    self.addCleanup(shutil.rmtree, self._root)
    self._dir = os.path.join(self._root, "job")
    os.mkdir(self._dir)

  @contextlib.contextmanager
  def _in(self, recording, image):
    """Context: the job's folder has the contents of an image."""
    aside = self._dir + ".aside"
    os.rename(self._dir, aside)
    try:
      recording.make(image, self._dir)
      yield
    finally:
      shutil.rmtree(self._dir)
      os.rename(aside, self._dir)

  def _check_tidy(self):
    """Checks that only checkpoints and their own deltas are left."""
    folder = self._dir
    names = [os.path.join(f, n)[len(folder):] for f, folders, files in os.walk(folder)
             for n in files + folders]
    self.assertEmpty([n for n in names if _LEFTOVER.search(n)])
    deltas = os.path.join(folder, ".incremental_checkpoint")
    for name in os.listdir(deltas) if os.path.isdir(deltas) else ():
      full = name.split(".index")[0].split(".data-")[0].rsplit("-", 2)[0]
      self.assertTrue(os.path.exists(os.path.join(folder, full + ".index")), name)

  @parameterized.parameters(
      dict(sharded=True, with_step=True), dict(sharded=False, with_step=False),
      dict(sharded=True, with_step=False, on_ssd=True))
  def test_savers(self, sharded, with_step, on_ssd=False):
    model = trained_model.Model(
        sharded, max_to_keep=1,
        storage_path=os.path.join(self._root, "ssd") if on_ssd else None)
    self._saver = model.saver

    def full(session):
      model.saver.save(session, os.path.join(self._dir, "model.ckpt"),
                       global_step=model.step if with_step else None,
                       write_meta_graph=False)

    def delta(session):
      ev.save_incremental(model.saver, session, self._dir)

    def start(session, allowed):
      newest = tf.train.latest_checkpoint(self._dir)
      if newest:
        model.saver.restore(session, newest)
        self.assertIn(model.digest(session), allowed)
        model.saver.recover_last_checkpoints(
            tf.train.get_checkpoint_state(self._dir).all_model_checkpoint_paths)
      else:
        self.assertIn("nothing", allowed)
        session.run(model.init)

    before, ids = "nothing", 0
    with tf.Session(graph=model.graph) as session, tf.Session(
        graph=model.graph) as again:
      session.run(model.init)
      for save in (full, delta, delta, full):
        for ids in range(ids, ids + 120, 40):
          session.run(model.train, {model.ids: range(ids, ids + 60)})
        after = model.digest(session)
        with crash_images.Recording(self._dir) as recording:
          save(session)
        for image in recording.images:
          with self._in(recording, image), self._another_process():
            # MonitoredTrainingSession starts in this way.
            start(again, {before, after})
            full(again)
            self._check_tidy()
            again.run(model.train, {model.ids: [1, 2, 3]})
            delta(again)
            start(again, {model.digest(again)})
        self.assertGreater(len(recording.images), 5)
        before = after

  @contextlib.contextmanager
  def _another_process(self):
    """Context that resets the saver's state on exit, as in a new process."""
    known = {k: copy.copy(v) if isinstance(v, (dict, list)) else v
             for k, v in self._saver.__dict__.items()}
    yield
    self._saver.__dict__.clear()
    self._saver.__dict__.update(known)

  def _started_deltas(self, recording):
    """Returns the image of the start of each incremental save."""
    found = {}
    for image in recording.images:
      for path, file in sorted(image.items()):
        if file is None and path.startswith(".incr") and "_temp_" in path:
          found.setdefault(path, image)
    self.assertNotEmpty(found)
    return list(found.values())

  @parameterized.parameters("session", "estimator")
  def test_automatic_saves(self, kind):

    def model_fn(mode):
      step = tf.train.get_or_create_global_step()
      table = tf.get_embedding_variable("t", 2)
      loss = tf.reduce_sum(tf.nn.embedding_lookup(table, [1, 2]) ** 2)
      return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.group(
          tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=step)))

    def estimator(steps):
      config = tf.estimator.RunConfig(
          model_dir=self._dir, log_step_count_steps=None, save_summary_steps=None)
      hook = tf.train.CheckpointSaverHook(self._dir, save_steps=6,
                                          incremental_save_steps=2)
      tf.estimator.Estimator(lambda features, mode: model_fn(mode), config=config).train(
          lambda: tf.data.Dataset.from_tensors(0).repeat(), hooks=[hook], steps=steps)

    def session(steps):
      with tf.Graph().as_default():
        train = model_fn("train").train_op
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=self._dir, save_checkpoint_steps=6,
            save_incremental_checkpoint_steps=2, save_summaries_steps=None,
            save_summaries_secs=None, log_step_count_steps=None) as monitored:
          for _ in range(steps):
            monitored.run(train)

    train = dict(session=session, estimator=estimator)[kind]
    with crash_images.Recording(self._dir) as recording:
      train(5)
    images = self._started_deltas(recording)
    self.assertLen(images, 2)
    for i, image in enumerate(images):
      with self._in(recording, image):
        train(1)
        self._check_tidy()
        # A kill during the first delta leaves none; during the second, it leaves the
        # first.
        self.assertEqual(tf.train.load_variable(self._dir, "global_step"), 2 * i + 1)


if __name__ == "__main__":
  absltest.main()
