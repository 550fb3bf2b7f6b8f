# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""State of this package that lives as long as a graph."""

_STATE = "_embedding_variable_state"


def of(graph):
  """Returns the dict of a graph, empty at first.

  Graphs of TensorFlow 2.21 have no `__dict__`.

  Args:
    graph: a `tf.Graph`.
  """
  state = getattr(graph, _STATE, None)
  if state is None:
    state = {}
    setattr(graph, _STATE, state)
  return state


def last_id(graph):
  """Returns the number of the op that was added to the graph last, 0 if it is empty.

  Costs a list of all ops.
  """
  operations = graph.get_operations()
  return operations[-1]._id if operations else 0  # pylint: disable=protected-access


def added_after(graph, number):
  """Returns the ops that were added after `last_id` returned a number, in that order."""
  return [op for op in graph.get_operations() if op._id > number]  # pylint: disable=protected-access
