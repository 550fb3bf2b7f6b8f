# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The names that a table's tensors have in checkpoints, and what they hold.

This is the only place in Python that spells them; kernels/engine/checkpoint/tensor_names.h
is the only one in C++. For a variable `v` with a slot `Adagrad` a full checkpoint has

  v-keys, v-values, v-versions, v-freqs, v-partition_offset, and the same of filtered
  keys (v-keys_filtered, v-versions_filtered, v-freqs_filtered,
  v-partition_filter_offset); then v/Adagrad-keys, v/Adagrad-values and so on.

These names are DeepRec's. Ours alone is v-default_rows, what new keys start with.

A delta, of an incremental checkpoint, has

  v-sparse_incr_keys, -sparse_incr_values, -sparse_incr_versions, -sparse_incr_freqs,
  v-incr_partition_offset, and the same under v/Adagrad;

and ours: v-sparse_incr_erased_keys, keys that lost their row; v-sparse_incr_replaces, 1
when this is the whole table; v-sparse_incr_default_rows, what it was initialised with
then; v-sparse_incr_keys_filtered, -versions_filtered, -freqs_filtered, the keys whose
count by a `CounterFilter` changed.

A table in parts (of a partitioner, or of several ranks) has v/part_0-keys and so on, and
v/part_0/Adagrad-keys. Of a table that is spread over ranks, a delta also has
v-sparse_incr_placement: key k was on rank placement[floormod(k, length)].

Letters of shapes: N keys, F filtered keys, R default rows, dim floats in a row.
"""

import collections
import re

from tensorflow.python.framework import dtypes

# One column of a full checkpoint.
#   name: string, what follows the table's or the slot's name and a dash.
#   dtype: of its elements; None: the type of the table's keys.
Column = collections.namedtuple("Column", ["name", "dtype"])

KEYS = "keys"  # [N], by floormod(key, 1000).
VALUES = "values"  # [N, dim]
VERSIONS = "versions"  # [N], or [0]: not recorded.
FREQS = "freqs"  # [N], or [0]: not recorded.
OFFSETS = "partition_offset"  # [1001], where the keys of each remainder begin.

KEYS_FILTERED = "keys_filtered"  # [F]
VERSIONS_FILTERED = "versions_filtered"  # [F]
FREQS_FILTERED = "freqs_filtered"  # [F]
OFFSETS_FILTERED = "partition_filter_offset"  # [1001], as OFFSETS.

DEFAULT_ROWS = "default_rows"  # [R, dim], of a table, not of its slots.

# What a table has, and each slot again.
COLUMNS = (
    Column(KEYS, None),
    Column(VALUES, dtypes.float32),
    Column(VERSIONS, dtypes.int64),
    Column(FREQS, dtypes.int64),
    Column(OFFSETS, dtypes.int32),
    Column(KEYS_FILTERED, None),
    Column(VERSIONS_FILTERED, dtypes.int64),
    Column(FREQS_FILTERED, dtypes.int64),
    Column(OFFSETS_FILTERED, dtypes.int32),
)

# The columns with an element for each filtered key.
FILTERED = (KEYS_FILTERED, VERSIONS_FILTERED, FREQS_FILTERED)

# A delta's.
DELTA_KEYS = "sparse_incr_keys"
DELTA_VALUES = "sparse_incr_values"
DELTA_VERSIONS = "sparse_incr_versions"
DELTA_FREQS = "sparse_incr_freqs"
DELTA_OFFSETS = "incr_partition_offset"
DELTA_ERASED_KEYS = "sparse_incr_erased_keys"
DELTA_REPLACES = "sparse_incr_replaces"
DELTA_DEFAULT_ROWS = "sparse_incr_default_rows"
DELTA_KEYS_FILTERED = "sparse_incr_keys_filtered"
DELTA_VERSIONS_FILTERED = "sparse_incr_versions_filtered"
DELTA_FREQS_FILTERED = "sparse_incr_freqs_filtered"
DELTA_PLACEMENT = "sparse_incr_placement"

# A table's columns in a delta; a slot has the first five.
DELTA_COLUMNS = (DELTA_KEYS, DELTA_VALUES, DELTA_VERSIONS, DELTA_FREQS, DELTA_OFFSETS,
                 DELTA_ERASED_KEYS, DELTA_REPLACES, DELTA_DEFAULT_ROWS,
                 DELTA_KEYS_FILTERED, DELTA_VERSIONS_FILTERED, DELTA_FREQS_FILTERED)

_PART = re.compile(r"^(.*)/part_(\d+)$")


def tensor(table, column):
  """Returns the name of a tensor, of a table or part (or of what `slot` returns)."""
  return "%s-%s" % (table, column)


def slot(table, slot_name):
  """Returns what the names of a slot's tensors start with."""
  return "%s/%s" % (table, slot_name)


def part(table, number):
  """Returns what the names of a part's tensors start with; also the part's own name."""
  return "%s/part_%d" % (table, number)


def split_part(name):
  """Returns (table, number) of the name of a part; (name, None) of any other name."""
  match = _PART.match(name)
  return (match.group(1), int(match.group(2))) if match else (name, None)


def without_column(name, column):
  """Returns what a tensor's name starts with, or None if it is not of that column."""
  suffix = "-" + column
  return name[:-len(suffix)] if name.endswith(suffix) else None
