# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""make lint: checks the format of C++, the style of Python, and all text.

  tools/lint/lint.py [--fix] [FILE ...]        # default: the whole tree

--fix corrects the format of C++ and Python, and whitespace.
"""

import argparse
import os
import subprocess
import sys

import autopep8

import commit_rules
import prose_rules
import text_rules
import word_rules

_CPP = (".h", ".cc", ".cu", ".cuh")
_TEXT = (".bzl", ".sh", ".md", ".txt", ".lds", ".json", "BUILD", "WORKSPACE",
         "Makefile", "configure", ".ci/run", ".bazelrc", ".clang-format", "tools/step")
_SHELL = (".sh", "configure", ".ci/run", "tools/step")

# Written by a benchmark, not by hand.
_GENERATED = ("benchmarks/results/",)


def _listed():
  out = subprocess.check_output(
      ["git", "-c", "safe.directory=*", "ls-files", "-co", "--exclude-standard"],
      universal_newlines=True)
  return [f for f in out.splitlines() if os.path.isfile(f)]


def _clang_format(path):
  tool = os.path.join(os.path.dirname(sys.executable), "clang-format")
  return subprocess.check_output([tool, "--style=file", path], universal_newlines=True)


def _autopep8(path):
  # Its options stand in pyproject.toml.
  return autopep8.fix_file(path, autopep8.parse_args([path], apply_config=True))


def _format(files, fix, formatted):
  """Returns a line for each file that `formatted`, a function of its path, would change."""
  found = []
  for path in files:
    with open(path) as f:
      text = f.read()
    made = formatted(path)
    if made != text:
      if fix:
        with open(path, "w") as f:
          f.write(made)
      else:
        found.append("%s: not in the project's format (make format corrects it)" % path)
  return found


def _pyflakes(files):
  """Returns the findings of pyflakes, except those that a line or file excuses."""
  if not files:
    return []
  done = subprocess.run([sys.executable, "-m", "pyflakes"] + files,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        universal_newlines=True)
  return [l for l in done.stdout.splitlines() if not text_rules.is_excused(l)]


def _shell(files):
  """Returns the syntax errors of shell scripts."""
  found = []
  for path in files:
    done = subprocess.run(["bash", "-n", path],
                          stderr=subprocess.PIPE,
                          universal_newlines=True)
    found += done.stderr.splitlines()
  return found


def main():
  parser = argparse.ArgumentParser(prog="lint", description=__doc__)
  parser.add_argument("files", nargs="*")
  parser.add_argument("--fix", action="store_true")
  arguments = parser.parse_args()

  files = [f for f in arguments.files or _listed() if not f.startswith(_GENERATED)]
  cpp = [f for f in files if f.endswith(_CPP)]
  python = [f for f in files if f.endswith(".py")]
  text = python + cpp + [f for f in files if f.endswith(_TEXT)]

  found = []
  for path in text:
    with open(path, newline="") as f:
      content = f.read()
    if arguments.fix:
      mended = text_rules.mended(content)
      if mended != content:
        with open(path, "w", newline="") as f:
          f.write(mended)
        content = mended
    for rules in (text_rules, word_rules, prose_rules):
      found += rules.violations(path, content)
  found += _format(cpp, arguments.fix, _clang_format)
  found += _format([f for f in python if not f.endswith("_pb2.py")], arguments.fix, _autopep8)
  found += _pyflakes(python)
  found += _shell([f for f in files if f.endswith(_SHELL)])
  found += commit_rules.violations()
  for line in found:
    print(line)
  print("lint: %d files, %d findings" % (len(set(text)), len(found)))
  sys.exit(1 if found else 0)


if __name__ == "__main__":
  main()
