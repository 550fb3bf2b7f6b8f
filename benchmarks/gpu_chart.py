# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draws the GPU hash table's results with their goals and HierarchicalKV's results.

  python benchmarks/gpu_chart.py

Reads gpu_table.md in benchmarks/results and writes gpu.png beside it.
"""

import collections
import os

from absl import app
from absl import flags

FLAGS = flags.FLAGS

_HERE = os.path.dirname(os.path.abspath(__file__))

flags.DEFINE_string("results", os.path.join(_HERE, "results"),
                    "Folder of the page and of the chart.")

# Name of the column of a results page.
_GOAL = "project's goal"

# value, goal, peer: floats; goal and peer are None if there is none.
Bar = collections.namedtuple("Bar", ["label", "value", "goal", "peer"])


def _number(cell):
  try:
    return float(cell.strip("*"))
  except ValueError:
    return None


def rows(page, *columns):
  """Returns the rows of the first table of a page that has all these columns.

  Args:
    page: string, Markdown.
    *columns: names of the header's cells.

  Returns:
    list of {column: cell}.

  Raises:
    ValueError: no table has them.
  """
  header, found = None, []
  for line in page.splitlines():
    if not line.startswith("|"):
      if found:
        break
      header = None
      continue
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    if header is None:
      header = cells if set(columns) <= set(cells) else ()
    elif header and not set(cells[0]) <= set("-: "):
      found.append(dict(zip(header, cells)))
  if not found:
    raise ValueError("no table with the columns %s" % ", ".join(columns))
  return found


def table_bars(page):
  """Returns bars of gpu_table.md: G keys/s of each row that has a goal."""
  name, peer = "what", "HierarchicalKV"
  return [
      Bar(r[name], _number(r["G keys/s"]), _number(r[_GOAL]), _number(r[peer]))
      for r in rows(page, name, "G keys/s", _GOAL, peer)
      if _number(r[_GOAL]) is not None
  ]


def _draw(axes, bars, title, unit, peer):
  places = range(len(bars), 0, -1)
  axes.barh(places, [bar.value for bar in bars], 0.7, label="this library")
  for what, style, label in (("goal", "r--", "goal"), ("peer", "k-", peer)):
    for place, bar in zip(places, bars):
      at = getattr(bar, what)
      if at is not None:
        axes.plot([at, at], [place - 0.45, place + 0.45], style, label=label)
        label = None
  axes.set_yticks(list(places))
  axes.set_yticklabels([bar.label for bar in bars], fontsize=7)
  axes.set_xlabel(unit)
  axes.set_title(title)
  axes.legend(loc="lower right", fontsize=8)


def chart(bars, path):
  """Draws the bars as a PNG."""
  # pylint: disable=g-import-not-at-top
  import matplotlib
  matplotlib.use("Agg")
  from matplotlib import pyplot

  figure, axes = pyplot.subplots(figsize=(8, 1.5 + 0.22 * len(bars)))
  _draw(axes, bars, "Hash table, 128 Mi slots: more is better", "G keys/s",
        "HierarchicalKV")
  figure.tight_layout()
  figure.savefig(path, dpi=110)
  pyplot.close(figure)


def _read(name):
  with open(os.path.join(FLAGS.results, name)) as f:
    return f.read()


def main(argv):
  if len(argv) > 1:
    raise app.UsageError("unexpected arguments: %s" % " ".join(argv[1:]))
  path = os.path.join(FLAGS.results, "gpu.png")
  chart(table_bars(_read("gpu_table.md")), path)
  print("wrote " + path)


if __name__ == "__main__":
  app.run(main)
