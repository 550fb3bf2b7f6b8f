# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""States of versions, with folders and a loader that opens no model."""

import os
import shutil
import tempfile
import threading

from absl.testing import absltest

from embedding_variable_serving import errors
from embedding_variable_serving import metrics
from embedding_variable_serving.models import folders
from embedding_variable_serving.models import manager

_OPTIONS = manager.Options(poll_seconds=0.02, retries=1, retry_seconds=0.02)


class _Servable(object):

  def __init__(self, path):
    self.path, self.closed = path, threading.Event()

  def close(self):
    self.closed.set()


class ManagerTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.base = tempfile.mkdtemp(dir=absltest.get_default_test_tmpdir())
    self.loaded, self.failing, self.gates = [], set(), {}
    self.manager = None
    self.addCleanup(lambda: self.manager and self.manager.close())

  def load(self, unused_name, number, path):
    self.loaded.append(number)
    if number in self.gates:
      self.gates[number].wait(20)
    if number in self.failing:
      raise ValueError("no variables in %d" % number)
    return _Servable(path)

  def add(self, *names):
    for name in names:
      part = os.path.join(self.base, "part")
      os.mkdir(part)
      open(os.path.join(part, "saved_model.pb"), "w").close()
      os.rename(part, os.path.join(self.base, name))

  def remove(self, name):
    shutil.rmtree(os.path.join(self.base, name))

  def settings(self, policy=folders.LATEST, name="m", **labels):
    return manager.ModelSettings(name, self.base, policy, labels)

  def start(self, settings=None, options=_OPTIONS):
    self.manager = manager.Manager(self.load, options)
    self.manager.configure([settings or self.settings()])
    self.manager.wait(["m"], 20)

  def wait_for(self, **states):
    """Waits until the model has exactly these states, given as v1="AVAILABLE"."""
    expected = {int(name[1:]): state for name, state in states.items()}

    def found():
      try:
        return {number: state for number, state, _ in self.manager.status("m")}
      except errors.ServingError:
        return {}
    for _ in range(1000):
      if found() == expected:
        return
      threading.Event().wait(0.01)
    self.assertEqual(found(), expected)

  def serving(self, number=None):
    with self.manager.use("m", number) as version:
      return version.number

  def serving_or_none(self):
    try:
      return self.serving()
    except errors.ServingError:
      return None

  def test_a_newer_version_replaces_after_it_has_loaded(self):
    self.add("1")
    self.start()
    self.assertEqual(self.serving(), 1)
    self.gates[2] = threading.Event()
    self.add("2")
    self.wait_for(v1="AVAILABLE", v2="LOADING")
    self.assertEqual(self.serving(), 1)
    self.gates[2].set()
    self.wait_for(v1="END", v2="AVAILABLE")
    self.assertEqual(self.serving(), 2)

  def test_a_version_that_fails_never_replaces(self):
    self.add("1")
    self.start()
    self.failing.add(2)
    self.add("2")
    self.wait_for(v1="AVAILABLE", v2="END")
    self.assertEqual(self.loaded, [1, 2, 2])
    error = self.manager.status("m", 2)[0][2]
    self.assertIn("no variables in 2", error.message)
    self.assertEqual(self.serving(), 1)
    # The folder goes and returns, and the version is tried again.
    self.failing.clear()
    self.remove("2")
    for _ in range(500):
      if self.manager._models["m"].versions[2].forgotten:
        break
      threading.Event().wait(0.01)
    self.add("2")
    self.wait_for(v1="END", v2="AVAILABLE")

  def test_one_retry_cures(self):
    self.failing.add(1)
    self.add("1")
    self.manager = manager.Manager(self.load, _OPTIONS._replace(retries=1000))
    self.manager.configure([self.settings()])
    while len(self.loaded) < 2:
      threading.Event().wait(0.01)
    self.failing.clear()
    self.wait_for(v1="AVAILABLE")

  def test_versions_that_wait_for_a_retry_keep_no_other_from_loading(self):
    self.failing.update((1, 2, 3))
    self.add("1", "2", "3")
    every = folders.Policy("all", 0, frozenset())
    self.manager = manager.Manager(
        self.load, _OPTIONS._replace(load_threads=1, retry_seconds=3600))
    self.manager.configure([self.settings(every)])
    while len(self.loaded) < 3:
      threading.Event().wait(0.01)
    self.add("4")
    self.wait_for(v1="LOADING", v2="LOADING", v3="LOADING", v4="AVAILABLE")
    self.assertIn("no variables in 2", self.manager.status("m", 2)[0][2].message)
    # Versions that the policy no longer selects are not retried.
    self.manager.configure([self.settings(folders.LATEST)])
    self.wait_for(v1="END", v2="END", v3="END", v4="AVAILABLE")
    self.assertCountEqual(self.loaded, [1, 2, 3, 4])

  def test_unloading_waits_for_requests(self):
    self.add("1")
    self.start()
    with self.manager.use("m") as version:
      servable = version.servable
      self.add("2")
      self.wait_for(v1="UNLOADING", v2="AVAILABLE")
      self.assertFalse(servable.closed.is_set())
      self.assertEqual(self.serving(), 2)
      with self.assertRaisesRegex(errors.ServingError, r"Specific\(m, 1\)"):
        self.serving(1)
    self.assertTrue(servable.closed.wait(20))
    self.wait_for(v1="END", v2="AVAILABLE")

  def test_who_must_not_wait_gets_no_version_while_it_changes(self):
    self.add("1")
    self.start()
    version = self.manager.enter("m", waits=False)
    self.assertEqual((version.number, version.in_flight), (1, 1))
    self.manager.leave(version)
    version.paused = True
    self.assertIsNone(self.manager.enter("m", waits=False))
    self.assertEqual(version.in_flight, 0)
    version.paused = False
    self.assertEqual(self.serving(), 1)

  def test_metrics_of_old_versions_are_removed(self):
    recorded = metrics.Metrics()
    self.add("1")
    self.manager = manager.Manager(self.load, _OPTIONS, recorded)
    self.manager.configure([self.settings()])
    for number in range(1, 14):
      while self.serving_or_none() != number:
        threading.Event().wait(0.01)
      with recorded.request("m", "Predict", "GRPC") as request:
        request.version = number
      self.add(str(number + 1))
    self.wait_for(**dict({"v%d" % n: "END" for n in range(4, 14)}, v14="AVAILABLE"))
    text = recorded.text().decode()
    for number in range(1, 14):
      for label in ('version="%d"' % number, 'model_path="%s/%d"' % (self.base, number)):
        self.assertEqual(label in text, number > 3, label)
    self.manager.configure([self.settings(name="n")])
    while "m" in self.manager._models:
      threading.Event().wait(0.01)
    self.assertNotIn('model_name="m"', recorded.text().decode())

  def test_policies(self):
    self.add("1", "2", "3", "x", "-4", "5.part", "0007")
    self.start(self.settings(folders.Policy("all", 0, frozenset())))
    self.wait_for(v1="AVAILABLE", v2="AVAILABLE", v3="AVAILABLE", v7="AVAILABLE")
    self.manager.configure([self.settings(folders.Policy("specific", 0, frozenset([1, 3])))])
    self.wait_for(v1="AVAILABLE", v2="END", v3="AVAILABLE", v7="END")
    self.manager.configure([self.settings(folders.Policy("latest", 2, frozenset()))])
    self.wait_for(v1="END", v2="END", v3="AVAILABLE", v7="AVAILABLE")
    self.assertEqual(self.loaded.count(3), 1)

  def test_a_folder_without_a_graph_does_not_count(self):
    self.add("1")
    os.mkdir(os.path.join(self.base, "2"))
    self.start()
    self.assertEqual(self.loaded, [1])
    open(os.path.join(self.base, "2", "saved_model.pb"), "w").close()
    self.wait_for(v1="END", v2="AVAILABLE")

  def test_an_empty_base_path_unloads_and_a_missing_one_changes_nothing(self):
    self.add("1")
    self.start()
    moved = self.base + "-moved"
    os.rename(self.base, moved)
    threading.Event().wait(0.1)
    self.assertEqual(self.serving(), 1)
    os.rename(moved, self.base)
    self.remove("1")
    self.wait_for(v1="END")
    with self.assertRaisesRegex(errors.ServingError, r"Latest\(m\)"):
      self.serving()
    self.assertFalse(self.manager.is_ready())

  def test_labels(self):
    self.add("1", "2")
    every = folders.Policy("all", 0, frozenset())
    self.start(self.settings(every))
    self.wait_for(v1="AVAILABLE", v2="AVAILABLE")
    with self.assertRaisesRegex(errors.ServingError, "Unrecognized") as caught:
      self.manager.resolve("m", "stable")
    self.assertEqual(caught.exception.code, "UNAVAILABLE")
    self.manager.configure([self.settings(every, stable=1)])
    self.assertEqual(self.manager.resolve("m", "stable"), 1)
    with self.assertRaisesRegex(errors.ServingError, "version 9, which is not available"):
      self.manager.configure([self.settings(every, stable=9)])
    self.assertEqual(self.manager.resolve("m", "stable"), 1)
    with self.assertRaises(errors.ServingError) as caught:
      self.manager.resolve("m", "other")
    self.assertEqual(caught.exception.code, "INVALID_ARGUMENT")

  def test_a_removed_model_is_unloaded_and_a_new_one_waited_for(self):
    self.add("1")
    self.start()
    self.manager.configure([self.settings(name="n")])
    self.assertTrue(self.manager.wait(["n"], 20))
    self.assertEqual(self.manager.names(), ["n"])
    for _ in range(500):
      try:
        self.manager.status("m")
      except errors.ServingError as e:
        self.assertEqual(e.code, "NOT_FOUND")
        break
      threading.Event().wait(0.01)
    else:
      self.fail("the removed model is still known")

  def test_close_while_loading(self):
    self.gates[1] = threading.Event()
    self.add("1")
    self.manager = manager.Manager(self.load, _OPTIONS)
    self.manager.configure([self.settings()])
    self.wait_for(v1="LOADING")
    threading.Timer(0.1, self.gates[1].set).start()
    self.manager.close()
    self.assertEqual(self.loaded, [1])


if __name__ == "__main__":
  absltest.main()
