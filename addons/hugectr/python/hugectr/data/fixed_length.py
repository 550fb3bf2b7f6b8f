# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Slots with the same number of keys in every sample, stored side by side.

The readers of formats with one key per slot read each key as a slot of its own; the
keys of a slot are then joined.
"""

import numpy as np

from hugectr.data import batches


def counts_of(data):
  """Returns the number of keys that a sample has in each slot, a list of ints.

  It is 1 except in sparse inputs with `nnz_per_slot` and `is_fixed_length`.

  Args:
    data: config's Data.
  """
  clauses = {c["top"]: c for c in data.clause.get("sparse", ())}
  found = []
  for part in data.sparse:
    clause = clauses.get(part.top, {})
    each = clause.get("nnz_per_slot", 1) if clause.get("is_fixed_length") else 1
    found += each if isinstance(each, list) else [each] * part.slot_num
  return found


def stored(data, counts):
  """Returns a config's Data whose slots have one key each.

  Args:
    data: config's Data.
    counts: result of `counts_of`.
  """
  sparse, at = [], 0
  for part in data.sparse:
    end = part.first_slot + part.slot_num
    keys = sum(counts[part.first_slot:end])
    sparse.append(part._replace(first_slot=at, slot_num=keys))
    at += keys
  return data._replace(sparse=sparse)


def stored_layouts(layouts, counts):
  """Returns, for each layout, a list of layouts of the stored slots.

  Keys of a sample-major input come by one of them; those of a slot-major input by one per
  slot.
  """
  first = np.cumsum([0] + counts)
  found = []
  for layout in layouts:
    slots = range(layout.first, layout.first + layout.count)
    parts = ([(s, s + 1) for s in slots] if layout.is_slot_major else
             [(layout.first, layout.first + layout.count)])
    found.append([batches.InputLayout(int(first[a]), int(first[b] - first[a]), False)
                  for a, b in parts])
  return found


class Reader(object):
  """Returns the batches of a reader of stored slots, with the keys of each slot joined.

  Args:
    reader: a reader opened with the layouts of `stored_layouts`, one after another.
    layouts: list of batches.InputLayout.
    counts: result of `counts_of`.
  """

  def __init__(self, reader, layouts, counts):
    self._reader = reader
    self._layouts = layouts
    self._counts = [np.array(counts[l.first:l.first + l.count], np.int64) for l in layouts]

  @property
  def waits(self):
    """int, number of `next` calls that had to wait for a batch."""
    return self._reader.waits

  def next(self):
    """Returns the next Batch, or None at the end of the data; raises DataError."""
    batch = self._reader.next()
    if batch is None:
      return None
    inputs, left = [], list(batch.inputs)
    for layout, counts in zip(self._layouts, self._counts):
      if layout.is_slot_major:
        mine, left = left[:layout.count], left[layout.count:]
        inputs.append(batches.Keys(np.concatenate([k for k, _ in mine]),
                                   np.outer(counts, np.arange(batch.size + 1))))
        continue
      ends = np.zeros([batch.size * layout.count + 1], np.int64)
      np.cumsum(np.tile(counts, batch.size), out=ends[1:])
      inputs.append(batches.Keys(left.pop(0).keys, ends))
    return batch._replace(inputs=inputs)

  def close(self):
    """Stops the reader."""
    self._reader.close()
