# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Prints where the time of Bazel commands went, from the profiles that they wrote.

  .venv/bin/python tools/testing/where_time_goes.py .build/*_profile.gz

`make test` leaves .build/test_profile.gz, asan_profile.gz and tsan_profile.gz; another
command writes one with --profile=FILE. Each line is a kind of work, the number of actions
and their summed seconds. Actions run side by side, so the sum is larger than the time
of the clock.
"""

import collections
import gzip
import json
import re
import sys

# Pattern of an action's description -> the line it counts for; the first match holds.
_KINDS = (
    (r"Compiling \S+ with nvcc", "compile CUDA code with nvcc"),
    (r"Compiling \S+(_test|_cases)\.(cc|cu)", "compile C++ tests"),
    (r"Compiling (kernels|addons/\w+)/tf/", "compile C++ that sees TensorFlow's headers"),
    (r"Compiling", "compile other C++"),
    (r"Linking|Creating static library", "link"),
    (r"Testing //([^:/]+(/[^:/]+)?)", "run the tests of {0}"),
)
_OTHER = "other actions"
_MICROSECONDS = 1e6


def _kind(description):
  for pattern, name in _KINDS:
    match = re.match(pattern, description)
    if match:
      return name.format(*match.groups())
  return _OTHER


def summed(profile):
  """Returns {kind: [number of actions, seconds]} of a profile that json has read."""
  sums = collections.defaultdict(lambda: [0, 0.])
  for event in profile["traceEvents"]:
    if event.get("cat") == "action processing":
      line = sums[_kind(event["name"])]
      line[0] += 1
      line[1] += event.get("dur", 0) / _MICROSECONDS
  return sums


def table(sums):
  """Returns the lines of a Markdown table, the longest first."""
  lines = ["| work | actions | seconds |", "| --- | --- | --- |"]
  for kind, (count, seconds) in sorted(sums.items(), key=lambda item: -item[1][1]):
    lines.append("| %s | %d | %.0f |" % (kind, count, seconds))
  lines.append("| all | %d | %.0f |" % (sum(c for c, _ in sums.values()),
                                        sum(s for _, s in sums.values())))
  return lines


def main():
  for path in sys.argv[1:]:
    with gzip.open(path, "rt") as f:
      profile = json.load(f)
    print("%s\n\n%s\n" % (path, "\n".join(table(summed(profile)))))


if __name__ == "__main__":
  main()
