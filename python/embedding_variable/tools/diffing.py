# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`diff`: the differences between two checkpoints."""

import numpy as np

from embedding_variable.checkpoint_format import checkpoint_tables
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.tools import progress

_NAMED_KEYS = 5


def text(first, second):
  """Compares bit by bit, by variable and key, regardless of order and parts.

  Args:
    first, second: `Checkpoint`s.

  Returns:
    A report; empty if they are equal.
  """
  names = sorted(set(first.tables) | set(second.tables))
  others = sorted(set(first.others) | set(second.others))
  lines = []
  with progress.Progress("diff", len(names) + len(others)) as bar:
    for name in names:
      bar.add(1, name)
      a, b = first.tables.get(name), second.tables.get(name)
      if a is None or b is None:
        lines.append("%s: only in the %s (%s rows)" % (
            name, "second" if a is None else "first",
            "{:,}".format((b if a is None else a).rows)))
      else:
        lines += ["%s: %s" % (name, line) for line in _diff_tables(a, b)]
    for name in others:
      bar.add(1, name)
      lines += _diff_tensors(first, second, name)
  return "".join(line + "\n" for line in lines)


def _some(keys):
  """Returns the number of keys and the first few."""
  named = ", ".join(str(k) for k in np.sort(keys)[:_NAMED_KEYS])
  return "{:,} ({}{})".format(len(keys), named,
                              ", ..." if len(keys) > _NAMED_KEYS else "")


def _same(a, b):
  """Returns bool `[N]`: rows with the same bits, also for NaNs."""
  a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
  equal = a.view(np.uint8) == b.view(np.uint8)
  row_bytes = int(np.prod(a.shape[1:])) * a.itemsize
  return equal.reshape([len(a), row_bytes]).all(axis=1)


def _largest(a, b):
  """Returns the largest difference of two arrays, as text."""
  with np.errstate(invalid="ignore"):
    return "%.6g" % np.max(np.abs(a.astype(np.float64) - b.astype(np.float64)))


def _diff_tables(a, b):
  """Yields lines about two tables with the same name."""
  if a.dim != b.dim:
    yield "dim %d and %d" % (a.dim, b.dim)
    return
  a_keys, b_keys = a.column(tensor_names.KEYS), b.column(tensor_names.KEYS)
  positions, found = checkpoint_tables.positions_of(a_keys, b_keys)
  _, in_a = checkpoint_tables.positions_of(b_keys, a_keys)
  for keys, where in ((a_keys[~found], "first"), (b_keys[~in_a], "second")):
    if len(keys):
      yield "rows only in the %s: %s" % (where, _some(keys))
  common, at = a_keys[found], positions[found]
  if set(a.slots) != set(b.slots):
    yield "slots %s and %s" % (", ".join(a.slots) or "none",
                               ", ".join(b.slots) or "none")
  columns = [("values", a.column(tensor_names.VALUES), b.column(tensor_names.VALUES))]
  columns += [(slot, a.slot_values(slot, a_keys), b.slot_values(slot, b_keys))
              for slot in a.slots if slot in b.slots]
  columns += [(what, a.column(column), b.column(column))
              for what, column in (("versions", tensor_names.VERSIONS),
                                   ("frequencies", tensor_names.FREQS))]
  for what, x, y in columns:
    if x is None or y is None:
      if (x is None) != (y is None):
        yield "%s only in the %s" % (what, "second" if x is None else "first")
      continue
    if x.shape[1:] != y.shape[1:]:
      yield "%s: rows of length %d and %d" % (what, x.shape[1], y.shape[1])
      continue
    x, y = x[found], y[at]
    changed = ~_same(x, y)
    if changed.any():
      yield "%s differ in %s rows of %s, at most by %s" % (
          what, _some(common[changed]), "{:,}".format(len(common)),
          _largest(x[changed], y[changed]))
  if set(_filtered(a)) != set(_filtered(b)):
    yield "keys that are not admitted yet: %d and %d" % (a.filtered, b.filtered)


def _filtered(table):
  keys = table.column(tensor_names.KEYS_FILTERED)
  return [] if keys is None else keys.tolist()


def _diff_tensors(first, second, name):
  """Yields a line if an ordinary tensor differs."""
  for other, which in ((second, "first"), (first, "second")):
    if name not in other.others:
      yield "%s: only in the %s" % (name, which)
      return
  kinds = [(c.dtype(name).name, c.shape(name)) for c in (first, second)]
  if kinds[0] != kinds[1]:
    yield "%s: %s %s and %s %s" % ((name,) + kinds[0] + kinds[1])
    return
  a, b = first.read(name), second.read(name)
  if isinstance(a, (bytes, str)) or a.dtype == object:
    if np.any(a != b):
      yield "%s: differs" % name
    return
  changed = np.count_nonzero(~_same(np.reshape(a, [-1, 1]), np.reshape(b, [-1, 1])))
  if changed:
    yield "%s: %s of %s numbers differ, at most by %s" % (
        name, "{:,}".format(changed), "{:,}".format(np.size(a)), _largest(a, b))
