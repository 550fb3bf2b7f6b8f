# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The cache strategies: which rows go when a table is full, or to its slower memory.

This is Python's one table of them: `config_pb2.CacheStrategy`, the checks of options and
SOK's `evict_strategy` are made of it. The op `EvHandle` takes a strategy by its name.
"""

import collections

# One strategy.
#   name: string, of `config_pb2.CacheStrategy` and of the op's attribute.
#   number: int, what scripts and files of options say for it: never to be changed.
#   needs_frequency: bool, whether a bounded table must count how often a key is used.
#   sok_names: tuple of strings, what `evict_strategy` of SOK's `DynamicVariable` calls
#     it; empty: SOK does not have it.
CacheStrategy = collections.namedtuple(
    "CacheStrategy", ["name", "number", "needs_frequency", "sok_names"])

TABLE = (
    CacheStrategy("LRU", 0, needs_frequency=False, sok_names=("kLru", "kEpochLru")),
    CacheStrategy("LFU", 1, needs_frequency=True, sok_names=("kLfu", "kEpochLfu")),
    CacheStrategy("FIFO", 2, needs_frequency=False, sok_names=("kFifo",)),
)

# The name that `evict_strategy` of SOK's `DynamicVariable` stands for.
NAMES_BY_SOK_NAME = {sok_name: s.name for s in TABLE for sok_name in s.sok_names}


def needs_frequency(name):
  """Whether a bounded table of the strategy with this name must count its keys' uses."""
  return any(s.name == name and s.needs_frequency for s in TABLE)
