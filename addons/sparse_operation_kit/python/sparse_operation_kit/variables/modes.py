# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The placement for a SOK variable's `mode`, and default variable names."""

import re

from embedding_variable import graph_state
from embedding_variable.tf_names import ops

from sparse_operation_kit import communication

_LOCALIZED = re.compile(r"^localized:(\d+)$")

# Attribute of a graph that counts its variables without a name.
_COUNTERS = "_sok_default_names"


def target_of(mode):
  """Returns the `target_gpu` for a mode.

  Args:
    mode: None or "distributed" (key k on rank floormod(k, number of ranks)), or
      "localized:<k>" (all keys on rank k).

  Returns:
    int: -1, or the rank.

  Raises:
    RuntimeError: an unknown mode, or a rank outside the job.
  """
  if mode is None or mode == "distributed":
    return -1
  match = _LOCALIZED.match(mode) if isinstance(mode, str) else None
  if match is None:
    raise RuntimeError(
        "sok: mode: expected None, 'distributed' or 'localized:<rank>', got %r" % (mode,))
  target, ranks = int(match.group(1)), communication.num_ranks()
  if target >= ranks:
    raise RuntimeError(
        "sok: mode %r names rank %d, but there are %d ranks (0 to %d)" %
        (mode, target, ranks, ranks - 1))
  return target


def default_name(prefix):
  """Returns the next name of `<prefix>_0`, `<prefix>_1`, ... in the default graph.

  Counted per graph, so that ranks that build the same graph agree, and a script gets
  the same names regardless of graphs built before.
  """
  counters = graph_state.of(ops.get_default_graph()).setdefault(_COUNTERS, {})
  number = counters.get(prefix, 0)
  counters[prefix] = number + 1
  return "%s_%d" % (prefix, number)
