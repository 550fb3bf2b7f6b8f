# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names and contents of a table's tensors in checkpoints.

No other Python module spells them; in C++ only kernels/engine/checkpoint/tensor_names.h
does. For a variable `v` with a slot `Adagrad` a full checkpoint has

  v-keys, v-values, v-versions, v-freqs, v-partition_offset, and the same of filtered
  keys (v-keys_filtered, v-versions_filtered, v-freqs_filtered,
  v-partition_filter_offset); then v/Adagrad-keys, v/Adagrad-values and so on.

These names are DeepRec's. The tensors of a table as a whole are our own
(`TABLE_TENSORS`): v-default_rows, the initial rows of new keys; and, of a table that
rounds its values to a narrower type, v-rounding, which determines the random bits.

A published version that has one table under two names has its rows under one of them, and
v-same_as with that name (a string) for the other.

A delta (an incremental checkpoint) has

  v-sparse_incr_keys, -sparse_incr_values, -sparse_incr_versions, -sparse_incr_freqs,
  v-incr_partition_offset, and the same under v/Adagrad;

and our own tensors:

  v-sparse_incr_erased_keys: keys that lost their row
  v-sparse_incr_replaces: 1 if the delta is the whole table
  v-sparse_incr_default_rows: the default rows of that whole table (`TABLE_TENSORS`)
  v-sparse_incr_rounding: as v-rounding
  v-sparse_incr_keys_filtered, -versions_filtered, -freqs_filtered: the keys whose
  count by a `CounterFilter` changed

A table in parts (of a partitioner, or of several ranks) has v/part_0-keys and so on,
and v/part_0/Adagrad-keys. A delta of a table that is spread over ranks also has
v-sparse_incr_placement: key k was on rank placement[floormod(k, length)].

Letters in shapes: N keys, F filtered keys, R default rows, dim floats in a row.
"""

import collections
import re

import tensorflow as tf


# One column of a full checkpoint.
#   name: string, follows the table's or slot's name and a dash.
#   dtype: type of its elements; None: the type of the table's keys.
Column = collections.namedtuple("Column", ["name", "dtype"])

KEYS = "keys"  # [N], by floormod(key, 1000)
VALUES = "values"  # [N, dim]
VERSIONS = "versions"  # [N], or [0] if not recorded
FREQS = "freqs"  # [N], or [0] if not recorded
OFFSETS = "partition_offset"  # [1001], where the keys of each remainder start

KEYS_FILTERED = "keys_filtered"  # [F]
VERSIONS_FILTERED = "versions_filtered"  # [F]
FREQS_FILTERED = "freqs_filtered"  # [F]
OFFSETS_FILTERED = "partition_filter_offset"  # [1001], like OFFSETS

# The other name, [], under which a table has its rows.
SAME_AS = "same_as"

# Columns of a table, and again of each slot.
COLUMNS = (
    Column(KEYS, None),
    Column(VALUES, tf.float32),
    Column(VERSIONS, tf.int64),
    Column(FREQS, tf.int64),
    Column(OFFSETS, tf.int32),
    Column(KEYS_FILTERED, None),
    Column(VERSIONS_FILTERED, tf.int64),
    Column(FREQS_FILTERED, tf.int64),
    Column(OFFSETS_FILTERED, tf.int32),
)

# Columns with an element per filtered key.
FILTERED = (KEYS_FILTERED, VERSIONS_FILTERED, FREQS_FILTERED)

DIM = "dim"


class TableTensor(
    collections.namedtuple("TableTensor", ["name", "dtype", "shape", "fixed", "narrow"])):
  """A tensor of a table as a whole; a slot has none.

  Attributes:
    name: string, its column in a full checkpoint.
    dtype: type of its elements.
    shape: list of sizes; None: any size, `DIM`: the length of a row.
    fixed: whether it changes only when the table is emptied. Only a delta that replaces
      the table has such a tensor; in others its first size is 0.
    narrow: whether only tables with values narrower than float32 have it.
  """

  @property
  def delta(self):
    """Its column in a delta."""
    return "sparse_incr_" + self.name


# In the order of the C++ list (kernels/engine/embedding/table_tensors.cc), with the
# default rows first. To add a tensor, add an entry to both.
TABLE_TENSORS = (
    TableTensor("default_rows", tf.float32, [None, DIM], fixed=True, narrow=False),
    TableTensor("rounding", tf.int64, [2], fixed=False, narrow=True),
)

DEFAULT_ROWS = TABLE_TENSORS[0]


def table_tensors(value_dtype):
  """Returns those of `TABLE_TENSORS` that a table with such values has."""
  return [t for t in TABLE_TENSORS if not t.narrow or value_dtype != tf.float32]


# Columns of a delta.
DELTA_KEYS = "sparse_incr_keys"
DELTA_VALUES = "sparse_incr_values"
DELTA_VERSIONS = "sparse_incr_versions"
DELTA_FREQS = "sparse_incr_freqs"
DELTA_OFFSETS = "incr_partition_offset"
DELTA_ERASED_KEYS = "sparse_incr_erased_keys"
DELTA_REPLACES = "sparse_incr_replaces"
DELTA_KEYS_FILTERED = "sparse_incr_keys_filtered"
DELTA_VERSIONS_FILTERED = "sparse_incr_versions_filtered"
DELTA_FREQS_FILTERED = "sparse_incr_freqs_filtered"
DELTA_PLACEMENT = "sparse_incr_placement"

# A table's columns in a delta; a slot has the first five.
DELTA_COLUMNS = (DELTA_KEYS, DELTA_VALUES, DELTA_VERSIONS, DELTA_FREQS, DELTA_OFFSETS,
                 DELTA_ERASED_KEYS, DELTA_REPLACES, DELTA_KEYS_FILTERED,
                 DELTA_VERSIONS_FILTERED, DELTA_FREQS_FILTERED) + tuple(
                     t.delta for t in TABLE_TENSORS)

_PART = re.compile(r"^(.*)/part_(\d+)$")


def tensor(table, column):
  """Returns the name of a tensor, of a table or part (or of what `slot` returns)."""
  return "%s-%s" % (table, column)


def slot(table, slot_name):
  """Returns the name prefix of a slot's tensors."""
  return "%s/%s" % (table, slot_name)


def part(table, number):
  """Returns the name prefix of a part's tensors, which is also the part's name."""
  return "%s/part_%d" % (table, number)


def split_part(name):
  """Returns (table, number) of the name of a part; (name, None) of any other name."""
  match = _PART.match(name)
  return (match.group(1), int(match.group(2))) if match else (name, None)


def without_column(name, column):
  """Returns a tensor's name without the column's suffix, or None for other columns."""
  suffix = "-" + column
  return name[:-len(suffix)] if name.endswith(suffix) else None
