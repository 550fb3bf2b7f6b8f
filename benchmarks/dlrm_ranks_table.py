# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes a table of what dlrm_ranks.py printed.

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
    key = (result["batch"], result["ranks"], result["exchange"])
    steps.setdefault(key, {})[result["graph"]] = result
  one = {batch: graphs for (batch, ranks, _), graphs in steps.items() if ranks == 1}
  rows = ["| samples a GPU | GPUs | carried by | whole ms | M samples/s | scaling | "
          "sparse ms | scaling | dense ms | scaling |", "|" + " --- |" * 10]
  for (batch, ranks, exchange), graphs in steps.items():
    cells = ["%d" % batch, "%d" % ranks, exchange if ranks > 1 else "–"]
    for graph in ("whole", "sparse", "dense"):
      result, alone = graphs.get(graph), one.get(batch, {}).get(graph)
      cells.append("%.2f" % result["step_ms"] if result else "–")
      if graph == "whole":
        cells.append("%.2f" % (result["samples_per_second"] / 1e6) if result else "–")
      cells.append("%.0f %%" % (100. * alone["step_ms"] / result["step_ms"])
                   if result and alone and ranks > 1 else "–")
    rows.append("| " + " | ".join(cells) + " |")
  return "\n".join(rows)


if __name__ == "__main__":
  with open(sys.argv[1]) as file:
    print(table(file))
