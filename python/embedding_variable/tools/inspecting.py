# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`inspect`: a text report on a checkpoint's embedding variables."""

import collections

from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.tools import histogram

_HEADINGS = ("variable", "parts", "rows", "filtered", "dim", "keys", "slots", "bytes",
             "frequency", "version")

# Columns with numbers, which are right-aligned.
_RIGHT = (1, 2, 3, 4, 7)

# The result of `of_table`. A histogram is None if nothing was recorded.
Facts = collections.namedtuple("Facts", ["table", "frequencies", "versions"])


def of_table(table):
  """Reads a table's frequencies and versions; returns `Facts` with their bins."""
  freqs = table.column(tensor_names.FREQS)
  versions = table.column(tensor_names.VERSIONS)
  return Facts(table, None if freqs is None else histogram.of_frequencies(freqs),
               None if versions is None else histogram.of_versions(versions))


def size(number):
  """Returns a number of bytes in readable form."""
  for unit in ("B", "KiB", "MiB", "GiB"):
    if number < 1024:
      return ("%d %s" if unit == "B" else "%.1f %s") % (number, unit)
    number /= 1024.0
  return "%.1f TiB" % number


def _range(bins):
  """Returns the range of recorded values, "low to high"."""
  if bins is None:
    return "-"
  bins = [b for b in bins if b.label != "never"]
  if not bins:
    return "none"
  if bins[0].low == bins[-1].high:
    return str(bins[0].low)
  return "%d to %d" % (bins[0].low, bins[-1].high)


def _row(facts):
  table = facts.table
  return (table.name, str(len(table.pieces)), "{:,}".format(table.rows),
          "{:,}".format(table.filtered), str(table.dim), table.key_dtype.name,
          ",".join(table.slots) or "-", size(table.nbytes),
          _range(facts.frequencies), _range(facts.versions))


def _total(all_facts):
  """Returns the last line of the report's table."""
  tables = [facts.table for facts in all_facts]
  return ("%d variables" % len(tables), str(sum(len(t.pieces) for t in tables)),
          "{:,}".format(sum(t.rows for t in tables)),
          "{:,}".format(sum(t.filtered for t in tables)), "", "", "",
          size(sum(t.nbytes for t in tables)), "", "")


def text(checkpoint, all_facts):
  """Returns the report.

  Args:
    checkpoint: the `Checkpoint`.
    all_facts: list of `Facts`.
  """
  step = checkpoint.global_step()
  lines = ["%s, global step %s" % (checkpoint.name, "unknown" if step is None else step)]
  if all_facts:
    rows = [_HEADINGS] + [_row(f) for f in all_facts]
    if len(all_facts) > 1:
      rows.append(_total(all_facts))
    widths = [max(len(r[i]) for r in rows) for i in range(len(_HEADINGS))]
    lines.append("")
    for row in rows:
      cells = [
          cell.rjust(width) if i in _RIGHT else cell.ljust(width)
          for i, (cell, width) in enumerate(zip(row, widths))
      ]
      lines.append("  ".join(cells).rstrip())
  else:
    lines.append("no embedding variables")
  others = sum(checkpoint.nbytes(t) for t in checkpoint.others)
  lines.append("")
  lines.append("other tensors: %d, %s" % (len(checkpoint.others), size(others)))
  for facts in all_facts:
    for what, bins in (("rows by frequency", facts.frequencies),
                       ("rows by version (global step of the last update)",
                        facts.versions)):
      if bins:
        lines.append("")
        lines.append("%s: %s" % (facts.table.name, what))
        lines.extend(histogram.lines(bins))
  return "\n".join(lines) + "\n"
