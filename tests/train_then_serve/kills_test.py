# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains on Criteo's format while a server serves; kills trainer, server and Redis in turn.

Every answer must have the bits that `session.run` computed in the trainer at the step
that the answer names. For more kills, in random order:

  bazel test //tests/train_then_serve:kills_test --test_arg=--kills=40
"""

import contextlib
import io
import os
import random
import re
import shutil
import sys
import time

from absl import flags
from absl.testing import absltest
import numpy as np
import tensorflow.compat.v1 as tf

import criteo
from embedding_variable.checkpoint_format import publications
from embedding_variable.tools import main as tools
import hierarchical_parameter_server as hps
from hierarchical_parameter_server import testing as hps_testing

import processes
import trainer

flags.DEFINE_integer("kills", 0, "Number of kills in random order. 0: each kind in turn.")
flags.DEFINE_integer("seed", 1, "Seed of the kills.")

_ROWS = np.arange(40, dtype=np.float32).reshape([10, 4])
_IDS = [0, 3, 9, 77]  # 77 has no row
_STEPS = 3000  # more than the test waits for
_LAST_STEPS = 20

# Codes of requests while the server is killed and started again. A model that is not
# loaded yet is NOT_FOUND, as in TensorFlow Serving.
_AWAY = {"UNAVAILABLE", "NOT_FOUND", "UNREACHABLE", "HTTP 404"}


def _write_hps_model(folder, config):
  """Writes version 1 of a SavedModel that looks up rows."""
  with tf.Graph().as_default(), tf.Session() as session:
    ids = tf.placeholder(tf.int64, [None], "ids")
    rows = hps.LookupLayer("m", 0, 4, tf.float32, config)(ids)
    tf.saved_model.simple_save(session, os.path.join(folder, "1"), {"ids": ids}, {"rows": rows})


def _model_list(**folders):
  return "model_config_list { %s }" % " ".join(
      'config { name: "%s" base_path: "%s" model_platform: "tensorflow" }' % item
      for item in sorted(folders.items()))


class KillsTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    if shutil.which("redis-server") is None:
      self.skipTest("there is no redis-server (package redis-server)")
    self.draw = random.Random(flags.FLAGS.seed)
    self.work = self.create_tempdir().full_path
    self.published = os.path.join(self.work, "ranking")
    criteo.write(os.path.join(self.work, "train.txt"), _STEPS * trainer.BATCH,
                 criteo.PlantedModel(1), seed=2)
    self.make_redis()
    models = os.path.join(self.work, "models")
    with open(models, "w") as f:
      f.write(_model_list(ranking=self.published, rows=os.path.join(self.work, "rows")))
    self.trainer = processes.Process(self.work, "trainer", [
        sys.executable, "-W", "ignore", trainer.__file__, self.work])
    self.server, self.ports = processes.server(
        self.work, "--model_config_file=" + models, "--file_system_poll_wait_seconds=0.1",
        "--load_retry_interval_micros=300000", "--max_num_load_retries=1000000")
    for process in (self.redis, self.trainer, self.server):
      self.addCleanup(process.kill)

  def make_redis(self):
    """Makes self.redis, and the model of rows with two configurations."""
    port = processes.free_port()
    self.redis = processes.Process(self.work, "redis", [
        "redis-server", "--port", str(port), "--save", "", "--dir", self.work])
    hps_testing.write_table(os.path.join(self.work, "t"), np.arange(len(_ROWS)), _ROWS)
    for kind in ("error", "skip"):
      hps_testing.write_config(
          os.path.join(self.work, kind + ".json"),
          [hps_testing.model("m", ["t"], [4], defaults=[-1.])], supportlonglong=True,
          persistent_db={"type": "mapped_files"},
          volatile_db={"type": "redis_cluster", "address": "127.0.0.1:%d" % port,
                       "timeout_ms": 1000, "lookup_timeout_ms": 200, "breaker_failures": 1,
                       "breaker_pause_ms": 200, "on_unavailable": kind})
    _write_hps_model(os.path.join(self.work, "rows"), os.path.join(self.work, "error.json"))

  def log(self):
    """Returns {step: bytes of the scores}, and whether a publication has not ended."""
    with open(os.path.join(self.work, "log")) as f:
      lines = [line.split() for line in f]
    scores = {}
    for words in lines:
      if words[0] == "begin":
        # A restarted trainer repeats the steps after its checkpoint with the same bits.
        self.assertEqual(scores.setdefault(int(words[1]), words[2]), words[2], words[1])
    return scores, lines[-1][0] == "begin"

  def log_size(self):
    path = os.path.join(self.work, "log")
    return os.path.getsize(path) if os.path.exists(path) else 0

  def start_trainer(self, steps=_STEPS):
    """Starts the trainer, and waits until it publishes."""
    before = self.log_size()
    self.trainer.start(str(steps))
    processes.wait_until(lambda: self.log_size() > before, "a publication", [self.trainer])

  def start_redis(self):
    self.redis.start()
    self.redis.wait_for("Ready to accept connections")

  def start_server(self, on_unavailable):
    self.on_unavailable = on_unavailable
    self.server.start(
        HPS_PS_CONFIG_FILE=os.path.join(self.work, on_unavailable + ".json"))
    self.server.wait_for("gRPC on")

  def start_clients(self):
    numbers, categories = trainer.probe(os.path.join(self.work, "train.txt"))
    inputs = {"numbers": numbers, "categories": categories}
    as_lists = {"numbers": numbers.tolist(),
                "categories": [[c.decode() for c in line] for line in categories]}
    self.ranking = processes.Client(processes.ask_by_grpc(self.ports[0], "ranking", inputs))
    self.by_http = processes.Client(processes.ask_by_http(self.ports[1], "ranking", as_lists))
    self.rows = processes.Client(
        processes.ask_by_grpc(self.ports[0], "rows", {"ids": np.array(_IDS, np.int64)}))
    self.clients = [self.ranking, self.by_http, self.rows]
    for client in self.clients:
      client.start()
      self.addCleanup(client.stop)

  def wait_for_answers(self, client, condition=lambda answer: True, what="an answer"):
    client.wait_for_answer(condition, what, [self.server])

  def assert_no_failures(self, *clients):
    for client in clients:
      self.assertEqual(client.take_failures(), [])

  def assert_failures(self, client, codes, pattern="."):
    for code, text in client.take_failures():
      self.assertIn(code, codes, text)
      self.assertRegex(text, pattern)

  def check_publication(self):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(
        io.StringIO()) as printed:
      code = tools.main(["publish", "--check", self.published])
    self.assertEqual(code, 0, printed.getvalue())

  def kill_trainer(self, during_publication, more_steps=None):
    """Kills the trainer; the server answers throughout, and has newer answers later.

    Returns the step at which the next trainer ends: `more_steps` behind the last one that
    was published, or later than the test waits for.
    """
    if during_publication:
      killed = False
      while not killed:
        before = self.log_size()
        processes.wait_until(lambda: self.log_size() > before, "a publication", [self.trainer])
        time.sleep(0.05 * self.draw.random())  # a publication takes about that long
        killed = self.trainer.kill_if(lambda: self.log()[1])
    else:
      time.sleep(0.3 * self.draw.random())
      self.trainer.kill()
    self.check_publication()
    version = publications.read(self.published)["version"]
    steps = _STEPS if more_steps is None else max(self.log()[0]) + more_steps
    self.start_trainer(steps)
    self.wait_for_answers(self.ranking, lambda answer: answer["version"] > version,
                          "an answer above version %d" % version)
    self.assert_no_failures(*self.clients)
    return steps

  def kill_server(self, and_redis):
    """Kills the server under load; it serves the newest state again, rows with Redis."""
    if and_redis:
      self.redis.kill()
    self.server.kill()
    state = publications.read(self.published)
    self.start_server("skip" if self.on_unavailable == "error" else "error")
    newest = (state["version"], state["step"])
    self.wait_for_answers(
        self.ranking, lambda answer: (answer["version"], answer["step"]) >= newest,
        "an answer of version %d, step %d" % newest)
    if and_redis:
      self.assertNotIn("model rows: version 1 serves", self.server.output())
      self.start_redis()
    for client in self.clients:
      self.wait_for_answers(client)
      self.assert_failures(client, _AWAY)

  def kill_redis(self):
    """Kills Redis, which is empty after it."""
    self.redis.kill()
    if self.on_unavailable == "skip":
      self.wait_for_answers(self.rows)
      self.assert_no_failures(*self.clients)
    else:
      before = len(self.rows.failures)
      processes.wait_until(lambda: len(self.rows.failures) > before + 2, "failures of lookups")
    self.wait_for_answers(self.ranking)
    self.assert_no_failures(self.ranking, self.by_http)
    self.start_redis()
    self.wait_for_answers(self.rows)
    self.assert_failures(self.rows, {"UNAVAILABLE"}, "redis_cluster")

  def check_answers(self):
    """Compares every answer with the trainer's scores of the step that it names."""
    scores, _ = self.log()
    for client in (self.ranking, self.by_http):
      steps = set()
      for answer in client.answers:
        found = np.asarray(answer["scores"], np.float32).tobytes().hex()
        self.assertEqual(found, scores[int(answer["step"])], answer)
        steps.add(int(answer["step"]))
      self.assertGreater(len(steps), 5)
    # No answer is older than the one before it.
    order = [(answer["version"], int(answer["step"])) for answer in self.ranking.answers]
    self.assertEqual(order, sorted(order))
    rows = np.concatenate([_ROWS[_IDS[:3]], np.full([1, 4], -1.)])
    for answer in self.rows.answers:
      np.testing.assert_array_equal(answer["rows"], rows)

  def test_answers_are_those_of_the_step(self):
    self.start_redis()
    self.start_trainer()
    self.start_server("skip")
    self.start_clients()
    for client in self.clients:
      self.wait_for_answers(client)
      self.assert_failures(client, _AWAY)
    kinds = [self.kill_redis, lambda: self.kill_trainer(False),
             lambda: self.kill_server(True), self.kill_redis]
    if flags.FLAGS.kills:
      kinds += [lambda: self.kill_trainer(True), lambda: self.kill_server(False)]
      kinds = [self.draw.choice(kinds) for _ in range(flags.FLAGS.kills)]
    for kill in kinds:
      begin = time.time()
      kill()
      print("%.1f s, at step %d" % (time.time() - begin, max(self.log()[0])), file=sys.stderr)
    last = self.kill_trainer(True, _LAST_STEPS)
    self.assertEqual(self.trainer.popen.wait(), 0, self.trainer.output())
    state = publications.read(self.published)
    self.assertEqual(state["step"], last)
    for client in (self.ranking, self.by_http):
      self.wait_for_answers(client, lambda answer: answer["step"] == state["step"],
                            "an answer of the last step")
    self.check_publication()
    kept = range(state["version"] - trainer.KEEP + 1, state["version"] + 1)
    self.assertCountEqual(os.listdir(self.published),
                          ["current.json"] + [str(version) for version in kept])
    for client in self.clients:
      client.stop()
      self.assert_no_failures(client)
    self.check_answers()
    print("answers: %s" % [len(client.answers) for client in self.clients], file=sys.stderr)
    self.assertEqual(self.server.terminate(), 0)
    self.assertIsNone(re.search("Traceback", self.server.output()), self.server.output())


if __name__ == "__main__":
  absltest.main()
