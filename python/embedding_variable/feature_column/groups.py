# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`group_embedding_column_scope`: embedding columns that are looked up together.

  with tf.feature_column.group_embedding_column_scope(name="user"):
    a = tf.feature_column.embedding_column(...)
    b = tf.feature_column.embedding_column(...)

If one `input_layer` or `DenseFeatures` has several columns of a group, one op reads the
tables of all of them, as in `sok.lookup_sparse`. Values and variables are the same as
without a group.
"""

import contextlib
import threading

from embedding_variable.feature_column import categorical

_ATTRIBUTE = "_embedding_variable_group"

# .names: the names of the entered scopes, innermost last.
_scopes = threading.local()


@contextlib.contextmanager
def group_embedding_column_scope(name):
  """Context in which new embedding columns belong to a group.

  Args:
    name: string; scopes with the same name are one group. The innermost scope applies.

  Raises:
    ValueError: `name` is not a string, or is empty.
  """
  if not isinstance(name, str) or not name:
    raise ValueError("group_embedding_column_scope: name must be a string of at least "
                     "one character, got %r" % (name,))
  outer = getattr(_scopes, "names", ())
  _scopes.names = outer + (name,)
  try:
    yield
  finally:
    _scopes.names = outer


def mark(column):
  """Adds a newly created embedding column to the group of the current scope."""
  names = getattr(_scopes, "names", ())
  if names:
    # Columns are tuples compared by value, which the group must not change.
    setattr(column, _ATTRIBUTE, names[-1])


def members(column, columns):
  """Returns those of `columns` that are looked up together with `column`.

  Args:
    column: an embedding column.
    columns: list of the columns of a layer.

  Returns:
    A list that includes `column`, or an empty list if it is looked up alone. That is
      the case without a group or an embedding variable, and for rows that are clipped
      (`max_norm`), chosen by a mask (adaptive) or not pooled (sequences).
  """
  group = getattr(column, _ATTRIBUTE, None)
  if group is None or not _can_pool(column):
    return []
  found = [c for c in columns
           if getattr(c, _ATTRIBUTE, None) == group and _can_pool(c)]
  # Stock layers process columns by name, whatever the order of the user's list.
  return sorted(found, key=lambda c: c.name) if column in found else []


def _can_pool(column):
  table = categorical.find(column)
  return (table is not None and table.hash_bucket_size is None and
          column.max_norm is None and not categorical.is_sequence(column))
