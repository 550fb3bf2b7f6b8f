# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gives a table's default rows the same seed on all ranks if the script sets none.

Ranks must agree on the initial row of a key, since another rank may own it when the job
continues with a different number of ranks. Ranks have not communicated when a table is
created, and their graphs may differ. They do share the table's name, so the seed is
derived from it.

A single process draws a new seed in each run, as TensorFlow does.
"""

import hashlib

from embedding_variable import graph_state
from embedding_variable.checkpoint import job
from embedding_variable.tf_names import attr_value_pb2
from embedding_variable.tf_names import ops


def draw(name, build):
  """Calls `build` and gives a seed to the random ops that it adds.

  Ops that have a seed, of their own or of the graph, keep it.

  Args:
    name: string, the table's name, which is the same on all ranks.
    build: function without arguments that adds ops to the default graph.

  Returns:
    The result of `build`.
  """
  if job.current().size() == 1:
    return build()
  # pylint: disable=protected-access
  graph = ops.get_default_graph()
  before = graph_state.last_id(graph)
  result = build()
  digest = hashlib.sha256(name.encode("utf-8")).digest()
  # TensorFlow's seeds are positive int32; two zeros mean no seed.
  seeds = [int.from_bytes(digest[i:i + 4], "little") >> 2 or 1 for i in (0, 4)]
  unseeded = [op for op in graph_state.added_after(graph, before) if _is_unseeded(op)]
  for number, op in enumerate(unseeded):
    op._set_attr("seed", _attribute(seeds[0]))
    op._set_attr("seed2", _attribute(seeds[1] + number))
  return result


def _is_unseeded(op):
  names = [attribute.name for attribute in op.op_def.attr]
  return ("seed" in names and "seed2" in names and
          op.get_attr("seed") == 0 and op.get_attr("seed2") == 0)


def _attribute(number):
  return attr_value_pb2.AttrValue(i=number)
