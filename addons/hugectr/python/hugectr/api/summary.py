# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The table that `Model.summary` prints."""

from hugectr.config import model as models
from hugectr.layers import network

_WIDTHS = (40, 30, 30, 30)
_RULE = 130


def _row(*cells):
  return "".join(str(cell).ljust(width) for cell, width in zip(cells, _WIDTHS)).rstrip()


def _shown(shape, batch):
  return "(%s)" % ",".join(str(n) for n in (batch * shape.rows,) + tuple(shape.dims))


def _rows(clause, shapes, batch):
  """Yields the rows of a layer: a line for each input and output."""
  bottoms, tops = ([v] if isinstance(v, str) else list(v)
                   for v in (clause["bottom"], clause["top"]))
  is_loss = clause["type"] in network.LOSSES
  for k in range(max(len(bottoms), len(tops))):
    top = tops[k] if k < len(tops) else ""
    shape = "" if is_loss or not top else _shown(shapes[top], batch)
    yield _row("" if k else clause["type"], bottoms[k] if k < len(bottoms) else "", top,
               shape)


def text(clauses, batch, where):
  """Returns the table of a model's layers.

  Args:
    clauses: list of layers' clauses, the first that of the data.
    batch: int, samples of a batch on a device.
    where: string, for errors.

  Raises:
    ConfigError: the clauses do not fit together.
  """
  shapes = models.check_layers(clauses, where)
  data = clauses[0]
  sparse = data["sparse"]
  lines = [
      _row("label", "Dense", "Sparse"),
      _row(data["label"]["top"], data["dense"]["top"], ",".join(s["top"] for s in sparse)),
      _row("(%d,%d)" % (batch, data["label"]["label_dim"]),
           "(%d,%d)" % (batch, data["dense"]["dense_dim"])),
      "-" * _RULE, _row("Layer Type", "Input Name", "Output Name", "Output Shape"),
      "-" * _RULE]
  for clause in clauses[1:]:
    lines += list(_rows(clause, shapes, batch)) + ["-" * _RULE]
  return "\n".join(lines)
