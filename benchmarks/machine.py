# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Describes a measurement's conditions: machine, commit, versions, command."""

import os
import platform
import subprocess


def _read(path, default=""):
  try:
    with open(path) as f:
      return f.read()
  except IOError:
    return default


def _field(text, name):
  for line in text.splitlines():
    if line.startswith(name):
      return line.split(":", 1)[1].strip()
  return "unknown"


def commit(folder):
  """Returns the checkout's commit, with "+changes" if files differ from it."""

  def git(*args):
    return subprocess.check_output(
        ("git",) + args, cwd=folder, stderr=subprocess.DEVNULL,
        universal_newlines=True).strip()

  try:
    name = git("rev-parse", "--short=12", "HEAD")
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".",
                  ":!benchmarks/results")
  except (OSError, subprocess.CalledProcessError):
    return "unknown"
  return name + "+changes" if changed else name


def describe(folder):
  """Returns the machine and the software of this process.

  Args:
    folder: the checkout.

  Returns:
    dict of strings and numbers. "load" is the load average of the last minute when
    the benchmark began: well under 1 on a quiet machine.
  """
  memory_kb = _field(_read("/proc/meminfo"), "MemTotal").split()[0]
  return {
      "cpu": _field(_read("/proc/cpuinfo"), "model name"),
      "cores": os.cpu_count(),
      "memory_gb": round(int(memory_kb) / 1e6, 1) if memory_kb.isdigit() else None,
      "system": platform.platform(),
      "python": platform.python_version(),
      "huge_pages": _read(
          "/sys/kernel/mm/transparent_hugepage/enabled", "unknown").strip(),
      "load": round(os.getloadavg()[0], 2),
      "commit": commit(folder),
  }
