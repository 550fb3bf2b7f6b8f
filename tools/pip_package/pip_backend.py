# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""PEP 517 backend, which pip calls to build a wheel of a checkout by Bazel.

A checkout that ./configure or make setup has configured is built as configured. Another
checkout is configured for this one build. It uses the TensorFlow of the environment that
pip installs into, or one that pip fetches for the build if there is none.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile

import distributions

_ROOT = os.path.dirname(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

_TARGET = "//tools/pip_package:build_sok"
_PROGRAM = "bazel-bin/tools/pip_package/build_sok"


def _fail(sentence):
  sys.exit("%s cannot be built: %s" % (distributions.SOK, sentence))


def _configured():
  return os.path.exists(os.path.join(_ROOT, ".bazelrc.user"))


def _environment_has_tensorflow():
  """Returns whether TensorFlow is in the environment itself, not in pip's build
  folder."""
  # -I ignores PYTHONPATH, by which pip hides the environment.
  look = "import importlib.util, sys; sys.exit(not importlib.util.find_spec('tensorflow'))"
  return subprocess.call([sys.executable, "-I", "-c", look]) == 0


def _check_tools():
  if sys.version_info[:2] != (3, 7):
    _fail("Python 3.7 is needed (TensorFlow 1.15 has no wheel for a newer one), got "
          "%d.%d at %s." % (sys.version_info[0], sys.version_info[1], sys.executable))
  for tool, remedy in (
      ("bazel", "make setup installs it on Debian (bazel-bootstrap)"),
      ("g++", "install a C++ compiler")):
    if shutil.which(tool) is None:
      _fail("no %s is on the PATH: %s." % (tool, remedy))


def _configure(output):
  """Runs configure.py, which writes a bazelrc for this interpreter."""
  command = [sys.executable]
  if _environment_has_tensorflow():
    command.append("-I")
  elif importlib.util.find_spec("tensorflow") is None:
    _fail("%s has no TensorFlow, and pip may not fetch one for the build: "
          "pip install tensorflow==1.15.5 'protobuf<3.21', or run pip "
          "without --no-build-isolation." % sys.executable)
  script = os.path.join(_ROOT, "tools", "setup", "configure.py")
  if subprocess.call(command + [script, "--output", output]) != 0:
    _fail("./configure failed, see above.")


def get_requires_for_build_wheel(config_settings=None):
  """Returns what pip must install for the build."""
  del config_settings
  _check_tools()
  if _configured() or _environment_has_tensorflow():
    return []
  return distributions.requirements("1.15")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
  """Builds the wheel into a folder; returns its file name.

  Exits with a message if a tool is missing or the build fails.
  """
  del config_settings, metadata_directory
  _check_tools()
  # Without PYTHONPATH, with which pip shows other packages than Bazel was configured for.
  environ = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
  with tempfile.TemporaryDirectory() as folder:
    bazel = ["bazel"]
    if not _configured():
      configuration = os.path.join(folder, "bazelrc")
      _configure(configuration)
      bazel.append("--bazelrc=" + configuration)
    build = bazel + ["build", "--color=no", "--curses=no", _TARGET]
    if subprocess.call(build, cwd=_ROOT, env=environ, stdin=subprocess.DEVNULL) != 0:
      _fail("Bazel failed, see above.")
    made = os.path.join(folder, "wheel")
    subprocess.check_call([os.path.join(_ROOT, _PROGRAM), made], env=environ,
                          stdout=subprocess.DEVNULL)
    name, = os.listdir(made)
    os.makedirs(wheel_directory, exist_ok=True)
    shutil.move(os.path.join(made, name), os.path.join(wheel_directory, name))
  return name


def build_sdist(sdist_directory, config_settings=None):
  """Fails: there is no source archive, the sources are the checkout."""
  del sdist_directory, config_settings
  _fail("there is no source distribution; use a clone or git archive.")
