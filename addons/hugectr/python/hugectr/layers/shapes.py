# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Shapes of tensors, and what the shape rules of several types of layers share.

A Shape omits the batch: a tensor has the shape `batch * rows` by `dims`. `rows` is 1
except after a Reshape whose last axis is shorter than a sample.
"""

import collections


class Shape(collections.namedtuple("Shape", ["rows", "dims"])):
  """rows: int; dims: tuple of ints, the axes after the first."""

  def __str__(self):
    first = "batch" if self.rows == 1 else "batch * %d" % self.rows
    return "[%s]" % ", ".join([first] + [str(d) for d in self.dims])

  @property
  def width(self):
    """int, numbers per row."""
    product = 1
    for d in self.dims:
      product *= d
    return product


class ShapeError(ValueError):
  """The bottoms do not fit a layer; the text has no path."""


def flat(width, rows=1):
  """Returns the Shape of two axes."""
  return Shape(rows, (width,))


def need(holds, sentence, *args):
  """Raises ShapeError unless a condition holds."""
  if not holds:
    raise ShapeError(sentence % args)


def rank_is(shape, rank, what="the bottom"):
  """Raises ShapeError unless a Shape has a number of axes."""
  need(len(shape.dims) == rank - 1, "%s: expected %d axes, got %s", what, rank, shape)


def same(shapes, params):
  """The shape rule of layers whose bottoms all have the shape of the top."""
  del params
  for shape in shapes[1:]:
    need(shape == shapes[0], "bottoms: expected one shape, got %s and %s", shapes[0],
         shape)
  return [shapes[0]]


def flat_only(shapes, params):
  """The shape rule of layers whose top is like their bottom, of two axes."""
  del params
  rank_is(shapes[0], 2)
  return [shapes[0]]
