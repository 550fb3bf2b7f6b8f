# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a SOK variable's `mode` says about where its rows live, and default names."""

import re

from tensorflow.python.framework import ops

from sparse_operation_kit import communication

_LOCALIZED = re.compile(r"^localized:(\d+)$")

# Where a graph counts the variables that were given no name.
_COUNTERS = "_sok_default_names"


def target_of(mode):
  """Returns the `target_gpu` that a mode stands for.

  Args:
    mode: None or "distributed" (key k on rank floormod(k, number of ranks)), or
      "localized:<k>" (all keys on rank k).

  Returns:
    int: -1, or the rank.

  Raises:
    RuntimeError: another mode, or a rank that is not there.
  """
  if mode is None or mode == "distributed":
    return -1
  match = _LOCALIZED.match(mode) if isinstance(mode, str) else None
  if match is None:
    raise RuntimeError(
        "sok: mode must be None, 'distributed' or 'localized:<rank>', got %r" % (mode,))
  target, ranks = int(match.group(1)), communication.num_ranks()
  if target >= ranks:
    raise RuntimeError(
        "sok: mode %r names rank %d, but there are %d ranks (0 to %d)" %
        (mode, target, ranks, ranks - 1))
  return target


def default_name(prefix):
  """Returns `<prefix>_0`, `<prefix>_1`, ...: the next one in the default graph.

  Counted by graph, so that ranks that build the same graph agree, and the same script
  gives the same names whatever graphs were built before.
  """
  counters = ops.get_default_graph().__dict__.setdefault(_COUNTERS, {})
  number = counters.get(prefix, 0)
  counters[prefix] = number + 1
  return "%s_%d" % (prefix, number)
