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
import sys
import threading

from embedding_variable.feature_column import categorical

_ATTRIBUTE = "_embedding_variable_group"

# .names: the entered scopes, innermost last.
_scopes = threading.local()


class _Scope(object):
  """An entered scope, which counts the columns created in it."""

  def __init__(self, name, most):
    self._name = name
    self._most = most
    self._count = 0

  def next_group(self):
    """Returns the group of the next column: the scope's name, or its n-th part."""
    part, self._count = self._count // self._most, self._count + 1
    return (self._name, part) if part else self._name


# Name of the scopes without one, which are one group.
_UNNAMED = "group_embedding_columns"


@contextlib.contextmanager
def group_embedding_column_scope(name=None, params_num_per_group=sys.maxsize):
  """Context in which new embedding columns belong to a group.

  Args:
    name: string; scopes with the same name are one group, and so are all scopes without
      a name. The innermost scope applies.
    params_num_per_group: int >= 1, most columns that are looked up by one op: the
      scope's columns form several groups of so many.

  Raises:
    ValueError: `name` is not a string, or is empty, or the number is below 1.
  """
  name = _UNNAMED if name is None else name
  if params_num_per_group < 1:
    raise ValueError("group_embedding_column_scope: params_num_per_group: expected at least "
                     "1, got %r" % (params_num_per_group,))
  if not isinstance(name, str) or not name:
    raise ValueError("group_embedding_column_scope: name: expected a string of at least "
                     "one character, got %r" % (name,))
  outer = getattr(_scopes, "names", ())
  _scopes.names = outer + (_Scope(name, params_num_per_group),)
  try:
    yield
  finally:
    _scopes.names = outer


def mark(column):
  """Adds a newly created embedding column to the group of the current scope."""
  names = getattr(_scopes, "names", ())
  if names:
    # Columns are tuples compared by value, which the group must not change.
    setattr(column, _ATTRIBUTE, names[-1].next_group())


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
