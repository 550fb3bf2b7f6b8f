# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Kills a process while it saves; complete full and incremental checkpoints restore.

A process trains and saves full checkpoints and deltas in random order. It logs the digest
of its state before and after each save and is killed after a random time. The next
process restores and must have, bit for bit, the state of the last save that was logged as
complete or of the save in progress. Then it continues. For more kills:

  bazel test //tests/faults:kill_test --test_arg=--kills=200
"""

import os
import random
import signal
import sys
import time
import traceback

from absl import flags
from absl.testing import absltest
from absl.testing import parameterized
import tensorflow as tf

import embedding_variable as ev

import trained_model

flags.DEFINE_integer("kills", 20, "Number of processes to kill.")
flags.DEFINE_integer("seed", 1, "Seed of the times of the kills.")

_LONGEST = 0.5  # maximum seconds until a kill
_MOST_TIMES = 10  # maximum multiple of the requested number of kills


def _train_and_save(model, directory, log, seed, with_step):
  """The code of a process until it is killed."""
  draw = random.Random(seed)
  say = lambda *words: os.write(log, (" ".join(words) + "\n").encode())
  session = tf.Session(graph=model.graph, config=tf.ConfigProto(
      intra_op_parallelism_threads=1, inter_op_parallelism_threads=2))
  newest = tf.train.latest_checkpoint(directory)
  if newest:
    model.saver.restore(session, newest)
  else:
    session.run(model.init)
  say("restored", model.digest(session) if newest else "nothing")
  has_full = False
  while True:
    for _ in range(draw.randint(1, 3)):
      ids = [draw.randint(-300, 300) for _ in range(40)]
      session.run(model.train, {model.ids: ids})
    if draw.random() < 0.2:
      session.run(model.erase, {model.ids: [draw.randint(-300, 300)]})
    full = not has_full or draw.random() < 0.3
    digest = model.digest(session)
    say("begin", digest, "full" if full else "delta")
    if full:
      model.saver.save(session, os.path.join(directory, "model.ckpt"),
                       global_step=model.step if with_step else None,
                       write_meta_graph=False)
      has_full = True
    else:
      ev.save_incremental(model.saver, session, directory)
    say("end", digest)


class KillTest(parameterized.TestCase):

  @parameterized.parameters((True, False), (False, False), (True, True), (False, True))
  def test_complete_saves_restore(self, with_step, sharded):
    model = trained_model.Model(sharded)
    directory = self.create_tempdir().full_path
    log_path = os.path.join(self.create_tempdir().full_path, "log")
    draw = random.Random(flags.FLAGS.seed)
    kills = -(-flags.FLAGS.kills // 4)
    allowed, complete, under_way = {"nothing"}, {"full": 0, "delta": 0}, 0
    kill = -1
    # Continues if no kill happened during a save.
    while kill < kills or (not under_way and kill < _MOST_TIMES * kills):
      kill += 1
      log = os.open(log_path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND)
      process = os.fork()
      if not process:
        try:
          tf.logging.set_verbosity(tf.logging.ERROR)
          _train_and_save(model, directory, log, draw.random(), with_step)
        except BaseException:  # pylint: disable=broad-except
          os.write(log, ("failed\n" + traceback.format_exc()).encode())
        finally:
          os._exit(1)
      os.close(log)
      delay = draw.random() * _LONGEST
      self._wait_until_restored(process, log_path)
      time.sleep(delay)
      os.kill(process, signal.SIGKILL)
      os.waitpid(process, 0)
      with open(log_path) as f:
        text = f.read()
      self.assertNotIn("failed", text, "after kill %d: %s" % (kill, text[-3000:]))
      lines = [line.split() for line in text.split("\n")[:-1]]
      self.assertIn(lines[0][1], allowed, "after kill %d" % kill)
      # A save that began after the last complete one may also be complete.
      allowed = {lines[0][1]}
      started = None
      for words in lines[1:]:
        if words[0] == "begin":
          started = words[2]
          allowed.add(words[1])
        else:
          allowed = {words[1]}
          complete[started] += 1
          started = None
      under_way += started is not None
    print("%d kills, %d of them while saving; complete were %s" %
          (kill + 1, under_way, complete), file=sys.stderr)
    self.assertGreater(complete["full"], 0)
    self.assertGreater(under_way, 0)

  def _wait_until_restored(self, process, log_path):
    for _ in range(60000):
      with open(log_path) as f:
        if "\n" in f.read():
          return
      if os.waitpid(process, os.WNOHANG) != (0, 0):
        with open(log_path) as f:
          self.fail("the process ended by itself: " + f.read())
      time.sleep(0.001)
    os.kill(process, signal.SIGKILL)
    self.fail("nothing was restored within a minute")


if __name__ == "__main__":
  absltest.main()
