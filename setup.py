# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Supports `python setup.py`; `pip install .` and `pip wheel .` do not need this file.

  python setup.py bdist_wheel [--dist-dir DIR]    # the wheel, in dist/ by default
  python setup.py install                         # builds the wheel and installs it by pip
"""

import argparse
import os
import subprocess
import sys
import tempfile

_ROOT = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(_ROOT, "tools", "pip_package"))

import pip_backend  # pylint: disable=g-import-not-at-top,wrong-import-position


def main():
  parser = argparse.ArgumentParser(
      prog="setup.py", description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter)
  commands = parser.add_subparsers(dest="command", metavar="bdist_wheel | install")
  commands.required = True
  wheel = commands.add_parser("bdist_wheel")
  wheel.add_argument("-d", "--dist-dir", default="dist")
  commands.add_parser("install")
  arguments = parser.parse_args()
  if arguments.command == "bdist_wheel":
    folder = os.path.abspath(arguments.dist_dir)
    print(os.path.join(folder, pip_backend.build_wheel(folder)))
    return 0
  with tempfile.TemporaryDirectory() as folder:
    name = pip_backend.build_wheel(folder)
    return subprocess.call(
        [sys.executable, "-m", "pip", "install", os.path.join(folder, name)])


if __name__ == "__main__":
  sys.exit(main())
