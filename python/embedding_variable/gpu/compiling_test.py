# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the distribution of modules to processes, and the status line.

Programs of a few lines replace the worker; the worker itself runs without a driver.
"""

import io
import os
import subprocess
import sys
import threading

from absl.testing import absltest

from embedding_variable.gpu import compiling
from embedding_variable.gpu import driver
from embedding_variable.gpu import errors
from embedding_variable.gpu import fatbin
from embedding_variable.gpu import places as places_lib
from embedding_variable.gpu import progress
from embedding_variable.gpu import tensorflow_build

_GPU = driver.Gpu(3, "NVIDIA H100", 90, 80 << 30)

# Records its input lines outside of the cache.
_WORKER = """
import os, sys
path = os.path.join(os.environ["CUDA_CACHE_PATH"], "../told", str(os.getpid()))
with open(path, "w") as f:
  f.write(" ".join(sys.argv[1:]) + " " + os.environ["CUDA_MODULE_LOADING"] + "\\n")
  for line in sys.stdin:
    f.write(line)
    f.flush()
    print(%s, flush=True)
"""


def _modules(count, **fields):
  return [fatbin.Module(**dict(dict(offset=100 * i, bytes=10 + i, ptx=[70],
                                    machine_code=[70], ptx_bytes=i), **fields))
          for i in range(count)]


class CompilingTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.places = places_lib.Places(self.create_tempdir().full_path)
    self.worker = os.path.join(self.places.top, "worker.py")
    self.notes = os.path.join(self.places.top, "told")
    os.mkdir(self.notes)

  def compile(self, modules, worker, jobs=3):
    with open(self.worker, "w") as f:
      f.write(worker)
    build = tensorflow_build.Build("1.15.0", "/tf", "/tf/a.so", modules)
    return compiling.compile_for(_GPU, build, self.places, jobs, self.worker)

  def reported(self):
    """Returns the first lines and the other lines that workers received."""
    first, others = [], []
    for name in os.listdir(self.notes):
      with open(os.path.join(self.notes, name)) as f:
        lines = f.read().splitlines()
      first.append(lines[0])
      others.append([tuple(map(int, l.split())) for l in lines[1:]])
    return first, others

  def test_each_module_is_loaded_once_largest_first(self):
    modules = _modules(40)
    result = self.compile(modules, _WORKER % "0")
    self.assertEqual((result.compiled, result.refused, result.without_code,
                      result.processes), (40, 0, 0, 3))
    first, others = self.reported()
    self.assertEqual(first, ["/tf/a.so 3 EAGER"] * 3)
    self.assertCountEqual(sum(others, []), [(m.offset, m.bytes) for m in modules])
    for reported in others:
      self.assertEqual(reported, sorted(reported, reverse=True))

  def test_a_card_that_can_run_nothing(self):
    result = self.compile(_modules(3, ptx=[]), "import sys; sys.exit('not called')")
    self.assertEqual((result.compiled, result.without_code), (0, 3))

  def test_modules_without_code_for_the_card_are_left_out(self):
    result = self.compile(_modules(2) + _modules(3, ptx=[], machine_code=[70]),
                          _WORKER % "0")
    self.assertEqual((result.compiled, result.without_code), (2, 3))

  def test_a_module_that_the_driver_refuses_is_counted(self):
    result = self.compile(_modules(5), _WORKER % "209 if line.startswith('300 ') else 0")
    self.assertEqual((result.compiled, result.refused), (4, 1))

  def test_others_take_over_from_a_worker_that_ends(self):
    # The first worker to create the file exits after it has received a module.
    ends = """
import os, sys
try:
  os.close(os.open(sys.argv[0] + ".first", os.O_CREAT | os.O_EXCL))
  sys.stdin.readline()
  sys.exit("out of memory")
except FileExistsError:
  pass
""" + _WORKER % "0"
    result = self.compile(_modules(20), ends)
    self.assertEqual((result.compiled, result.refused), (20, 0))

  def test_an_error_if_nothing_can_be_loaded(self):
    with self.assertRaisesRegex(errors.GpuError,
                                "none of TensorFlow's kernels on NVIDIA H100: no driver"):
      self.compile(_modules(5), "import sys; sys.exit('no driver')")
    with self.assertRaisesRegex(errors.GpuError, "it says 209"):
      self.compile(_modules(5), _WORKER % "209")

  def test_number_of_processes(self):
    cores = len(os.sched_getaffinity(0))
    self.assertEqual(compiling.process_count(_GPU), min(cores, 32))
    self.assertEqual(compiling.process_count(_GPU, 7), 7)
    self.assertEqual(compiling.process_count(_GPU._replace(memory=8 << 30), 7), 4)
    self.assertEqual(compiling.process_count(_GPU._replace(memory=1 << 30), 7), 1)
    self.assertEqual(compiling.process_count(_GPU, 1000), 32)

  def test_the_worker_needs_no_package(self):
    try:
      driver.look()
      self.skipTest("this machine has a driver")
    except errors.GpuError:
      pass
    done = subprocess.run([sys.executable, "-S", compiling._WORKER, "/tf/a.so", "0"],
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True,
                          env={"LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")})
    self.assertNotEqual(done.returncode, 0)
    self.assertIn("libcuda.so.1", done.stderr.splitlines()[-1])


class _Terminal(io.StringIO):

  def isatty(self):
    return True


class ProgressTest(absltest.TestCase):

  def lines(self, stream):
    """Returns everything written until the third line is requested."""
    asked, enough = [], threading.Event()

    def tell():
      asked.append(1)
      if len(asked) == 3:
        enough.set()
      return "%d modules" % len(asked)

    times = iter(range(0, 100000, 7))
    with progress.ElapsedLine("compiling", tell, stream, lambda: next(times), 0.001):
      self.assertTrue(enough.wait(60))
    return stream.getvalue()

  def test_in_a_log_each_is_a_line(self):
    lines = self.lines(io.StringIO()).splitlines()
    self.assertEqual(lines[:2], ["compiling: 7 s, 1 modules", "compiling: 14 s, 2 modules"])

  def test_on_a_terminal_one_is_redrawn_and_removed(self):
    text = self.lines(_Terminal())
    self.assertStartsWith(text, "\rcompiling: 7 s, 1 modules\rcompiling: 14 s, 2 modules")
    self.assertRegex(text, r"\r +\r$")
    self.assertNotIn("\n", text)

  def test_bytes(self):
    self.assertEqual(progress.mebibytes(279 << 20), "279 MiB")


if __name__ == "__main__":
  absltest.main()
