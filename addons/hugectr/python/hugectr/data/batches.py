# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Samples in columns, and batches made of them."""

import collections

import numpy as np

# One slot of some samples. keys: int64. offsets: int64 [samples + 1], start of each
# sample's keys; None if each sample has one key. added: int, still to be added to the
# keys, which avoids an array; only native.Joiner supports values except 0 (see
# `plain`).
Slot = collections.namedtuple("Slot", ["keys", "offsets", "added"])
Slot.__new__.__defaults__ = (0,)

# Samples as stored in a file. labels: float32 [N, label_dim]. dense: float32 [N,
# dense_dim]. Either may be FloatColumns, which avoids a copy; only native.Joiner
# supports them (see `plain`). slots: list of Slot, one per slot of the data.
Chunk = collections.namedtuple("Chunk", ["labels", "dense", "slots"])

# first, count: range of the data's slots. is_slot_major: order of keys.
InputLayout = collections.namedtuple(
    "InputLayout", ["first", "count", "is_slot_major"])

# keys: int64 [N]. splits: int64. Slot-major: [slots, batch + 1]; row s has the start of
# each sample's keys within slot s. Otherwise [batch * slots + 1], sample by sample.
Keys = collections.namedtuple("Keys", ["keys", "splits"])

# size: number of samples. labels, dense: float32 [size, dim]. inputs: list of Keys.
# global_size: number of samples of all ranks together.
Batch = collections.namedtuple(
    "Batch", ["size", "labels", "dense", "inputs", "global_size"])


class FloatColumns(object):
  """Numbers of samples, stored by column.

  Args:
    columns: list of float32 [N].
    size: int, N.
  """

  def __init__(self, columns, size):
    self.columns = columns
    self._size = size

  def __len__(self):
    return self._size

  def __getitem__(self, rows):
    """Returns the samples of a slice, without copying."""
    first, end, _ = rows.indices(self._size)
    return FloatColumns([c[rows] for c in self.columns], max(0, end - first))

  def array(self):
    """Returns float32 [N, columns]."""
    out = np.empty([self._size, len(self.columns)], np.float32)
    for k, column in enumerate(self.columns):
      out[:, k] = column
    return out


def size_of(chunk):
  """Returns the number of samples."""
  return len(chunk.labels)


def part(chunk, first, end):
  """Returns samples [first, end) of a chunk, without copying."""
  slots = []
  for slot in chunk.slots:
    if slot.offsets is None:
      slots.append(Slot(slot.keys[first:end], None, slot.added))
    else:
      begin, last = slot.offsets[first], slot.offsets[end]
      slots.append(Slot(slot.keys[begin:last], slot.offsets[first:end + 1] - begin,
                        slot.added))
  return Chunk(chunk.labels[first:end], chunk.dense[first:end], slots)


def plain(chunk):
  """Returns a chunk with arrays only, and with offsets added to its keys."""
  return Chunk(*[f.array() if isinstance(f, FloatColumns) else f
                 for f in (chunk.labels, chunk.dense)],
               slots=[Slot(s.keys + s.added, s.offsets) if s.added else s
                      for s in chunk.slots])


def _joined_slot(slots):
  keys = np.concatenate([s.keys for s in slots])
  if all(s.offsets is None for s in slots):
    return Slot(keys, None)
  lengths = np.concatenate([_lengths(s) for s in slots])
  return Slot(keys, _offsets(lengths))


def _lengths(slot):
  if slot.offsets is None:
    return np.ones([len(slot.keys)], np.int64)
  return np.diff(slot.offsets)


def _offsets(lengths):
  out = np.zeros([lengths.size + 1], np.int64)
  np.cumsum(lengths.ravel(), out=out[1:])
  return out


def joined(chunks):
  """Concatenates chunks."""
  if len(chunks) == 1:
    return chunks[0]
  return Chunk(np.concatenate([c.labels for c in chunks]),
               np.concatenate([c.dense for c in chunks]),
               [_joined_slot(slots) for slots in zip(*(c.slots for c in chunks))])


def _slot_major(slots, size):
  keys = np.concatenate([s.keys for s in slots])
  splits = np.empty([len(slots), size + 1], np.int64)
  for row, slot in zip(splits, slots):
    row[:] = np.arange(size + 1) if slot.offsets is None else slot.offsets
  return Keys(keys, splits)


def _sample_major(slots, size):
  if all(s.offsets is None for s in slots):
    keys = np.stack([s.keys for s in slots], axis=1).ravel()
    return Keys(keys, np.arange(size * len(slots) + 1))
  lengths = np.stack([_lengths(s) for s in slots], axis=1)
  splits = _offsets(lengths)
  keys = np.empty([splits[-1]], np.int64)
  for k, slot in enumerate(slots):
    # Start of each sample's keys, then the position of each key within its sample.
    first = splits[k:-1:len(slots)]
    offsets = _offsets(lengths[:, k])
    keys[np.repeat(first - offsets[:-1], lengths[:, k]) + np.arange(len(slot.keys))] = (
        slot.keys)
  return Keys(keys, splits)


def batch_of(chunk, layouts, global_size):
  """Converts a chunk to a Batch.

  Args:
    chunk: Chunk.
    layouts: list of InputLayout, one per sparse input.
    global_size: int, samples of all ranks together.
  """
  size = size_of(chunk)
  inputs = []
  for layout in layouts:
    slots = chunk.slots[layout.first:layout.first + layout.count]
    order = _slot_major if layout.is_slot_major else _sample_major
    inputs.append(order(slots, size))
  return Batch(size, np.ascontiguousarray(chunk.labels),
               np.ascontiguousarray(chunk.dense), inputs, global_size)


def rank_range(size, rank, ranks):
  """Returns (first, end), the samples of a global batch that a rank reads.

  Shares differ by at most one sample, the larger ones first.
  """
  share, more = divmod(size, ranks)
  first = rank * share + min(rank, more)
  return first, first + share + (1 if rank < more else 0)


def cut(chunks, batch_size, rank=0, ranks=1):
  """Yields (list of Chunks of a rank's samples, samples of all ranks) for each batch.

  Args:
    chunks: iterable of Chunk.
    batch_size: int, samples of all ranks together. The last batch may have fewer.
    rank: int.
    ranks: int.
  """
  held, count = [], 0
  for chunk in chunks:
    at, end = 0, size_of(chunk)
    while at < end:
      take = min(end - at, batch_size - count)
      held.append((count, chunk, at, take))
      count += take
      at += take
      if count == batch_size:
        yield _of_rank(held, count, rank, ranks), count
        held, count = [], 0
  if count:
    yield _of_rank(held, count, rank, ranks), count


def _of_rank(held, count, rank, ranks):
  """Returns a rank's Chunks. held: list of (position in the batch, chunk, first, samples)."""
  low, high = rank_range(count, rank, ranks)
  pieces = []
  for place, chunk, first, take in held:
    begin, end = max(low, place), min(high, place + take)
    if begin < end:
      pieces.append(part(chunk, first + begin - place, first + end - place))
  return pieces or [part(held[0][1], 0, 0)]
