# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of WorkQueue in one process."""

import os

from absl.testing import absltest
from absl.testing import parameterized
import tensorflow as tf

from embedding_variable.deeprec import work_queue
from embedding_variable.tf_names import resources


def _all(session, work):
  """Takes works until the end."""
  taken = []
  try:
    while True:
      taken.append(session.run(work).decode())
  except tf.errors.OutOfRangeError:
    return taken


class WorkQueueTest(parameterized.TestCase):

  def setUp(self):
    super(WorkQueueTest, self).setUp()
    graph = tf.Graph()
    self.enter_context(graph.as_default())

  def _run(self, *args, **kwargs):
    """Returns all works of a new queue."""
    queue = work_queue.WorkQueue(*args, **kwargs)
    work = queue.take()
    with tf.Session() as session:
      session.run(queue.initializer)
      return _all(session, work)

  def test_order_of_the_list(self):
    self.assertEqual(self._run(["a", b"b ", "c"], num_epochs=2, shuffle=False),
                     ["a", "b", "c"] * 2)

  def test_each_epoch_has_all_works_in_an_order_of_its_own(self):
    works = ["w%d" % i for i in range(20)]
    taken = self._run(works, num_epochs=2, seed=7)
    self.assertCountEqual(taken[:20], works)
    self.assertCountEqual(taken[20:], works)
    self.assertNotEqual(taken[:20], works)
    self.assertNotEqual(taken[:20], taken[20:])
    self.assertEqual(self._run(works, num_epochs=2, seed=7, name="again"), taken)
    self.assertNotEqual(self._run(works, num_epochs=2, seed=8), taken)

  def test_prefix(self):
    self.assertEqual(self._run(["a"], prefix="/data/"), ["/data/a"])

  def test_facts(self):
    queue = work_queue.WorkQueue(["a", "b"], num_epochs=3, num_clients=2)
    self.assertEqual((queue.name, queue.works, len(queue), queue.digest,
                      queue.num_clients), ("work_queue", ["a", "b"], 2, "a,b", 2))
    self.assertEqual(work_queue.WorkQueue(["a"]).name, "work_queue_1")
    self.assertEqual(work_queue.WorkQueue(["a"], name="mine").name, "mine")
    self.assertLen(work_queue.of_graph(tf.get_default_graph()), 3)

  @parameterized.parameters(
      ([], {}, ValueError), ("a", {}, ValueError), ([1], {}, ValueError),
      (["a"], {"num_epochs": 0}, ValueError), (["a"], {"num_epochs": None}, TypeError),
      (["a"], {"held": -1}, ValueError),
      (["a"], {"local_work_mgr": object()}, NotImplementedError))
  def test_wrong_arguments(self, works, options, error):
    with self.assertRaises(error):
      work_queue.WorkQueue(works, **options)

  def test_size_and_summary(self):
    queue = work_queue.WorkQueue(["a", "b"], num_epochs=2)
    work, size = queue.take(), queue.size()
    queue.add_summary()
    merged = tf.summary.merge_all()
    with tf.Session() as session:
      session.run(queue.initializer)
      session.run(work)
      self.assertEqual(session.run(size), 3)
      summary = tf.Summary.FromString(session.run(merged))
      self.assertEqual(summary.value[0].tag, "work_queue/fraction_of_work_queue_full")
      self.assertEqual(summary.value[0].simple_value, 1.5)

  def test_a_second_initialization_changes_nothing(self):
    queue = work_queue.WorkQueue(["a", "b"], shuffle=False)
    work = queue.take()
    init = resources.initialize_resources(resources.shared_resources())
    with tf.Session() as session:
      self.assertNotEmpty(session.run(resources.report_uninitialized_resources()))
      session.run(init)
      self.assertEmpty(session.run(resources.report_uninitialized_resources()))
      session.run(work)
      session.run(init)
      self.assertEqual(_all(session, work), ["b"])

  def test_a_queue_that_was_not_filled(self):
    work = work_queue.WorkQueue(["a"]).take()
    with tf.Session() as session, self.assertRaises(
        tf.errors.FailedPreconditionError):
      session.run(work)


class SavingTest(parameterized.TestCase):

  def setUp(self):
    super(SavingTest, self).setUp()
    self._prefix = os.path.join(self.create_tempdir().full_path, "model")

  def _save(self, works, num_taken, finish=False, **options):
    """Takes works, saves, and returns the path and all tensors of the checkpoint."""
    with tf.Graph().as_default(), tf.Session() as session:
      queue = work_queue.WorkQueue(works, shuffle=False, **options)
      work, finished, saver = queue.take(), queue.finish(), tf.train.Saver()
      session.run(queue.initializer)
      for _ in range(num_taken):
        session.run(work)
      if finish:
        session.run(finished)
      path = saver.save(session, self._prefix)
    reader = tf.train.load_checkpoint(path)
    return path, [w.decode() for w in reader.get_tensor("work_queue_works")]

  def _restore(self, path, works, **options):
    """Returns all works of a restored queue."""
    with tf.Graph().as_default(), tf.Session() as session:
      queue = work_queue.WorkQueue(works, shuffle=False, **options)
      work = queue.take()
      tf.train.Saver().restore(session, path)
      return _all(session, work)

  def test_unfinished_works_are_handed_out_again(self):
    path, stored = self._save(list("abcdef"), 4, held=2)
    self.assertEqual(stored, ["c", "d", "e", "f"])
    self.assertEqual(self._restore(path, list("abcdef")), stored)

  def test_the_default_number_of_unfinished_works(self):
    _, stored = self._save(list("abcdef"), 5)
    self.assertEqual(stored, list("bcdef"))

  def test_finished_works_are_not(self):
    path, stored = self._save(list("abcdef"), 4, finish=True)
    self.assertEqual(stored, ["e", "f"])
    self.assertEqual(self._restore(path, list("abcdef"), num_epochs=3), stored)

  def test_at_most_once(self):
    _, stored = self._save(list("abcdef"), 4, at_most_once=True)
    self.assertEqual(stored, ["e", "f"])

  def test_an_empty_queue_stays_empty(self):
    path, stored = self._save(["a", "b"], 2, finish=True)
    self.assertEqual(stored, [])
    self.assertEqual(self._restore(path, ["a", "b"]), [])

  def test_other_works_start_anew(self):
    path, _ = self._save(["a", "b"], 1)
    self.assertEqual(self._restore(path, ["a", "c"], num_epochs=2), ["a", "c"] * 2)

  def test_a_restored_queue_continues(self):
    path, _ = self._save(list("abcdef"), 3, held=0)
    with tf.Graph().as_default(), tf.Session() as session:
      queue = work_queue.WorkQueue(list("abcdef"), shuffle=False, held=1)
      work, saver = queue.take(), tf.train.Saver()
      saver.restore(session, path)
      session.run(work), session.run(work)
      saver.restore(session, path)
      # A work that was held before the restore is of no meaning after it.
      session.run(work), session.run(work)
      path = saver.save(session, self._prefix)
    self.assertEqual(self._restore(path, list("abcdef")), ["e", "f"])

  def test_saves_in_shards(self):
    with tf.Graph().as_default(), tf.Session() as session:
      queue = work_queue.WorkQueue(["a", "b"], num_epochs=2)
      tf.get_variable("v", initializer=1.)
      saver = tf.train.Saver(sharded=True)
      session.run([queue.initializer, tf.global_variables_initializer()])
      path = saver.save(session, self._prefix)
      self.assertCountEqual(dict(tf.train.list_variables(path)),
                            ["v", "work_queue_digest", "work_queue_works"])


class InputTest(parameterized.TestCase):

  def _files(self, lines):
    folder = self.create_tempdir()
    return [folder.create_file("f%d" % i, "".join("%s\n" % l for l in some)).full_path
            for i, some in enumerate(lines)]

  def test_input_producer(self):
    with tf.Graph().as_default(), tf.Session() as session:
      queue = work_queue.WorkQueue(["a", "b", "c"], shuffle=False)
      work = queue.input_producer().dequeue()
      self.assertIs(queue.input_producer(), queue.input_producer())
      session.run(queue.initializer)
      coord = tf.train.Coordinator()
      tf.train.start_queue_runners(session, coord)
      self.assertEqual(_all(session, work), ["a", "b", "c"])
      coord.request_stop()

  def _train(self, files, folder, steps=None, num_epochs=2, save_steps=100):
    """Reads lines in a monitored session; returns them."""
    with tf.Graph().as_default():
      queue = work_queue.WorkQueue(files, num_epochs=num_epochs, shuffle=False)
      dataset = tf.data.TextLineDataset(queue.input_dataset()).prefetch(1)
      iterator = tf.data.make_initializable_iterator(dataset)
      line = iterator.get_next()
      step = tf.train.get_or_create_global_step()
      train_op = step.assign_add(1)
      scaffold = tf.train.Scaffold(local_init_op=tf.group(
          tf.local_variables_initializer(), iterator.initializer))
      hooks = [tf.train.StopAtStepHook(num_steps=steps)] if steps else []
      lines = []
      with tf.train.MonitoredTrainingSession(
          checkpoint_dir=folder, scaffold=scaffold, hooks=hooks,
          save_checkpoint_steps=save_steps) as session:
        while not session.should_stop():
          _, text = session.run([train_op, line])
          lines.append(text.decode())
      return lines

  def test_a_run_that_used_all_input_leaves_nothing(self):
    files = self._files([["1", "2"], ["3"]])
    folder = self.create_tempdir().full_path
    self.assertEqual(self._train(files, folder), ["1", "2", "3", "1", "2", "3"])
    self.assertEqual(self._train(files, folder), [])

  @parameterized.parameters(1, 2, 3)
  def test_the_last_step_is_a_save(self, save_steps):
    files = self._files([["1", "2"], ["3", "4", "5"]])
    folder = self.create_tempdir().full_path
    self.assertEqual(self._train(files, folder, num_epochs=1, save_steps=save_steps),
                     ["1", "2", "3", "4", "5"])
    for _ in range(2):
      self.assertEqual(
          self._train(files, folder, num_epochs=1, save_steps=save_steps), [])

  def test_files_that_no_one_has_read_stay(self):
    folder = self.create_tempdir().full_path
    with tf.Graph().as_default():
      used = work_queue.WorkQueue(["a"], name="used").input_producer().dequeue()
      work_queue.WorkQueue(["b"], name="unused").input_producer()
      step = tf.train.get_or_create_global_step().assign_add(1)
      with tf.train.MonitoredTrainingSession(checkpoint_dir=folder) as session:
        while not session.should_stop():
          session.run([step, used])
    reader = tf.train.load_checkpoint(folder)
    self.assertEmpty(reader.get_tensor("used_works"))
    self.assertEqual(list(reader.get_tensor("unused_works")), [b"b"])

  def test_a_run_that_stops_repeats_its_unfinished_works(self):
    files = self._files([["%d" % i] for i in range(8)])
    folder = self.create_tempdir().full_path
    first = self._train(files, folder, steps=3, num_epochs=1)
    self.assertEqual(first, ["0", "1", "2"])
    second = self._train(files, folder, num_epochs=1)
    self.assertCountEqual(set(first + second), ["%d" % i for i in range(8)])
    self.assertEqual(second[-1], "7")
    self.assertLess(len(second), 9)


if __name__ == "__main__":
  absltest.main()
