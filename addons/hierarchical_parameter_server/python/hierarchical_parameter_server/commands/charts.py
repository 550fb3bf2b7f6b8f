# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Charts of latencies: as text, as .svg (written here) or as .png (by matplotlib)."""

import html
import importlib
import os

import numpy as np

_BINS = 20
_BAR = 50
# Sizes in the SVG's own units.
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 420, 70, 20, 50, 50
_COLOURS = ("#1f6fb2", "#d1702a", "#3d8f4f")


def text(seconds, out):
  """Draws a histogram of latencies as text, without the slowest half percent.

  Args:
    seconds: float [n].
    out: text file to write to.
  """
  low, high = np.percentile(seconds, [0, 99.5])
  counts, edges = np.histogram(seconds, _BINS, (low, max(high, low + 1e-9)))
  for count, edge in zip(counts, edges):
    bar = "#" * (_BAR * count // max(counts.max(), 1))
    print("%10.1f us %s %d" % (edge * 1e6, bar, count), file=out)


def check(path):
  """Raises ValueError if write() does not support the file type; call before measuring.
  """
  suffix = os.path.splitext(path)[1]
  if suffix not in (".png", ".svg"):
    raise ValueError("--chart_file: expected a name that ends in .png or .svg, got %r" % path)
  if suffix == ".png":
    try:
      importlib.import_module("matplotlib")
    except ImportError:
      raise ValueError("--chart_file %s: a .png needs matplotlib, which is not "
                       "installed; use a name that ends in .svg" % path)
  folder = os.path.dirname(path) or "."
  if not os.path.isdir(folder):
    raise ValueError("--chart_file: there is no folder %r" % folder)


def curves(measured):
  """Returns {stream: (us, share)}: the percentage of lookups that took at most `us`.

  Args:
    measured: {stream: float [n], seconds}.

  Returns:
    At most 200 points per stream, without the slowest half percent.
  """
  shares = np.linspace(0, 99.5, 200)
  return {
      stream: (np.percentile(seconds, shares) * 1e6, shares)
      for stream, seconds in measured.items()
  }


def _steps(low, high, count):
  """Returns about `count` round numbers that cover [low, high]."""
  step = max(high - low, 1e-9) / count
  unit = 10.**np.floor(np.log10(step))
  step = unit * next(m for m in (1, 2, 5, 10) if unit * m >= step * (1 - 1e-9))
  return np.arange(np.floor(low / step), np.ceil(high / step) + 1) * step


def _svg(measured, title):
  """Returns an SVG document of curves(measured)."""
  drawn = curves(measured)
  ticks = _steps(min(us[0] for us, _ in drawn.values()),
                 max(us[-1] for us, _ in drawn.values()), 6)

  def x_of(us):
    return _LEFT + (us - ticks[0]) / (ticks[-1] - ticks[0]) * (_WIDTH - _LEFT - _RIGHT)

  def y_of(share):
    return _HEIGHT - _BOTTOM - share / 100. * (_HEIGHT - _TOP - _BOTTOM)

  parts = [
      '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" '
      'font-size="13">' % (_WIDTH, _HEIGHT),
      '<rect width="%d" height="%d" fill="white"/>' % (_WIDTH, _HEIGHT),
      '<text x="%d" y="24" font-size="15">%s</text>' % (_LEFT, html.escape(title)),
  ]

  def line(x1, y1, x2, y2):
    parts.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#ccc"/>' %
                 (x1, y1, x2, y2))

  def label(x, y, anchor, words):
    parts.append('<text x="%.1f" y="%.1f" text-anchor="%s">%s</text>' %
                 (x, y, anchor, html.escape(words)))

  for tick in ticks:
    line(x_of(tick), y_of(0), x_of(tick), y_of(100))
    label(x_of(tick), y_of(0) + 18, "middle", "%g" % tick)
  for share in (0, 25, 50, 75, 100):
    line(_LEFT, y_of(share), _WIDTH - _RIGHT, y_of(share))
    label(_LEFT - 8, y_of(share) + 4, "end", "%d %%" % share)
  label((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 10, "middle",
        "share of lookups with at most this latency, in microseconds")
  for i, (stream, (us, shares)) in enumerate(drawn.items()):
    colour = _COLOURS[i % len(_COLOURS)]
    points = " ".join("%.1f,%.1f" % (x_of(u), y_of(s)) for u, s in zip(us, shares))
    parts.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' %
                 (points, colour))
    parts.append('<text x="%d" y="%d" fill="%s">%s</text>' %
                 (_LEFT + 12, _TOP + 18 + 18 * i, colour, html.escape(stream)))
  return "\n".join(parts + ["</svg>"]) + "\n"


def _draw_png(path, measured, title):
  import matplotlib  # pylint: disable=g-import-not-at-top
  matplotlib.use("Agg")  # needs no screen
  from matplotlib import pyplot  # pylint: disable=g-import-not-at-top
  figure, axes = pyplot.subplots(figsize=(7.2, 4.2))
  for stream, (us, shares) in curves(measured).items():
    axes.plot(us, shares, label=stream)
  axes.set_xlabel("latency in microseconds")
  axes.set_ylabel("lookups with at most this latency, %")
  axes.set_title(title)
  axes.grid(True)
  axes.legend()
  figure.savefig(path, dpi=150)
  pyplot.close(figure)


def write(path, measured, title):
  """Writes a chart of latencies with one curve per stream.

  Args:
    path: ends in .svg or .png.
    measured: {stream: float [n], seconds}.
    title: the chart's title.

  Raises:
    ValueError: as for check().
    OSError: the file cannot be written.
  """
  check(path)
  if path.endswith(".png"):
    _draw_png(path, measured, title)
    return
  with open(path, "w") as f:
    f.write(_svg(measured, title))
