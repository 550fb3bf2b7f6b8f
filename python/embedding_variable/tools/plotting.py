# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`inspect --plot`: a PNG about a checkpoint's embedding variables.

At the top are totals: rows of each table, and all rows by frequency. Below are small
charts of each table's rows by frequency and by version, in a grid of limited height.
"""

import collections
import os

from embedding_variable.checkpoint_format import errors
from embedding_variable.checkpoint_format import names as names_lib
from embedding_variable.tools import inspecting

# Most tables with their own charts; if there are more, the largest.
_TABLES = 48
_COLUMNS = 6

# Inches: the picture's width; its heading; the charts of totals and the labels below
# them; the title of a small chart, the chart, and the space between two charts.
_WIDTH, _HEADING, _TOTALS, _LABELS = 15.0, 0.85, 2.1, 1.6
_TITLE_HEIGHT, _CHART, _GAP, _FOOT = 0.4, 0.9, 0.95, 0.75
_DPI = 100

# Minimum number of bars that a chart has room for; tick labels of a small chart.
_LEAST_BARS, _TICKS = 8, 6

# Most characters of a name above a small chart, of a name below a bar, and of a bin's
# label.
_TITLE, _BAR, _LABEL = 28, 22, 11

# Bars with a wider range are drawn on a logarithmic scale.
_LINEAR = 100

_COLORS = {"frequency": "#3b75af", "version": "#c46a2b"}


def _pyplot():
  """Imports and returns matplotlib.pyplot, configured to draw into files.

  Raises:
    CheckpointError: it is not installed.
  """
  try:
    import matplotlib  # pylint: disable=g-import-not-at-top
  except ImportError as e:
    raise errors.CheckpointError("--plot needs matplotlib, which cannot be imported (%s). "
                                 "Remedy: pip install matplotlib" % e)
  matplotlib.use("Agg")
  from matplotlib import pyplot  # pylint: disable=g-import-not-at-top
  return pyplot


def cut(text, width):
  """Shortens a text to at most `width` characters by replacing its middle."""
  if len(text) <= width:
    return text
  # Names of features differ at their ends.
  head = (width - 1) // 3
  return text[:head] + "\u2026" + text[len(text) - (width - 1 - head):]


def total_frequencies(all_facts):
  """Returns [(label, count)] of all tables' rows by frequency, lowest first."""
  counts = collections.Counter()
  for facts in all_facts:
    for item in facts.frequencies or ():
      counts[item.label] += item.count
  return sorted(counts.items(), key=lambda pair: int(pair[0].split("-")[0]))


def charts(all_facts):
  """Returns the small charts to draw.

  Args:
    all_facts: list of `Facts`.

  Returns:
    (list of (`Facts`, "frequency" or "version") in order, number of tables left out). A
      column that no table has recorded is left out.
  """
  kinds = [kind for kind, column in (("frequency", "frequencies"), ("version", "versions"))
           if any(getattr(f, column) is not None for f in all_facts)]
  largest = sorted(all_facts, key=lambda f: -f.table.rows)[:_TABLES]
  kept = {f.table.name for f in largest}
  shown = [f for f in all_facts if f.table.name in kept] if kinds else []
  return [(f, kind) for f in shown for kind in kinds], len(all_facts) - len(shown)


def _bars(axis, labels, counts, color, every=1, size=7):
  """Draws bars; every `every`-th one has a label."""
  axis.bar(range(len(labels)), counts, color=color)
  axis.set_xlim(-0.7, max(len(labels), _LEAST_BARS) - 0.3)
  axis.set_xticks(range(0, len(labels), every))
  slanted = len(labels[::every]) <= _LEAST_BARS
  axis.set_xticklabels(labels[::every], rotation=35 if slanted else 90,
                       ha="right" if slanted else "center", fontsize=size,
                       rotation_mode="anchor" if slanted else None)
  axis.tick_params(axis="both", labelsize=size, length=2, pad=1)
  for side in ("top", "right"):
    axis.spines[side].set_visible(False)


def _draw_totals(figure, grid, all_facts, short):
  """Draws the row of charts about all tables."""
  rows = [f.table.rows for f in all_facts]
  totals = total_frequencies(all_facts)
  axis = figure.add_subplot(grid[0, :4] if totals else grid[0, :])
  shown = sorted(sorted(range(len(rows)), key=lambda i: -rows[i])[:_TABLES])
  _bars(axis, [cut(short[i], _BAR) for i in shown], [rows[i] for i in shown], "#5f7f5f")
  positive = [r for r in rows if r]
  if positive and max(positive) > _LINEAR * min(positive):
    axis.set_yscale("log")
    axis.set_ylim(bottom=0.5)
  axis.set_title("rows of each variable" if len(shown) == len(rows) else
                 "rows of the %d largest variables" % len(shown), fontsize=9)
  if totals:
    axis = figure.add_subplot(grid[0, 4:])
    _bars(axis, [label for label, _ in totals], [count for _, count in totals],
          _COLORS["frequency"])
    axis.set_title("rows of all variables by frequency", fontsize=9)


def _tick(item):
  """Returns the label of a bin in a small chart: "100000000+" if it is too long."""
  return item.label if len(item.label) <= _LABEL else "%d+" % item.low


def _draw_chart(axis, name, facts, kind):
  """Draws one small chart."""
  bins = facts.frequencies if kind == "frequency" else facts.versions
  axis.set_title("%s\n%s rows by %s" % (
      cut(name, _TITLE), "{:,}".format(facts.table.rows), kind), fontsize=7)
  if bins:
    _bars(axis, [_tick(b) for b in bins], [b.count for b in bins], _COLORS[kind],
          every=-(-len(bins) // _TICKS), size=6)
    return
  axis.text(0.5, 0.5, "not recorded" if bins is None else "no rows", ha="center",
            va="center", fontsize=7, transform=axis.transAxes)
  axis.set_xticks([])
  axis.set_yticks([])


def draw(pyplot, checkpoint, all_facts):
  """Draws the variables; returns the figure."""
  short, pattern = names_lib.shorten([f.table.name for f in all_facts])
  short_of = {f.table.name: s for f, s in zip(all_facts, short)}
  small, left_out = charts(all_facts)
  rows = -(-len(small) // _COLUMNS)
  height = _HEADING + _TOTALS + _LABELS
  if small:
    height += _TITLE_HEIGHT + rows * _CHART + (rows - 1) * _GAP + _FOOT
  figure = pyplot.figure(figsize=(_WIDTH, height))
  # Sizes are explicit, because tight_layout is slow with a hundred charts.
  sides = dict(left=0.6 / _WIDTH, right=1 - 0.2 / _WIDTH, wspace=0.28)
  totals = figure.add_gridspec(
      1, _COLUMNS, top=1 - _HEADING / height, bottom=1 - (_HEADING + _TOTALS) / height,
      **sides)
  _draw_totals(figure, totals, all_facts, short)
  if small:
    grid = figure.add_gridspec(
        rows, _COLUMNS, top=1 - (_HEADING + _TOTALS + _LABELS + _TITLE_HEIGHT) / height,
        bottom=_FOOT / height, hspace=_GAP / _CHART, **sides)
    for i, (facts, kind) in enumerate(small):
      _draw_chart(figure.add_subplot(grid[i // _COLUMNS, i % _COLUMNS]),
                  short_of[facts.table.name], facts, kind)
  title = "%s: %s variable%s, %s rows, %s" % (
      cut(os.path.basename(checkpoint.prefix), 60), "{:,}".format(len(all_facts)),
      "" if len(all_facts) == 1 else "s",
      "{:,}".format(sum(f.table.rows for f in all_facts)),
      inspecting.size(sum(f.table.nbytes for f in all_facts)))
  notes = []
  if pattern != "*":
    notes.append("names are %s" % cut(pattern, 120))
  if small and left_out:
    notes.append("the %d smaller variables have no chart of their own" % left_out)
  figure.suptitle("\n".join([title, ";  ".join(notes)]).rstrip(), fontsize=11,
                  y=1 - 0.1 / height, va="top")
  return figure


def plot(checkpoint, all_facts, path):
  """Draws the variables into a PNG.

  Args:
    checkpoint: the `Checkpoint`.
    all_facts: list of `Facts`, in the order to draw.
    path: file to write.

  Raises:
    CheckpointError: matplotlib is not installed, or there is nothing to draw.
  """
  if not all_facts:
    raise errors.CheckpointError("there is no embedding variable to plot")
  pyplot = _pyplot()
  figure = draw(pyplot, checkpoint, all_facts)
  figure.savefig(path, dpi=_DPI, format="png")
  pyplot.close(figure)
