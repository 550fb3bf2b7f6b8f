# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests finishing a checkpoint's replacement that another process started."""

import contextlib
import os
import threading

from absl.testing import absltest
import tensorflow as tf

from embedding_variable.checkpoint_format import durable
from embedding_variable.checkpoint_format import interrupted

_DATA = ".data-%05d-of-00003"

# On TensorFlow 2.x a test's `tf` has another module of this name.
_gfile = interrupted.tf.io.gfile


class DurableTest(absltest.TestCase):

  def _interrupted(self):
    """Returns the prefix of an old checkpoint whose new files are not renamed yet."""
    prefix = os.path.join(self.create_tempdir().full_path, "model.ckpt-7")
    for suffix in [".index"] + [_DATA % i for i in range(3)]:
      for name, content in ((prefix, "old"), (prefix + ".commit", "new")):
        with open(name + suffix, "w") as f:
          f.write(content + suffix)
    return prefix

  def _assert_finished(self, prefix):
    names = [os.path.basename(prefix) + s
             for s in [".index"] + [_DATA % i for i in range(3)]]
    directory = os.path.dirname(prefix)
    self.assertCountEqual(os.listdir(directory), names)
    for name in names:
      with open(os.path.join(directory, name)) as f:
        self.assertStartsWith(f.read(), "new")

  def test_finishes_and_then_does_nothing(self):
    prefix = self._interrupted()
    for _ in range(2):
      interrupted.finish_interrupted(prefix)
      self._assert_finished(prefix)

  def test_reading_writes_nothing(self):
    prefix = self._interrupted()
    os.rename(prefix + ".commit" + _DATA % 1, prefix + _DATA % 1)
    directory = os.path.dirname(prefix)
    before = sorted(os.listdir(directory))
    read_only = tf.errors.PermissionDeniedError(None, None, "read-only")
    with absltest.mock.patch.object(_gfile, "rename", side_effect=read_only):
      found = interrupted.finished(prefix)
    for path in (found, interrupted.readable(prefix)):
      self.assertNotEqual(os.path.dirname(path), directory)
      self._assert_finished(path)
    self.assertEqual(sorted(os.listdir(directory)), before)
    self.assertEqual(interrupted.index_of(prefix), prefix + ".commit.index")
    interrupted.finish_interrupted(prefix)
    self.assertEqual(interrupted.readable(prefix), prefix)
    self.assertEqual(interrupted.index_of(prefix), prefix + ".index")

  def test_by_many_at_once(self):
    for _ in range(20):
      prefix = self._interrupted()
      failures = []

      def finish(prefix=prefix, failures=failures):
        try:
          interrupted.finish_interrupted(prefix)
        except Exception as e:  # pylint: disable=broad-except
          failures.append(e)

      threads = [threading.Thread(target=finish) for _ in range(4)]
      for thread in threads:
        thread.start()
      for thread in threads:
        thread.join()
      self.assertEmpty(failures)
      self._assert_finished(prefix)

  def test_another_moves_a_file_first(self):
    prefix = self._interrupted()
    rename, moved = _gfile.rename, []

    def after_another(path, new_path, overwrite=False):
      rename(path, new_path, overwrite)
      moved.append(path)
      rename(path, new_path, overwrite)  # NotFoundError: it is renamed already

    with absltest.mock.patch.object(_gfile, "rename", after_another):
      interrupted.finish_interrupted(prefix)
    self.assertLen(moved, 4)
    self._assert_finished(prefix)

  def test_a_missing_file_is_an_error(self):
    prefix = self._interrupted()

    def lose(path, new_path, overwrite=False):
      del new_path, overwrite
      raise tf.errors.NotFoundError(None, None, path)

    os.remove(prefix + _DATA % 0)
    with absltest.mock.patch.object(_gfile, "rename", lose):
      with self.assertRaises(tf.errors.NotFoundError):
        interrupted.finish_interrupted(prefix)
    self.assertTrue(os.path.exists(prefix + ".commit.index"))

  def test_uris_of_local_files(self):
    prefix = self._interrupted()
    self.assertTrue(durable.is_local("file://" + prefix))
    self.assertFalse(durable.is_local("hdfs:///a"))
    self.assertEqual(durable.local("file://host/a"), "/a")
    found = interrupted.readable("file://" + prefix)
    self._assert_finished(found)
    with absltest.mock.patch.object(os, "fsync") as synced:
      durable.sync("file://" + os.path.dirname(prefix))
    synced.assert_called_once()
    interrupted.finish_interrupted("file://" + prefix)
    self._assert_finished(prefix)


class ReplaceTest(absltest.TestCase):

  def _write(self, path, kind, content):
    """Writes a file, or a folder with two files, of a content."""
    part = durable.begin(path)
    names = [part]
    if kind == "folder":
      durable.make_folder(part)
      names = [os.path.join(part, name) for name in "ab"]
    for name in names:
      with open(name, "w") as f:
        f.write(content)
    durable.replace(path)

  def _read(self, path):
    """Returns the contents of a file, or of a folder's files."""
    path = durable.current(path)
    names = [path]
    if os.path.isdir(path):
      names = [os.path.join(path, name) for name in sorted(os.listdir(path))]
    found = []
    for name in names:
      with open(name) as f:
        found.append(f.read())
    return found

  def test_an_end_at_any_point_leaves_the_old_or_the_new(self):
    for before in ("file", "folder"):
      for after in ("file", "folder"):
        for last in range(20):
          path = self.create_tempdir().full_path + "/x"
          self._write(path, before, "old")
          steps = []

          def limited(function, steps=steps, last=last):
            def call(*args, **kwargs):
              steps.append(function)
              if len(steps) > last:
                raise KeyboardInterrupt()  # no handler sees it, as the end of a process
              return function(*args, **kwargs)
            return call

          ended = False
          with contextlib.ExitStack() as stack:
            for name in ("rename", "replace", "fsync", "remove", "rmdir"):
              stack.enter_context(absltest.mock.patch.object(
                  os, name, limited(getattr(os, name))))
            try:
              self._write(path, after, "new")
            except KeyboardInterrupt:
              ended = True
          found = set(self._read(path))
          self.assertIn(found, [{"old"}, {"new"}], (before, after, last))
          self._write(path, before, "newer")
          self.assertEqual(set(self._read(path)), {"newer"})
          self.assertEqual(os.listdir(os.path.dirname(path)), ["x"])
          if not ended:
            break
        self.assertFalse(ended)

  def test_files_are_synced_before_they_get_their_name(self):
    folder = self.create_tempdir().full_path
    path = folder + "/new/parent/x/"
    with absltest.mock.patch.object(durable, "sync", wraps=durable.sync) as sync:
      with absltest.mock.patch.object(os, "replace", wraps=os.replace) as replace:
        calls = absltest.mock.Mock()
        calls.attach_mock(sync, "sync")
        calls.attach_mock(replace, "replace")
        durable.make_folder(folder + "/new/parent")
        self._write(path, "folder", "new")
    found = [(name, args[0]) for name, args, _ in calls.mock_calls]
    named = found.index(("replace", folder + "/new/parent/x.part"))
    before = [p for _, p in found[:named]]
    for expected in (folder, folder + "/new", folder + "/new/parent/x.part/a",
                     folder + "/new/parent/x.part/b", folder + "/new/parent/x.part"):
      self.assertIn(expected, before)
    self.assertEqual(found[-1], ("sync", folder + "/new/parent"))
    self.assertEqual(self._read(path), ["new", "new"])


if __name__ == "__main__":
  absltest.main()
