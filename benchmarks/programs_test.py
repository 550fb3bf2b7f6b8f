# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds every benchmark program and runs it, with sizes too small to measure anything.

Without a GPU, the programs that need one must report that.
"""

import os
import re
import shutil
import stat
import subprocess
import sys

from absl.testing import absltest
from absl.testing import parameterized

_ROOT = os.path.join(os.environ["TEST_SRCDIR"], os.environ["TEST_WORKSPACE"])

_TINY_STEP = ["--rows=1000", "--tables=2", "--batch=64", "--steps=2", "--probe_mib=1"]
_TINY_ROWS = ["--rows=4000", "--batch=64", "--steps=2", "--warm=2", "--threads=2"]

# (program, flags, what it must print).
_ON_CPUS = [
    ("engine_benchmark", ["--small", "--seconds=0.001"], r"find \+ sum +[\d.]+ M keys/s"),
    ("step_benchmark", _TINY_STEP, r"uniform_hot10_dim64 +1280"),
    ("step_benchmark", _TINY_STEP + [
        "--only=zipf_hot1_dim16", "--policy=lfu", "--newcomers=0.1", "--changes=1"
    ], r"policy lfu, 10 % newcomers: .* [1-9]\d* evicted"),
    ("step_benchmark", _TINY_STEP + ["--only=zipf_hot1_dim16", "--policy=bloom",
                                     "--update=samples"], r"policy bloom"),
    ("step_benchmark", _TINY_STEP + ["--only=zipf_hot1_dim16", "--value_type=float16"],
     r"zipf_hot1_dim16 +128"),
    ("new_rows_benchmark", ["--tables=2", "--batch=64", "--steps=3", "--rounds=2"],
     r"(?s)index +new .*median.*rows +new .*median.*step +new .* ratio .*median"),
    ("ssd_benchmark", _TINY_ROWS + ["--path=ROWS"], r"uniform +[\d.]+ ms per step"),
    ("three_tiers_on_flat_rows", _TINY_ROWS + ["--path=ROWS", "--skip=hbm", "--shares=0",
                                               "--only_prefetch"],
     r"\| 0 \| .* \| [1-9]\d* \| .*\n"),
    ("three_tiers_on_test_device", _TINY_ROWS + ["--path=ROWS", "--ahead"],
     r"rows in GPU memory, CPU memory and a file\n(.*\n)*"
     r"\| 90 \| [\d.]+, [\d.]+, [1-9]\d*\.\d+ \|.* [1-9]\d* \| .*\n"
     r"\| 99 \|.*\n\| 99.9 \|"),
    ("exchange_benchmark", ["--threads=1", "--steps=2", "--tables=2", "--batch=64",
                            "--rows=100"], r"\n +sum +[\d.]+ ms"),
    ("carrier_benchmark", ["--kind=memory", "--ranks=2", "--max_bytes=65536"],
     r"65536 bytes to each rank"),
]

# Engine programs that need GPUs, with tiny sizes.
_ON_GPUS = [
    ("hbm_dram_benchmark", _TINY_ROWS),
    ("three_tiers_benchmark", _TINY_ROWS + ["--path=ROWS"]),
    ("step_benchmark", _TINY_STEP + ["--only=zipf_hot1_dim16", "--storage=hbm"]),
]

# Programs of benchmarks/gpu. They run at their full size only.
_GPU_PROGRAMS = ("table_find", "table_find_copy", "table_find_or_insert",
                 "table_insert_and_evict")

_NO_GPU = r"NVIDIA driver|CUDA driver|no CUDA-capable device|without nvcc"


def _path(program):
  """Returns the path of //package:name or of a program of benchmarks/engine."""
  if not program.startswith("//"):
    program = "//benchmarks/engine:" + program
  return os.path.join(_ROOT, program[2:].replace(":", "/"))


def _run(command, **kwargs):
  """Runs a command; returns (exit code, output)."""
  done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                        universal_newlines=True, timeout=120, **kwargs)
  return done.returncode, done.stdout


def _has_gpu():
  return os.path.exists("/dev/nvidiactl")


def _built_with_cuda():
  return os.path.exists(_path("//benchmarks/gpu:table_find"))


class ProgramsTest(parameterized.TestCase):

  @parameterized.parameters(*_ON_CPUS)
  def test_runs(self, program, flags, expected):
    rows = self.create_tempdir().full_path
    code, text = _run(
        [_path(program)] + [f.replace("ROWS", rows) for f in flags])
    self.assertEqual(code, 0, text)
    self.assertRegex(text, expected)

  def test_save_while_training_runs(self):
    code, text = _run([
        _path("//benchmarks:save_while_training"), "--rows=1000", "--dim=4",
        "--batch=16", "--rounds=1"])
    self.assertEqual(code, 0, text)
    self.assertRegex(text, r"save alone [\d.]+ s")
    self.assertRegex(text, r"steps/s before, \d+ steps meanwhile")

  def test_row_types_runs(self):
    code, text = _run([_path("//benchmarks:row_types"), "--seeds=1", "--train_samples=4096",
                       "--eval_samples=500", "--batch_size=512"])
    self.assertEqual(code, 0, text)
    self.assertRegex(text, r"seed 1, uint8 *: AUC 0\.\d+ ")
    self.assertRegex(text, r"float16: largest difference of AUC \d")

  def test_row_types_of_training_run(self):
    code, text = _run([_path("//benchmarks:row_types"), "--training=float32,bfloat16 nearest",
                       "--seeds=1", "--train_samples=2048", "--eval_samples=500",
                       "--batch_size=512"])
    self.assertEqual(code, 0, text)
    self.assertRegex(text, r"bfloat16 nearest: largest difference of AUC \d")

  def test_tensorflow_2_step_runs(self):
    code, text = _run([_path("//benchmarks:tensorflow_2_step"), "--tables=2", "--batch=16",
                       "--rounds=1", "--steps=2"])
    self.assertEqual(code, 0, text)
    self.assertRegex(text, r"graph: median [\d.]+ ms, best [\d.]+ ms")

  def test_tensorflow_2_dlrm_runs_or_reports_the_version(self):
    code, text = _run([
        _path("//benchmarks:tensorflow_2_dlrm"), "--device=/cpu:0", "--storage=dram",
        "--tables=2", "--dim=4", "--rows=50", "--batch=16", "--steps=2",
        "--warmup_steps=0"])
    if code:
      self.assertIn("needs TensorFlow 2.x, got 1.15", text)
    else:
      self.assertRegex(text, r"DLRM dim 4, 16 samples, float32: [\d.]+ ms")

  def test_tfra_step_runs_or_reports_what_is_missing(self):
    code, text = _run([_path("//benchmarks:tfra_step"), "--tables=2", "--batch=16",
                       "--rows=50", "--steps=2"])
    if code:
      self.assertIn("No module named 'tensorflow_recommenders_addons'", text)
    else:
      self.assertRegex(text, r"TFRA, unique lookup: median [\d.]+ ms")

  def test_tbe_step_runs_or_reports_what_is_missing(self):
    code, text = _run([_path("//benchmarks:tbe_step"), "--tables=2", "--batch=16",
                       "--rows=50", "--steps=2"])
    if code:
      self.assertIn("No module named 'fbgemm_gpu'", text)
    else:
      self.assertRegex(text, r"TBE, zipf, part 0: median [\d.]+ ms")

  @parameterized.parameters(*_ON_GPUS)
  def test_runs_on_a_gpu_or_reports_its_absence(self, program, flags):
    rows = self.create_tempdir().full_path
    code, text = _run(
        [_path(program)] + [f.replace("ROWS", rows) for f in flags])
    if _has_gpu() and _built_with_cuda():
      self.assertEqual(code, 0, text)
    else:
      self.assertNotEqual(code, 0, text)
      self.assertRegex(text, _NO_GPU)

  @parameterized.parameters(*_GPU_PROGRAMS)
  def test_gpu_program_reports_a_missing_gpu(self, program):
    if not _built_with_cuda():
      self.skipTest("built without nvcc")
    if _has_gpu():
      self.skipTest("the machine has a GPU, and the program has no small size")
    code, text = _run([_path("//benchmarks/gpu:" + program)])
    self.assertEqual(code, 1, text)
    self.assertRegex(text, _NO_GPU)

  @parameterized.parameters(*_GPU_PROGRAMS)
  def test_gpu_program_needs_system_libraries_only(self, program):
    if not _built_with_cuda():
      self.skipTest("built without nvcc")
    code, text = _run(["readelf", "-dW", _path("//benchmarks/gpu:" + program)])
    self.assertEqual(code, 0, text)
    self.assertContainsSubset(
        re.findall(r"\(NEEDED\).*\[(.*)\]", text),
        ["libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "libpthread.so.0",
         "libdl.so.2", "librt.so.1", "ld-linux-x86-64.so.2"])

  def test_no_program_is_left_out(self):
    engine = {program for program, _, _ in _ON_CPUS} | {p for p, _ in _ON_GPUS}
    with open(os.path.join(_ROOT, "benchmarks/engine/BUILD")) as f:
      self.assertEqual(
          set(re.findall(r'engine_binary\(\n    name = "(\w+)"', f.read())), engine)
    with open(os.path.join(_ROOT, "benchmarks/gpu/BUILD")) as f:
      self.assertEqual(
          set(re.findall(r'^    "(\w+)",$', f.read(), re.M)), set(_GPU_PROGRAMS))


class ScriptsTest(parameterized.TestCase):
  """Runs the scripts of benchmarks/gpu in a copy of the tree, with a stub for Bazel."""

  def setUp(self):
    super().setUp()
    self.root = self.create_tempdir().full_path
    os.makedirs(os.path.join(self.root, "benchmarks/gpu"))
    os.makedirs(os.path.join(self.root, "bin"))
    for name in ("programs.sh", "run_dlrm.sh", "run_models.sh", "run_ranks.sh",
                 "run_session.sh", "run_table.sh"):
      shutil.copy(os.path.join(_ROOT, "benchmarks/gpu", name),
                  os.path.join(self.root, "benchmarks/gpu"))

  def stub(self, path, body):
    path = os.path.join(self.root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
      f.write("#!/bin/bash\n%s\n" % body)
    os.chmod(path, os.stat(path).st_mode | stat.S_IXUSR)

  def run_script(self, name, *steps):
    environ = {"PATH": os.path.join(self.root, "bin") + ":/usr/bin:/bin",
               "BUILD_DIR": os.path.join(self.root, "programs")}
    if not os.path.exists(os.path.join(self.root, "bin/bazel")):
      # A PATH without the machine's own programs.
      for tool in ("bash", "basename", "dirname", "mkdir"):
        os.symlink(shutil.which(tool), os.path.join(self.root, "bin", tool))
      environ["PATH"] = os.path.join(self.root, "bin")
    return _run([os.path.join(self.root, "benchmarks/gpu", name)] + list(steps),
                env=environ)

  def test_what_is_built_can_be_run(self):
    script = "run_table.sh"
    if not _built_with_cuda():
      self.skipTest("built without nvcc")
    # The Bazel stub records its arguments; the programs are those of this test.
    self.stub("bin/bazel", 'echo "$@" >>%s/asked' % self.root)
    os.symlink(_ROOT, os.path.join(self.root, "bazel-bin"))
    code, text = self.run_script(script, "build")
    self.assertEqual(code, 0, text)
    with open(os.path.join(self.root, "asked")) as f:
      asked = f.read().split()
    self.assertEqual(asked[0], "build")
    built = os.listdir(os.path.join(self.root, "programs"))
    self.assertCountEqual(
        built, [re.sub("_program$", "", t.split(":")[1]) for t in asked[1:]])
    # The scripts need only that folder for tests and benchmarks. The programs are
    # replaced by stubs, because the machine may have a GPU and the real ones take long.
    os.remove(os.path.join(self.root, "bin/bazel"))
    for program in built:
      os.remove(os.path.join(self.root, "programs", program))
      self.stub("programs/" + program, 'echo "ran %s $*"' % program)
    self.stub("bin/nvidia-smi", "echo a card")
    self.stub("bin/git", "exit 1")
    os.symlink(shutil.which("tee"), os.path.join(self.root, "bin/tee"))
    code, text = self.run_script(script)
    self.assertEqual(code, 0, text)
    self.assertCountEqual(re.findall(r"^ran (\w+)", text, re.M), built)

  def test_without_bazel_or_programs(self):
    script = "run_table.sh"
    code, text = self.run_script(script, "build")
    self.assertEqual(code, 1)
    self.assertIn("no bazel on the PATH", text)
    for step in ("test", "bench"):
      code, text = _run(
          [os.path.join(self.root, "benchmarks/gpu", script), step],
          env={"PATH": "/usr/bin:/bin", "BUILD_DIR": os.path.join(self.root, "none")})
      self.assertEqual(code, 1)
      self.assertIn("no program ", text)

  # Stub for Python benchmarks. A program on standard input, which makes the tables, is
  # run by the real Python.
  _PYTHON = """if [[ $1 == - ]]; then exec %s "$@"; fi
echo "$@" >>%s/asked
echo '[0]<stdout>:{"workload": "w", "batch": 65536, "tables": 26, "bytes": 3e7,' \\
  '"step_ms": 8.0, "core_ms": 50, "graph": "dense", "variant": "ev", "rows": 3e7,' \\
  '"tf32": true, "samples_per_second": 864000, "ids_per_second": 1.85e8, "forward":' \\
  '{"median_ms": 4.5}, "step":' \\
  '{"median_ms": 9.5}}' | if [[ $1 == -m ]]; then cat; else sed 's/^[^{]*//'; fi
"""

  def run_with_stubs(self, script, **environ):
    """Runs a script with stubs for its Python programs; returns (text, calls)."""
    self.stub("bin/python", self._PYTHON % (sys.executable, self.root))
    self.stub("bin/nvidia-smi", '[[ $1 == -L ]] && printf "0\\n1\\n" || echo a card')
    environ.update(PATH=os.path.join(self.root, "bin") + ":/usr/bin:/bin",
                   PYTHON="python", OUT=os.path.join(self.root, "out"))
    code, text = _run([os.path.join(self.root, "benchmarks/gpu", script)], env=environ)
    self.assertEqual(code, 0, text)
    with open(os.path.join(self.root, "asked")) as f:
      return text, f.read().splitlines()

  def test_sessions(self):
    text, calls = self.run_with_stubs("run_session.sh", THREADS="16", STORAGES="hbm")
    self.assertLen(calls, 4)
    self.assertStartsWith(calls[0], "benchmarks/stock_vs_ev.py --variant=ev_sok")
    self.assertIn("--threads=16", calls[0])
    # 26 tables of 65,536 samples: 109 MB of rows at 55.3 GB/s, twice.
    self.assertIn("| w | GPU | 4.5 | 9.5 | 3.94 | 2.4 |", text)

  def test_models(self):
    text, calls = self.run_with_stubs("run_models.sh", CASES="16:1")
    self.assertLen(calls, 6)
    self.assertStartsWith(calls[0], "benchmarks/dcnv2.py --threads=0")
    self.assertIn("--variant=stock --graphs=whole,sparse", calls[3])
    self.assertIn("--variant=stock --storage=hbm --device=/gpu:0 --dim=16", calls[5])
    self.assertIn("| dense | ev | 30.0 | TF32 | 8.00 | 0.86 | 185 |", text)
    self.assertIn("| w | 65536 | ev | 4.50 | 9.50 |", text)

  def test_ranks(self):
    text, calls = self.run_with_stubs("run_ranks.sh", EXCHANGES="nccl memory",
                                      CONTROL="1")
    # One rank; two with each carrier; two jobs of one rank for the control.
    self.assertLen(calls, 5)
    self.assertIn("-np 2 -H localhost:2 python benchmarks/exchange_worker.py", calls[1])
    self.assertIn("| 1 | – | 8.0 | 100 % | 30.0 | 50 |", text)
    self.assertIn("| 2 | nccl | 8.0 | 100 % | 30.0 | 50 |", text)
    self.assertIn("| 2 | none | 8.0 | 100 % | 30.0 | 50 |", text)

  def test_dlrm(self):
    _, calls = self.run_with_stubs("run_dlrm.sh", THREADS="16", BATCHES="64 128")
    # One rank and two for each batch, then the table.
    self.assertLen(calls, 5)
    self.assertIn("-np 1 -H localhost:1 python benchmarks/dlrm_ranks.py --batch=64",
                  calls[0])
    self.assertIn("-np 2 -H localhost:2 python benchmarks/dlrm_ranks.py --batch=128",
                  calls[3])
    self.assertIn("--exchange=nccl --threads=16", calls[3])
    self.assertStartsWith(calls[4], "benchmarks/dlrm_ranks_table.py ")

  def test_policies_of_dlrm(self):
    _, calls = self.run_with_stubs("run_dlrm.sh", THREADS="16", BATCHES="64",
                                   POLICIES="none counter")
    self.assertLen(calls, 5)
    self.assertEqual(["--policy=counter" in call for call in calls],
                     [False, True, False, True, False])


if __name__ == "__main__":
  absltest.main()
