# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lists of Python objects that belong to a graph.

Graph collections are not used for them, because every collection is serialized into meta
graphs, which these objects cannot be.
"""

from embedding_variable import graph_state

_LISTS = "deeprec"

STAGES = "stages"
WORK_QUEUES = "work_queues"
APPLY_CALLS = "apply_calls"


def of(graph, name):
  """Returns the list of this name, which the caller may change.

  Args:
    graph: Graph.
    name: one of this module's constants.
  """
  lists = graph_state.of(graph).setdefault(_LISTS, {})
  return lists.setdefault(name, [])
