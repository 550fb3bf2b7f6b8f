# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The cache strategies: which rows a full table evicts or moves to its slower memory.

The only table of strategies in Python: `config_pb2.CacheStrategy`, the checks of
options and SOK's `evict_strategy` are built from it. The op `EvHandle` takes a strategy
by name.
"""

import collections

# One strategy.
#   name: string, in `config_pb2.CacheStrategy` and in the op's attribute.
#   number: int, its number in scripts and option files; must never change.
#   needs_frequency: bool, whether a bounded table must count the uses of keys.
#   sok_names: tuple of strings, its names in `evict_strategy` of SOK's
#     `DynamicVariable`; empty: SOK does not have it.
CacheStrategy = collections.namedtuple(
    "CacheStrategy", ["name", "number", "needs_frequency", "sok_names"])

TABLE = (
    CacheStrategy("LRU", 0, needs_frequency=False, sok_names=("kLru", "kEpochLru")),
    CacheStrategy("LFU", 1, needs_frequency=True, sok_names=("kLfu", "kEpochLfu")),
    CacheStrategy("FIFO", 2, needs_frequency=False, sok_names=("kFifo",)),
)

# Maps a name in `evict_strategy` of SOK's `DynamicVariable` to the strategy's name.
NAMES_BY_SOK_NAME = {sok_name: s.name for s in TABLE for sok_name in s.sok_names}


def needs_frequency(name):
  """Returns whether a bounded table with this strategy must count the uses of keys."""
  return any(s.name == name and s.needs_frequency for s in TABLE)
