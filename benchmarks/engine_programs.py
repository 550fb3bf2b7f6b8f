# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the engine's C++ benchmarks and stores their output."""

import os
import shutil
import subprocess

PROGRAMS = ("engine_benchmark", "step_benchmark")

_PACKAGE = "benchmarks/engine"


def build(root):
  """Builds the programs with Bazel. Returns their folder.

  Raises:
    RuntimeError: Bazel is missing, or the build fails.
  """
  bazel = shutil.which("bazel")
  if bazel is None:
    raise RuntimeError(
        "the engine's benchmarks are built by Bazel, and no bazel is on the PATH; "
        "make setup installs it")
  targets = ["//%s:%s" % (_PACKAGE, program) for program in PROGRAMS]
  process = subprocess.run([bazel, "build"] + targets, cwd=root,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           universal_newlines=True)
  if process.returncode:
    raise RuntimeError("bazel build %s failed:\n%s" % (
        " ".join(targets), process.stdout[-4000:]))
  return os.path.join(root, "bazel-bin", _PACKAGE)


def page(outputs, machine, command):
  """Returns the page as Markdown. outputs: list of (program, text it printed)."""
  lines = [
      "# The engine alone: finds, inserts, pooled reads and updates",
      "",
      "Rates are compared with the machine's limit: the random cache lines per second "
      "that it reads with prefetching. The output",
      "of each program is unchanged.",
  ]
  for program, text in outputs:
    lines += ["", "## %s" % program, "", "```", text.rstrip(), "```"]
  lines += ["", "## Machine", ""]
  lines += ["- %s: %s" % (k, machine[k]) for k in sorted(machine)]
  lines += ["- command: `%s`" % command, ""]
  return "\n".join(lines)


def run(root, out, machine, command):
  """Builds and runs the programs, and writes engine.md.

  Args:
    root: the checkout.
    out: folder of the results.
    machine: from machine.describe.
    command: string, the user's command line.

  Returns:
    The path of the page.

  Raises:
    RuntimeError: a program cannot be built or fails.
  """
  folder = build(root)
  outputs = []
  for program in PROGRAMS:
    process = subprocess.run([os.path.join(folder, program)],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             universal_newlines=True)
    if process.returncode:
      raise RuntimeError("%s ended with status %d:\n%s" % (
          program, process.returncode, process.stderr[-4000:]))
    outputs.append((program, process.stdout))
  path = os.path.join(out, "engine.md")
  with open(path, "w") as f:
    f.write(page(outputs, machine, command))
  return path
