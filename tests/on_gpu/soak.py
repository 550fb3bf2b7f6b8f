# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains tables on TensorFlow's GPU for a long time and checks their bits and memory.

  python -m embedding_variable.gpu run DIR -- python tests/on_gpu/soak.py --minutes=15

Keys come from a window that moves over a universe of keys, and that grows and shrinks. So
tables grow, keys are evicted for good, and evicted keys come back. Meanwhile the program
evicts by step and by weight, saves increments, saves full checkpoints while another
thread trains, and restores them into the same session and on the CPU. It always compares

  exact_0, exact_1   with a closed form (soak_oracle.py), to the bit
  twin               Adam, a filter, mean: with the same model on the CPU, to the bit

and, after evictions and saves, all keys and rows. At the end it compares the memory of
the last third of the time with that of the middle third: the process's resident memory,
and the GPU memory that nvidia-smi reports. The last line is `soak passed` or `soak
failed: ...`.

  --device=/cpu:0 --storage=dram       the same without a GPU
"""

import argparse
import gc
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import warnings

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import placement  # pylint: disable=wrong-import-position

warnings.simplefilter("ignore", FutureWarning)
if os.environ.get(placement.LIBRARY):
  placement.use_library(os.environ[placement.LIBRARY])

import tensorflow as tf  # pylint: disable=wrong-import-position

import embedding_variable as ev  # pylint: disable=wrong-import-position
import soak_model  # pylint: disable=wrong-import-position
import soak_oracle  # pylint: disable=wrong-import-position

_MIB = 1 << 20


class SoakError(Exception):
  """A check failed; the message has the check and the step."""


def resident_mib():
  """Returns the resident memory of this process, in MiB."""
  with open("/proc/self/statm") as f:
    return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / _MIB


def gpu_mib():
  """Returns the MiB of the process's first GPU that this process uses.

  In a container nvidia-smi may not list processes. Then all used memory of the GPU is
  counted, and nothing else may run on it.
  """
  first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]

  def ask(query):
    return subprocess.check_output(
        ["nvidia-smi", query, "--format=csv,noheader,nounits", "--id=" + first]).decode()

  for line in ask("--query-compute-apps=pid,used_memory").splitlines():
    pid, mib = [field.strip() for field in line.split(",")]
    if pid == str(os.getpid()) and mib.isdigit():
      return float(mib)
  return float(ask("--query-gpu=memory.used").split()[0])


class Soak(object):
  """The two models, the oracles, and the measurements so far."""

  def __init__(self, options, folder):
    self._options = options
    self._folder = folder
    self._random = np.random.RandomState(options.seed)
    shape = (options.dim, options.samples, options.hotness)
    self._model = soak_model.Model(options.device, options.storage, *shape,
                                   rows_on_gpu=options.rows_on_gpu)
    self._twin = soak_model.Model("/cpu:0", "dram", *shape)
    self._other = None  # model on the CPU that checkpoints are restored into
    self._oracles = [soak_oracle.Oracle(options.universe, options.dim)
                     for _ in soak_model.EXACT]
    self._begin = 0  # start of the window
    self.steps = self.restores = self.evicted = self.saves = self.increments = 0
    # (seconds, resident MiB, GPU MiB or 0, rows).
    self.memory = []
    self._start = time.time()

  def seconds(self):
    return time.time() - self._start

  def fail(self, what):
    raise SoakError("%s, at step %d after %.0f s" % (what, self.steps, self.seconds()))

  def _numbers(self):
    """Draws the key numbers of a step: a list of int64 `[samples * hotness]`."""
    options = self._options
    # The width of the window oscillates between once and twice the configured width.
    width = options.window * (1.5 + .5 * np.sin(2 * np.pi * self.steps / options.wave))
    self._begin += options.window // 200
    size = options.samples * options.hotness
    return [
        (self._begin + (width * self._random.random_sample(size) ** 2).astype(np.int64))
        % options.universe for _ in range(len(soak_model.EXACT) + 1)
    ]

  def train(self, steps, check_every=4):
    for n in range(steps):
      numbers = self._numbers()
      ids = [soak_oracle.keys_of(x) for x in numbers]
      outputs, twins = self._model.train(ids), self._twin.train(ids)
      if n % check_every == 0:
        for oracle, x, y, name in zip(self._oracles, numbers, outputs, soak_model.EXACT):
          rows = oracle.rows(x).reshape(self._options.samples, self._options.hotness, -1)
          if not np.array_equal(y, rows.sum(axis=1).astype(np.float32)):
            self.fail("table %s: a lookup differs from the closed form" % name)
        if not np.array_equal(outputs[-1], twins[-1]):
          self.fail("table %s: a lookup differs from the CPU's" % soak_model.TWIN)
      for oracle, x in zip(self._oracles, numbers):
        oracle.train(x, self.steps)
      self.steps += 1

  def _check_tables(self, tables, twin, what):
    """Compares exported tables with the oracles, and the last table with `twin`."""
    wanted = [oracle.table() for oracle in self._oracles] + [twin]
    for name, have, want in zip(soak_model.EXACT + (soak_model.TWIN,), tables, wanted):
      if not np.array_equal(have[0], want[0]):
        self.fail("table %s, %s: %d keys, %d expected, %d of them in both" % (
            name, what, len(have[0]), len(want[0]),
            len(np.intersect1d(have[0], want[0]))))
      if not np.array_equal(have[1], want[1]):
        self.fail("table %s, %s: %d of %d rows differ" % (
            name, what, np.count_nonzero(np.any(have[1] != want[1], axis=1)),
            len(have[0])))

  def check_tables(self):
    self._check_tables(self._model.tables(), self._twin.tables()[-1], "exported")

  def evict(self, by_weight):
    if by_weight:
      gone, twin = self._model.evict_weak(), self._twin.evict_weak()
      wanted = [oracle.evict_weak(soak_model.WEAK) for oracle in self._oracles]
    else:
      step = self.steps
      gone, twin = self._model.evict_stale(step), self._twin.evict_stale(step)
      wanted = [oracle.evict_stale(step, soak_model.STEPS_TO_LIVE)
                for oracle in self._oracles]
    wanted.append(twin[-1])
    if gone != wanted:
      self.fail("evicting by %s removed %s rows of the tables, expected %s" % (
          "weight" if by_weight else "step", gone, wanted))
    self.evicted += sum(gone)

  def _restore_on_cpu(self, prefix):
    """Restores a checkpoint on the CPU and returns its tables."""
    if self._other is None:
      options = self._options
      self._other = soak_model.Model("/cpu:0", "dram", options.dim, options.samples,
                                     options.hotness)
    self._other.saver.restore(self._other.session, prefix)
    self.restores += 1
    return self._other.tables()

  def save(self):
    """Saves without training meanwhile, and restores on the CPU, then in the session."""
    prefix = self._model.saver.save(
        self._model.session, os.path.join(self._folder, "model"),
        global_step=self.steps)
    self.saves += 1
    twin = self._twin.tables()[-1]
    self._check_tables(self._restore_on_cpu(prefix), twin, "restored on the CPU")
    self._model.saver.restore(self._model.session, prefix)
    self.restores += 1
    self._check_tables(self._model.tables(), twin, "restored")

  def save_increment(self):
    """Saves an increment, and restores its chain on the CPU."""
    prefix = tf.train.latest_checkpoint(self._folder)
    if prefix is None:
      return self.save()
    ev.save_incremental(self._model.saver, self._model.session, self._folder, self.steps)
    self.increments += 1
    self._check_tables(self._restore_on_cpu(prefix), self._twin.tables()[-1],
                       "restored with increments")

  def save_under_load(self, steps):
    """Saves in a thread while this one trains; checks that the save has one step's
    state."""
    before = [oracle.copy() for oracle in self._oracles]
    done = []

    def save():
      try:
        done.append(self._model.saver.save(
            self._model.session, os.path.join(self._folder, "model"),
            global_step=self.steps))
      except Exception as e:  # pylint: disable=broad-except
        done.append(e)

    first = self.steps
    thread = threading.Thread(target=save)
    state = self._random.get_state(), self._begin
    thread.start()
    while thread.is_alive() or self.steps < first + steps:
      self.train(1)
    thread.join()
    if isinstance(done[0], Exception):
      raise done[0]
    self.saves += 1
    tables = self._restore_on_cpu(done[0])
    last, now = self.steps, (self._random.get_state(), self._begin)
    # Repeats the same batches: the saved table must equal one of these states.
    missing = dict(enumerate(soak_model.EXACT))
    self.steps = first
    self._random.set_state(state[0])
    self._begin = state[1]
    while True:
      for i in list(missing):
        want = before[i].table()
        if all(np.array_equal(a, b) for a, b in zip(tables[i], want)):
          del missing[i]
      if not missing or self.steps == last:
        break
      for oracle, x in zip(before, self._numbers()):
        oracle.train(x, self.steps)
      self.steps += 1
    self.steps = last
    self._random.set_state(now[0])
    self._begin = now[1]
    if missing:
      self.fail("tables %s: a save during training has the state of none of "
                "its %d steps" % (", ".join(missing.values()), last - first))

  def measure(self):
    gc.collect()
    on_gpu = "GPU" in self._options.device.upper() and not os.environ.get(
        placement.LIBRARY)
    self.memory.append((self.seconds(), resident_mib(), gpu_mib() if on_gpu else 0.,
                        sum(self._model.sizes())))
    print("%6.0f s, step %d: resident %.0f MiB, GPU %.0f MiB, %d rows; so far %d evicted, "
          "%d saves, %d increments, %d restores" % (
              (self.memory[-1][0], self.steps) + self.memory[-1][1:] +
              (self.evicted, self.saves, self.increments, self.restores)), flush=True)

  def run(self):
    """Runs cycles until the time is over; raises SoakError."""
    cycle = 0
    while self.seconds() < self._options.minutes * 60. or cycle < 8:
      self.train(self._options.steps)
      if cycle % 2 == 0:
        self.evict(by_weight=False)
      if cycle % 4 == 3:
        self.evict(by_weight=True)
      if cycle % 8 == 2:
        self.save()
      elif cycle % 8 in (3, 4):
        self.save_increment()
      elif cycle % 8 == 6:
        self.save_under_load(self._options.steps // 4)
      if cycle % 4 == 1:
        self.check_tables()
      self.measure()
      cycle += 1


def check_memory(samples, slack_mib):
  """Returns a line for each memory that grew from the middle third to the last.

  Args:
    samples: list of (seconds, resident MiB, GPU MiB, rows).
    slack_mib: MiB by which the last third's maximum may exceed the middle third's.
  """
  end = samples[-1][0]
  found = []
  for column, name in ((1, "resident memory"), (2, "GPU memory")):
    middle = max(s[column] for s in samples if end / 3 <= s[0] < 2 * end / 3)
    last = max(s[column] for s in samples if s[0] >= 2 * end / 3)
    if last > middle + slack_mib:
      found.append("%s grew: at most %.0f MiB in the middle third of the time, %.0f in the "
                   "last" % (name, middle, last))
  return found


def parse(argv):
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--minutes", type=float, default=15.)
  parser.add_argument("--device", default="/gpu:0",
                      help="device of tables, lookup and update")
  parser.add_argument("--storage", default="hbm", choices=("dram", "hbm", "hbm_dram"))
  parser.add_argument("--dim", type=int, default=16)
  parser.add_argument("--samples", type=int, default=16384, help="samples of a step")
  parser.add_argument("--hotness", type=int, default=3, help="ids per sample and table")
  parser.add_argument("--window", type=int, default=1 << 20,
                      help="minimum number of keys that ids are drawn from; "
                      "the maximum is twice as many")
  parser.add_argument("--universe", type=int, default=1 << 23, help="keys in all")
  parser.add_argument("--rows_on_gpu", type=int, default=1 << 18,
                      help="rows of an hbm_dram table that fit on the GPU")
  parser.add_argument("--steps", type=int, default=40, help="steps of a cycle")
  parser.add_argument("--wave", type=int, default=400,
                      help="period of the window's width, in steps")
  parser.add_argument("--slack_mib", type=float, default=128.,
                      help="MiB that memory may grow by in the last third")
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--folder", default="", help="folder of checkpoints; "
                      "default: a temporary one")
  return parser.parse_args(argv[1:])


def main(argv):
  options = parse(argv)
  tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
  folder = options.folder or tempfile.mkdtemp()
  found = []
  try:
    soak = Soak(options, folder)
    if "GPU" in options.device.upper() and not any(
        d.device_type == "GPU" for d in soak._model.session.list_devices()):
      raise SoakError("TensorFlow has no GPU device")
    soak.run()
    found = check_memory(soak.memory, options.slack_mib)
    print("%d steps in %.0f s, %d rows evicted, %d full saves, %d increments, %d restores; "
          "at most %d rows at once" % (
              soak.steps, soak.seconds(), soak.evicted, soak.saves, soak.increments,
              soak.restores, max(s[3] for s in soak.memory)))
  except SoakError as e:
    found.append(str(e))
  finally:
    if not options.folder:
      shutil.rmtree(folder, ignore_errors=True)
  print("soak failed: " + "; ".join(found) if found else "soak passed", flush=True)
  return 1 if found else 0


if __name__ == "__main__":
  sys.exit(main(sys.argv))
