# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests the commands, with everything that needs a card replaced."""

import contextlib
import fcntl
import io
import json
import os
import subprocess
import sys

from absl.testing import absltest

from embedding_variable.gpu import checking
from embedding_variable.gpu import compiling
from embedding_variable.gpu import driver as driver_lib
from embedding_variable.gpu import links
from embedding_variable.gpu import main
from embedding_variable.gpu import places as places_lib
from embedding_variable.gpu import tensorflow_build
from embedding_variable.gpu import testing

_GPUS = [driver_lib.Gpu(0, "NVIDIA H100", 90, 80 << 30),
         driver_lib.Gpu(1, "NVIDIA H100", 90, 80 << 30)]
_WORKS = [checking.Check("matmul", True, None),
          checking.Check("convolutions", False, "no cuDNN")]


class MainTest(absltest.TestCase):

  def setUp(self):
    super().setUp()
    self.top = os.path.realpath(self.create_tempdir().full_path)
    self.cuda = os.path.join(self.top, "cuda")
    testing.write_cuda(os.path.join(self.cuda, "lib64"), 13)
    testing.write_tensorflow(os.path.join(self.top, "tf"),
                             modules=[testing.module_bytes(ptx=[70])])
    self.directory = os.path.join(self.top, "set up")  # a name that a shell would split
    self.driver = driver_lib.Driver("580.159.04", (13, 0), _GPUS)
    self.checks = _WORKS
    self.compiled = []
    patch = lambda *args: self.enter_context(absltest.mock.patch.object(*args))
    patch(driver_lib, "look", lambda: self.driver)
    patch(tensorflow_build, "installed", lambda: tensorflow_build.examine(
        os.path.join(self.top, "tf"), "1.15.0"))
    patch(compiling, "compile_for", self.compile)
    patch(checking, "run_all", lambda places: (self.checks, 4.4))

  def compile(self, gpu, build, places, jobs):
    os.makedirs(places.cache, exist_ok=True)
    self.compiled.append((gpu.ordinal, len(build.modules), jobs))
    return compiling.Result(228, 0, 1, 60.0, 16)

  def run_main(self, *argv):
    """Returns (status, standard output, standard error)."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
      try:
        status = main.main(list(argv))
      except SystemExit as e:
        status = e.code
    return status, out.getvalue(), err.getvalue()

  def setup_well(self, *more):
    status, out, err = self.run_main("setup", self.directory, "--cuda", self.cuda, *more)
    self.assertEqual(status, 0, err)
    return out

  def test_version(self):
    with self.assertRaises(SystemExit) as ended, contextlib.redirect_stdout(
        io.StringIO()) as out:
      main.main(["--version"])
    self.assertEqual(ended.exception.code, 0)
    self.assertRegex(out.getvalue(), r"^embedding_variable \d+\.\d+\.\d+\n$")

  def test_setup(self):
    out = self.setup_well("--jobs", "5")
    for line in ("TensorFlow 1.15.0 for CUDA 10.0 in %s/tf" % self.top,
                 "CUDA 13 from --cuda %s" % self.cuda,
                 "GPU 1: NVIDIA H100, compute capability 9.0, driver 580.159.04",
                 "without code for this card: 1 of 1 modules; refused by the driver: 0",
                 "matmul        works", "convolutions  does not work: no cuDNN"):
      self.assertIn(line + "\n", out)
    self.assertIn("gpu run '%s' -- python train.py" % self.directory, out)
    # Two cards of the same kind are compiled for once.
    self.assertEqual(self.compiled, [(0, 1, 5)])
    with open(os.path.join(self.directory, "state.json")) as f:
      facts = json.load(f)
    self.assertEqual(facts["driver"], "580.159.04")
    self.assertEqual(facts["checks"], {"matmul": "works", "convolutions": "no cuDNN"})
    self.assertEqual(facts["compiled"], [{"gpu": "NVIDIA H100", "seconds": 60.0,
                                          "modules": 228}])

  def test_setup_fails_if_what_is_needed_does_not_work(self):
    self.setup_well()
    self.checks = [checking.Check("matmul", True, "off by 1")]
    status, out, err = self.run_main("setup", self.directory, "--cuda", self.cuda)
    self.assertEqual(status, 1)
    self.assertIn("matmul  does not work: off by 1", out)
    self.assertIn("TensorFlow does not work on this GPU: matmul", err)
    # The previous set-up is not used instead.
    status, _, err = self.run_main("env", self.directory)
    self.assertEqual(status, 2)
    self.assertIn("holds no finished set-up", err)

  def test_setup_that_finds_nothing_leaves_nothing(self):
    status, _, err = self.run_main("setup", self.directory, "--cuda", self.top)
    self.assertEqual(status, 2)
    self.assertStartsWith(err, "error: CUDA 12 or 13's libraries were not found")
    self.assertFalse(os.path.exists(self.directory))

  def test_a_folder_that_cannot_be_made(self):
    with open(self.directory, "w"):
      pass
    status, _, err = self.run_main("setup", self.directory, "--cuda", self.cuda)
    self.assertEqual(status, 2)
    self.assertRegex(err, "^error: .*File exists")

  def test_one_setup_at_a_time(self):
    os.makedirs(self.directory)
    with open(os.path.join(self.directory, "lock"), "w") as f:
      fcntl.flock(f, fcntl.LOCK_EX)
      status, _, err = self.run_main("setup", self.directory, "--cuda", self.cuda)
    self.assertEqual(status, 2)
    self.assertIn("another process is setting up", err)
    self.setup_well()

  def test_env_is_for_a_shell(self):
    self.setup_well()
    with absltest.mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": "/a b"}):
      status, out, _ = self.run_main("env", self.directory)
    self.assertEqual(status, 0)
    said = subprocess.check_output(
        ["bash", "-c", out + 'printf "%s\\n" "$LD_LIBRARY_PATH" "$CUDA_CACHE_PATH" '
         '"$CUDA_CACHE_MAXSIZE" "$CUDA_CACHE_DISABLE" "$TF_SYNC_ON_FINISH"'],
        universal_newlines=True)
    self.assertEqual(said.splitlines(), [
        self.directory + "/lib:/a b", self.directory + "/cache", "4294967296", "0",
        "false"])

  def test_a_program_that_wants_to_wait_for_the_gpu_does(self):
    self.setup_well()
    with absltest.mock.patch.dict(os.environ, {"TF_SYNC_ON_FINISH": "true"}):
      self.assertNotIn("SYNC", self.run_main("env", self.directory)[1])

  def test_run_takes_the_processs_place(self):
    self.setup_well()
    with absltest.mock.patch.object(os, "execvpe") as execute:
      self.run_main("run", self.directory, "--", "python", "train.py", "--", "-x")
    program, argv, environ = execute.call_args[0]
    self.assertEqual((program, argv), ("python", ["python", "train.py", "--", "-x"]))
    expected = dict(os.environ)
    expected.update(places_lib.variables(places_lib.Places(self.directory)))
    self.assertEqual(environ, expected)

  def test_run_for_real(self):
    self.setup_well()
    pid = os.fork()
    if pid == 0:
      main.main(["run", self.directory, "--", "sh", "-c",
                 "test -e \"${LD_LIBRARY_PATH%%:*}/libcudart.so.10.0\" && exit 7"])
      os._exit(1)
    self.assertEqual(os.WEXITSTATUS(os.waitpid(pid, 0)[1]), 7)

  def test_run_finds_the_default_folder(self):
    with absltest.mock.patch.dict(os.environ, {"TF_EV_GPU_DIR": self.directory}):
      self.assertEqual(self.run_main("setup", "--cuda", self.cuda)[0], 0)
      with absltest.mock.patch.object(os, "execvpe") as execute:
        self.run_main("run", "--", "true")
    self.assertEqual(execute.call_args[0][2]["CUDA_CACHE_PATH"], self.directory + "/cache")

  def test_run_refuses_another_driver_and_another_card(self):
    self.setup_well()
    with absltest.mock.patch.object(os, "execvpe") as execute:
      self.driver = self.driver._replace(version="590.1")
      for command in (["run", self.directory, "--", "true"], ["env", self.directory],
                      ["check", self.directory]):
        status, out, err = self.run_main(*command)
        self.assertEqual((status, out), (2, ""))
        self.assertIn("set up for driver 580.159.04, this machine has driver 590.1", err)
      self.driver = self.driver._replace(
          version="580.159.04", gpus=[_GPUS[0]._replace(name="NVIDIA H200")])
      status, _, err = self.run_main("run", self.directory, "--", "true")
      self.assertEqual(status, 2)
      self.assertIn("set up for NVIDIA H100, this machine has NVIDIA H200", err)
    execute.assert_not_called()

  def test_a_missing_command(self):
    self.setup_well()
    status, _, err = self.run_main("run", self.directory, "--", "no-such-program")
    self.assertEqual(status, 2)
    self.assertIn("no-such-program cannot be run: No such file", err)

  def test_check(self):
    self.setup_well()
    status, out, _ = self.run_main("check", self.directory)
    self.assertEqual((status, out), (0, checking.table(_WORKS)))
    self.checks = [checking.Check("matmul", True, "off by 1")]
    self.assertEqual(self.run_main("check", self.directory)[0], 1)

  def test_refuses_other_arguments(self):
    for argv, says in ((["run", "dir"], "run needs a command"),
                       (["run", "dir", "--"], "run needs a command"),
                       (["env", "--", "true"], "only run takes a command"),
                       (["setup", "--jobs", "0"], "at least 1, got 0"),
                       ([], "required"), (["prepare"], "invalid choice")):
      status, _, err = self.run_main(*argv)
      self.assertEqual(status, 2, argv)
      self.assertIn(says, err)

  def test_our_libraries_are_named_when_they_are_missing(self):
    with absltest.mock.patch.object(links, "__file__", self.top + "/a/b/c/links.py"):
      status, _, err = self.run_main("setup", self.directory, "--cuda", self.cuda)
    self.assertEqual(status, 2)
    self.assertIn("libev_cudart10.so was not found", err)


class ModuleTest(absltest.TestCase):

  def test_runs_as_a_program(self):
    environ = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "embedding_variable.gpu", "env",
         self.create_tempdir().full_path], env=environ, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, universal_newlines=True)
    self.assertEqual(done.returncode, 2)
    self.assertIn("error: ", done.stderr)
    self.assertIn("holds no finished set-up", done.stderr)


if __name__ == "__main__":
  absltest.main()
