# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`check`: prints the mistakes of a configuration, or the layers of a correct one."""

from hugectr.commands import picture
from hugectr.config import loading
from hugectr.config import model as models
from hugectr.training import solver as solvers


def rows_of(model):
  """Returns one (name, type, bottoms, tops with shapes) per layer, in order."""
  data = model.data
  found = [(data.name, "Data, " + data.format, "", "%s [batch, %d], %s [batch, %d], %s" % (
      data.label_top, data.label_dim, data.dense_top, data.dense_dim,
      ", ".join("%s (%d slots)" % (s.top, s.slot_num) for s in data.sparse)))]
  for embedding in model.embeddings:
    found.append((embedding.name, embedding.type, embedding.bottom.top,
                  "%s [batch, %d, %d]" % (embedding.top, embedding.bottom.slot_num,
                                          models.top_width(embedding))))
  for layer in model.layers:
    tops = ", ".join("%s %s" % pair for pair in zip(layer.tops, layer.out_shapes))
    found.append((layer.name, layer.type, ", ".join(layer.bottoms), tops))
  for loss in model.losses:
    found.append((loss.name, loss.type, ", ".join(loss.bottoms), loss.tops[0]))
  return found


def text(model):
  """Returns the layers as a text table."""
  rows = [("layer", "type", "takes", "gives")] + rows_of(model)
  widths = [max(len(row[k]) for row in rows) for k in range(3)]
  return "".join("%s\n" % "  ".join(
      [row[k].ljust(widths[k]) for k in range(3)] + [row[3]]).rstrip() for row in rows)


def check(path, plot, out):
  """Checks a configuration and prints its layers.

  Args:
    path: path of the JSON file.
    plot: path of a picture to draw, an SVG or (.png) a PNG; None: no picture.
    out: a file to print to.

  Raises:
    ConfigError: the configuration is wrong; one line per mistake.
    OSError: the picture cannot be written.
    RuntimeError: a PNG was requested without matplotlib, or Graphviz failed.
  """
  configuration = loading.read_json(path)
  model = models.parse(configuration, path)
  if "solver" in configuration:
    solvers.SolverParser(path)
  out.write(text(model))
  if plot:
    picture.write(model, plot)
    out.write("\nwrote %s\n" % plot)
