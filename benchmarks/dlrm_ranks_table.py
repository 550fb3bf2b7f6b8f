# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Prints a table of the results of dlrm_ranks.py.

  python benchmarks/dlrm_ranks_table.py FILE
"""

import collections
import json
import sys


def table(lines):
  """Returns Markdown.

  Args:
    lines: iterable of strings, JSON objects of dlrm_ranks.py.
  """
  steps = collections.OrderedDict()
  for line in lines:
    result = json.loads(line)
    key = (result["batch"], result["ranks"], result["exchange"], _ids(result),
           _policy(result))
    steps.setdefault(key, {})[result["graph"]] = result
  one = {(batch, ids, policy): graphs
         for (batch, ranks, _, ids, policy), graphs in steps.items() if ranks == 1}
  rows = ["| samples a GPU | GPUs | carried by | whole ms | M samples/s | scaling | "
          "sparse ms | scaling | dense ms | scaling |", "|" + " --- |" * 10]
  for (batch, ranks, exchange, ids, policy), graphs in steps.items():
    cells = ["%d" % batch, "%d" % ranks, (exchange if ranks > 1 else "–") +
             ("" if ids == "here" else ", ids " + ids) +
             ("" if policy == "none" else ", " + policy)]
    for graph in ("whole", "sparse", "dense"):
      result, alone = graphs.get(graph), one.get((batch, ids, policy), {}).get(graph)
      cells.append("%.2f" % result["step_ms"] if result else "–")
      if graph == "whole":
        cells.append("%.2f" % (result["samples_per_second"] / 1e6) if result else "–")
      cells.append("%.0f %%" % (100. * alone["step_ms"] / result["step_ms"])
                   if result and alone and ranks > 1 else "–")
    rows.append("| " + " | ".join(cells) + " |")
  return "\n".join(rows)


def _ids(result):
  return result.get("ids", "here")


def _policy(result):
  """Returns the policy of the tables, their storage if it has two memories, and the
  distribution of ids if it is not the default."""
  said = [result.get("policy", "none"), result.get("storage", "hbm"),
          result.get("distribution", "zipf")]
  return ", ".join(s for s in said if s not in ("none", "hbm", "dram", "zipf")) or "none"


def losses(lines):
  """Compares the losses of runs that differ only in the memory that holds the ids.

  The same ids give the same rows, whatever memory they are in. Returns a list of lines.

  Args:
    lines: as in `table`.
  """
  found = collections.OrderedDict()
  for line in lines:
    result = json.loads(line)
    key = (result["graph"], result["batch"], result["ranks"], result["exchange"],
           _policy(result))
    found.setdefault(key, {})[_ids(result)] = result.get("loss")
  said = []
  for (graph, batch, ranks, exchange, policy), by_ids in found.items():
    if len(by_ids) < 2:
      continue
    same = len({repr(loss) for loss in by_ids.values()}) == 1
    said.append("%s, %d samples, %d GPUs, %s%s: losses %s%s" % (
        graph, batch, ranks, exchange,
        "" if policy == "none" else ", " + policy, "are the same: " if same else "DIFFER: ",
        ", ".join("%s %r" % one for one in sorted(by_ids.items()))))
  return said


if __name__ == "__main__":
  with open(sys.argv[1]) as file:
    results = file.read().splitlines()
  print(table(results))
  print("\n".join(losses(results)), end="")
