# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lays out a picture by Graphviz's `dot`: places its boxes and routes its edges."""

import shutil
import subprocess

from hugectr.commands import layout

# Margin of the picture, in points; a point is one unit of a picture.
_MARGIN = 20

_POINTS_PER_INCH = 72.

_TIMEOUT_S = 60


def program():
  """Returns the path of `dot`, or None if it is not installed."""
  return shutil.which("dot")


def _dot_text(boxes, edges):
  """Returns the graph in the DOT language.

  A box is a table whose lower row has a port for each tensor. An edge's colour encodes
  its number, by which it is found in dot's output.
  """
  lines = ["digraph {", "ranksep=0.6; nodesep=0.4;",
           'node [shape=none, margin=0, width=0, height=0]; edge [dir=none];']
  for k, box in enumerate(boxes):
    cell = '<TD %sFIXEDSIZE="true" WIDTH="%.0f" HEIGHT="%.0f"></TD>'
    lower = "".join(cell % ('PORT="p%d" ' % c, box.width / box.cells, layout.HEIGHT / 3.)
                    for c in range(box.cells))
    lines.append(
        'b%d [label=<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0"><TR>%s'
        "</TR><TR>%s</TR></TABLE>>];" % (
            k, cell % ('COLSPAN="%d" ' % box.cells, box.width, layout.HEIGHT * 2 / 3.), lower))
  for k, edge in enumerate(edges):
    lines.append('b%d:p%d:s -> b%d [color="#%06x"];' %
                 (edge.source, edge.cell, edge.target, k))
  return "\n".join(lines + ["}\n"])


def _placed(answer, boxes, edges):
  """Returns the Placed for the output of `dot -Tplain`, which is in inches with y upwards."""
  corners, curves = [None] * len(boxes), [None] * len(edges)
  width = height = 0.

  def point(x, y):
    return (_MARGIN + float(x) * _POINTS_PER_INCH,
            _MARGIN + height - float(y) * _POINTS_PER_INCH)

  for words in (line.split() for line in answer.splitlines()):
    if words[0] == "graph":
      width, height = (float(w) * _POINTS_PER_INCH for w in words[2:4])
    elif words[0] == "node":
      k = int(words[1][1:])
      x, y = point(*words[2:4])
      corners[k] = (x - boxes[k].width / 2., y - layout.HEIGHT / 2.)
    elif words[0] == "edge":
      end = 4 + 2 * int(words[3])
      curves[int(words[-1].strip('"#'), 16)] = [
          point(*pair) for pair in zip(words[4:end:2], words[5:end:2])]
  return layout.Placed(corners, curves, width + 2 * _MARGIN, height + 2 * _MARGIN)


def place(path, boxes, edges):
  """Returns the Placed of boxes and edges.

  Args:
    path: string, path of `dot`.
    boxes: list of layout.Box.
    edges: list of layout.Edge.

  Raises:
    RuntimeError: `dot` fails.
  """
  try:
    done = subprocess.run(
        [path, "-Tplain"], input=_dot_text(boxes, edges), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, universal_newlines=True, timeout=_TIMEOUT_S, check=True)
    return _placed(done.stdout, boxes, edges)
  except (OSError, subprocess.SubprocessError) as e:
    raise RuntimeError(
        "check: %s, Graphviz's program that lays out the picture, failed: %s: %s. Remedy: "
        "repair Graphviz, or take it from the PATH" %
        (path, e, (getattr(e, "stderr", None) or "it wrote no reason").strip()))
