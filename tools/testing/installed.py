# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs tests/installed with the wheels, installed in a clean environment.

Each TensorFlow version has its own environment under .build/, which is kept because it
downloads some hundred MB. Nothing of the source tree can be imported in it, except that with
TensorFlow 2.x the tests run as //tools/testing:v1_tensorflow.py arranges.
"""

import glob
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile

import test_log

_TIMEOUT_S = 300


class Unavailable(Exception):
  """TensorFlow could not be installed; the message has the reason."""


def _pip(python, *args):
  """Runs pip; returns (exit code, output)."""
  done = subprocess.run(
      [python, "-m", "pip", "--disable-pip-version-check", "--no-input"] + list(args),
      stdin=subprocess.DEVNULL,
      stdout=subprocess.PIPE,
      stderr=subprocess.STDOUT,
      universal_newlines=True)
  return done.returncode, done.stdout


def _last_error(output):
  errors = [l for l in output.splitlines() if l.startswith("ERROR")]
  lines = errors or output.strip().splitlines() or ["no output"]
  return lines[-1].strip()


def environment(build_dir, tensorflow):
  """Returns the interpreter of a clean environment with that TensorFlow.

  Args:
    build_dir: folder of the environments.
    tensorflow: version, such as "1.15.5" or "2.15.*".

  Raises:
    Unavailable: pip cannot install it.
  """
  folder = os.path.abspath(os.path.join(build_dir, "venv-tensorflow-" + tensorflow))
  python = os.path.join(folder, "bin", "python")
  complete = os.path.join(folder, "complete")
  if not os.path.exists(complete):
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.check_call([sys.executable, "-m", "venv", folder])
    code, output = _pip(python, "install", "--no-compile",
                        "tensorflow==" + tensorflow)
    if code != 0:
      raise Unavailable("pip cannot install tensorflow==%s (%s)" %
                        (tensorflow, _last_error(output)))
    v1_tensorflow = os.path.join(sysconfig.get_path("purelib"), "v1_tensorflow.pth")
    if os.path.exists(v1_tensorflow):
      shutil.copy(v1_tensorflow, glob.glob(os.path.join(folder, "lib/python*/site-packages"))[0])
    with open(complete, "w") as f:
      f.write("")
  return python


def install(python, wheels):
  """Installs the wheels with their requirements; returns an error or None."""
  # Uninstalls old wheels first. A kept environment may hold wheels of an older checkout
  # under other names, which conflict with the new ones.
  names = [os.path.basename(wheel).split("-")[0] for wheel in wheels]
  _pip(python, "uninstall", "-y", "sparse-operation-kit", "sparse-operation-kit-hugectr",
       "sparse-operation-kit-hps", *names)
  code, output = _pip(python, "install", *wheels)
  return None if code == 0 else _last_error(output)


def run_tests(python, tests, label):
  """Runs the tests with that interpreter and returns their test_log.Counts."""
  counts = test_log.Counts()
  environ = {
      k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "BAZEL"))
  }
  environ.update(TF_CPP_MIN_LOG_LEVEL="1", EV_TEST_V1="1")
  for test in tests:
    program = "%s (%s)" % (os.path.relpath(test), label)
    with tempfile.TemporaryDirectory() as folder:
      xml = os.path.join(folder, "test.xml")
      environ["XML_OUTPUT_FILE"] = xml
      environ["TEST_TMPDIR"] = folder
      # -I: nothing can be imported from this folder, the test's folder or PYTHONPATH.
      try:
        done = subprocess.run(
            [python, "-I", os.path.abspath(test)],
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_TIMEOUT_S)
        code, output = done.returncode, done.stdout
      except subprocess.TimeoutExpired as e:
        code, output = "did not end within %d s" % _TIMEOUT_S, e.output or b""
      program_counts = test_log.count_program([xml], program, code == 0, "exit code %s" % code)
      print("%s: %s" % (program, program_counts.line()), flush=True)
      if program_counts.failed:
        print(output.decode("utf-8", "replace")[-20000:], flush=True)
      counts.add(program_counts)
  return counts


def test_wheels(build_dir, tensorflow, wheels, tests_dir, must):
  """Returns the Counts of tests/installed with one TensorFlow version.

  Args:
    build_dir: folder of the environments.
    tensorflow: version.
    wheels: their paths.
    tests_dir: folder of the tests.
    must: whether a missing TensorFlow is a failure. Otherwise each test is reported as
      skipped.
  """
  counts = test_log.Counts()
  tests = sorted(glob.glob(os.path.join(tests_dir, "*_test.py")))
  label = "installed beside TensorFlow " + tensorflow
  try:
    python = environment(build_dir, tensorflow)
  except Unavailable as e:
    names = ["%s (%s): %s" % (os.path.relpath(t), label, e) for t in tests]
    (counts.failed if must else counts.skipped).extend(names)
    return counts
  error = install(python, wheels)
  if error:
    counts.failed.append("installing the wheels beside TensorFlow %s: %s" %
                         (tensorflow, error))
    return counts
  counts.add(run_tests(python, tests, label))
  return counts
