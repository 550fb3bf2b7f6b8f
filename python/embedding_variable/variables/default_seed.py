# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""One seed for the default rows of a table on all ranks, where the script gives none.

The ranks that hold a table must agree on the row that a key starts with: the key is
another rank's when the job goes on with another number of them. They have not met when a
table is made, and need not make the same graph. What they share is the table's name, so
the seed is made of it.

A process that is alone draws as TensorFlow does, anew in each run.
"""

import hashlib

from tensorflow.core.framework import attr_value_pb2
from tensorflow.python.framework import ops

from embedding_variable.checkpoint import job


def draw(name, build):
  """Returns what `build` returns, having given the random ops that it made a seed.

  Those that have one, of their own or of the graph, keep it.

  Args:
    name: string, the table's name, which is the same on all ranks.
    build: function without arguments that adds ops to the default graph.
  """
  if job.current().size() == 1:
    return build()
  # pylint: disable=protected-access
  graph = ops.get_default_graph()
  before = graph._last_id
  result = build()
  digest = hashlib.sha256(name.encode("utf-8")).digest()
  # Seeds of TensorFlow's are positive int32; both 0 stands for none.
  seeds = [int.from_bytes(digest[i:i + 4], "little") >> 2 or 1 for i in (0, 4)]
  unseeded = [op for op in (graph._nodes_by_id.get(i)
                            for i in range(before + 1, graph._last_id + 1))
              if op is not None and _is_unseeded(op)]
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
