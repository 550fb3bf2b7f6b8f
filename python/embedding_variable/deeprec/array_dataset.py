# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A Dataset of numpy arrays from a Python generator.

`Dataset.from_generator` checks and converts each array in Python, which takes longer
than reading it. Here the generator yields flat lists of arrays of the right types.
"""

import itertools
import threading

import numpy as np

from embedding_variable.tf_names import autograph
from embedding_variable.tf_names import dataset_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import script_ops


class _Iterators(object):
  """The running generators, by number. Thread-safe."""

  def __init__(self, make):
    self._make = make
    self._numbers = itertools.count()
    self._lock = threading.Lock()
    self._running = {}

  def start(self, *args):
    with self._lock:
      number = next(self._numbers)
      self._running[number] = self._make(*args)
    return np.int64(number)

  def following(self, number):
    # StopIteration ends the dataset.
    return next(self._running[number])

  def stop(self, number):
    with self._lock:
      self._running.pop(number).close()
    return np.int64(0)


def from_arrays(make, argument, types, pack):
  """Returns a Dataset of what `make(argument)` yields.

  Args:
    make: function of a numpy value that returns a generator of flat lists of arrays. It
      may be called several times.
    argument: tensor.
    types: list of the dtypes of the arrays.
    pack: function of the list of their tensors that returns an element.
  """
  iterators = _Iterators(make)

  # Without AutoGraph, because these functions have no control flow of tensors. AutoGraph
  # would take seconds to find that out.
  @autograph.do_not_convert
  def following(number):
    return pack(script_ops.numpy_function(iterators.following, [number], types))

  @autograph.do_not_convert
  def start(value):
    return script_ops.numpy_function(iterators.start, [value], dtypes.int64)

  @autograph.do_not_convert
  def stop(number):
    return script_ops.numpy_function(iterators.stop, [number], dtypes.int64)

  return dataset_ops.DatasetV1Adapter(
      dataset_ops._GeneratorDataset(argument, start, following, stop))  # pylint: disable=protected-access
