# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds and reads the records of Norm files, many at a time.

A record is, without the checksum's frame, a sequence of 4-byte words: labels, dense
features, then per slot the number of its keys and the keys (1 word each, or 2). Where a
record ends follows from the numbers in it, so records seem to be readable only one after
the other. Instead, for every word of a block the word is computed at which the next slot
would begin, if a slot began there (`_jumps`). A jump over all slots is that jump repeated,
by repeated squaring, and the chain of records is enumerated by doubling. Each step is one
gather of NumPy over a block that fits the processor's cache. Where all records of a block
have the numbers of keys of its first, as one-hot data has, they are at equal distances.
"""

import numpy as np

from hugectr.data import batches


class RecordError(ValueError):
  """A record is malformed.

  Attributes:
    record: int, its number in the block.
    word: int, where in the block.
  """

  def __init__(self, record, word, sentence):
    super(RecordError, self).__init__(sentence)
    self.record = record
    self.word = word


def _jumps(words, key_words):
  """Returns for every word where the next slot begins if one begins there.

  int32 `[N + 2]`: N + 1 stands for a place behind the block, or a negative number of keys.
  """
  n = len(words)
  ends = words.astype(np.int64)
  ends *= key_words
  ends += np.arange(1, n + 1)
  ends[(ends > n) | (words < 0)] = n + 1
  return np.concatenate([ends.astype(np.int32), np.full([2], n + 1, np.int32)])


def _repeated(jump, times):
  """Returns a jump done `times` times."""
  result = np.arange(len(jump), dtype=np.int32)
  while times:
    if times & 1:
      result = jump.take(result)
    times >>= 1
    if times:
      jump = jump.take(jump)
  return result


def _uniform(words, fixed, slots, key_words):
  """Returns the words of a record if all of the block are like the first, else 0."""
  place, places = fixed, []
  for _ in range(slots):
    if place >= len(words) or words[place] < 0:
      return 0
    places.append(place)
    place += 1 + int(words[place]) * key_words
  if place > len(words):
    return 0
  records = words[:len(words) // place * place].reshape([-1, place])
  counts = records[:, places]
  return place if (counts == counts[0]).all() else 0


def starts(words, fixed, slots, key_words, most):
  """Returns where the block's whole records begin, and where the last one ends.

  Args:
    words: int32 `[N]`, a block that begins with a record.
    fixed: int, words before the first slot.
    slots: int of at least 1.
    key_words: 1 or 2.
    most: int, records at most.

  Returns:
    int64 `[R + 1]`, R at most `most`.
  """
  n = len(words)
  stride = _uniform(words, fixed, slots, key_words)
  if stride:
    return np.arange(min(n // stride, most) + 1, dtype=np.int64) * stride
  over = _repeated(_jumps(words, key_words), slots)
  record = np.full([n + 2], n + 1, np.int32)
  record[:max(0, n + 1 - fixed)] = over[fixed:n + 1]
  # As many as are whole, by doubling.
  chain = np.zeros([1], np.int32)
  while chain[-1] < n and len(chain) <= most:
    more = record.take(chain)
    chain = np.concatenate([chain, more])
    record = record.take(record)
  chain = chain[:most + 1]
  return chain[chain <= n].astype(np.int64)


def _read_uniform(words, begins, label_dim, dense_dim, slots, key_words):
  """Returns records that all have the first one's numbers of keys, else None.

  Columns of a matrix are copied: several times as fast as gathers.
  """
  stride = int(begins[1] - begins[0])
  if (np.diff(begins) != stride).any():
    return None
  block = words[begins[0]:begins[-1]]
  if _uniform(block, label_dim + dense_dim, slots, key_words) != stride:
    return None
  table = block.reshape([-1, stride])
  floats = table.view(np.float32)
  place, found = label_dim + dense_dim, []
  for _ in range(slots):
    count = int(table[0, place])
    end = place + 1 + count * key_words
    part = np.ascontiguousarray(table[:, place + 1:end])
    if key_words == 2:
      keys = part.view(np.int64).ravel()
    else:
      keys = part.view(np.uint32).astype(np.int64).ravel()
    offsets = None if count == 1 else np.arange(len(table) + 1, dtype=np.int64) * count
    found.append(batches.Slot(keys, offsets))
    place = end
  return batches.Chunk(np.ascontiguousarray(floats[:, :label_dim]),
                       np.ascontiguousarray(floats[:, label_dim:label_dim + dense_dim]),
                       found)


def read(words, begins, label_dim, dense_dim, slots, key_words):
  """Returns records as a Chunk.

  Args:
    words: int32 `[N]`.
    begins: int64 `[R + 1]`, where records begin, and the last one ends.
    label_dim: int.
    dense_dim: int.
    slots: int.
    key_words: 1 or 2.

  Raises:
    RecordError: numbers of keys that do not fit a record.
  """
  uniform = _read_uniform(words, begins, label_dim, dense_dim, slots, key_words)
  if uniform is not None:
    return uniform
  first, end = begins[:-1], begins[1:]
  short = end - first < label_dim + dense_dim + slots
  if short.any():
    at = int(np.argmax(short))
    raise RecordError(at, int(first[at]), "the record has %d bytes, which is too short" %
                      (4 * (end[at] - first[at])))
  floats = words.view(np.float32)
  labels = floats[first[:, None] + np.arange(label_dim)]
  place = first + label_dim
  dense = floats[place[:, None] + np.arange(dense_dim)]
  place = place + dense_dim
  found = []
  for s in range(slots):
    # A malformed number of keys before may have led to the end.
    counts = words[np.minimum(place, len(words) - 1)].astype(np.int64)
    after = place + 1 + counts * key_words
    wrong = (counts < 0) | (after > end - (slots - 1 - s)) | (place >= end)
    if wrong.any():
      at = int(np.argmax(wrong))
      raise RecordError(at, int(place[at]), "slot %d has %d keys, which the record has no "
                        "room for" % (s, counts[at]))
    found.append(_slot(words, place + 1, counts, key_words))
    place = after
  wrong = place != end
  if wrong.any():
    at = int(np.argmax(wrong))
    raise RecordError(at, int(place[at]), "%d bytes follow the last slot of the record" %
                      (4 * (end[at] - place[at])))
  return batches.Chunk(labels, dense, found)


def _slot(words, place, counts, key_words):
  offsets = None
  if not (counts == 1).all():
    offsets = np.zeros([len(counts) + 1], np.int64)
    np.cumsum(counts, out=offsets[1:])
    total = int(offsets[-1])
    place = np.repeat(place - offsets[:-1] * key_words, counts) + (
        np.arange(total) * key_words)
  keys = words.view(np.uint32)[place].astype(np.int64)
  if key_words == 2:
    keys |= words[place + 1].astype(np.int64) << 32
  return batches.Slot(keys, offsets)


def framed(data, most):
  """Returns (payload words, begins, bytes used) of records with length and checksum.

  Args:
    data: uint8 `[N]`, a block that begins with a record.
    most: int, records at most.

  Returns:
    int32 words of the whole records' payloads, int64 `[R + 1]` where they begin, and how
    many bytes of the block they are.

  Raises:
    RecordError: a length that cannot be, or a wrong checksum; `word` counts bytes.
  """
  view, at, firsts, lengths = memoryview(data), 0, [], []
  while len(firsts) < most and at + 4 <= len(data):
    length = int.from_bytes(view[at:at + 4], "little", signed=True)
    if length < 0 or length % 4:
      raise RecordError(len(firsts), at, "the record's length is %d" % length)
    if at + 5 + length > len(data):
      break
    firsts.append(at + 4)
    lengths.append(length)
    at += 5 + length
  firsts, lengths = np.array(firsts, np.int64), np.array(lengths, np.int64)
  begins = np.zeros([len(lengths) + 1], np.int64)
  np.cumsum(lengths // 4, out=begins[1:])
  if not len(lengths):
    return np.zeros([0], np.int32), begins, 0
  # Payloads and frames in turn; a frame is a checksum and the next length.
  bounds = np.stack([firsts, firsts + lengths], axis=1).ravel()
  keep = np.zeros([at], np.int8)
  keep[bounds[::2]] += 1
  keep[bounds[1::2]] -= 1
  payload = data[:at][np.cumsum(keep, dtype=np.int8).astype(bool)]
  sums = np.zeros([len(lengths)], np.uint8)
  full = lengths > 0
  if full.any():
    sums[full] = np.add.reduceat(payload, (begins[:-1] * 4)[full], dtype=np.uint8)
  wrong = sums != data[firsts + lengths]
  if wrong.any():
    bad = int(np.argmax(wrong))
    raise RecordError(bad, int(firsts[bad]), "the checksum is %d, and the record's bytes "
                      "sum up to %d" % (data[firsts[bad] + lengths[bad]], sums[bad]))
  return payload.view(np.int32), begins, at


def written(chunk, key_words, with_sums):
  """Returns the bytes of a chunk's records."""
  size = batches.size_of(chunk)
  counts = np.stack([np.ones([size], np.int64) if s.offsets is None else
                     np.diff(s.offsets) for s in chunk.slots], axis=1)
  fixed = chunk.labels.shape[1] + chunk.dense.shape[1]
  lengths = fixed + (1 + counts * key_words).sum(axis=1)
  begins = np.zeros([size + 1], np.int64)
  np.cumsum(lengths, out=begins[1:])
  words = np.empty([begins[-1]], np.int32)
  floats = np.concatenate([chunk.labels, chunk.dense], axis=1).astype(np.float32)
  words[begins[:-1, None] + np.arange(fixed)] = floats.view(np.int32)
  place = begins[:-1] + fixed
  for s, slot in enumerate(chunk.slots):
    words[place] = counts[:, s]
    offsets = np.cumsum(counts[:, s]) - counts[:, s]
    at = np.repeat(place + 1 - offsets * key_words, counts[:, s]) + (
        np.arange(len(slot.keys)) * key_words)
    words[at] = (slot.keys & 0xffffffff).astype(np.uint32).view(np.int32)
    if key_words == 2:
      words[at + 1] = slot.keys >> 32
    place = place + 1 + counts[:, s] * key_words
  if not with_sums:
    return words.tobytes()
  payload, out = words.view(np.uint8), []
  for first, end in zip(begins[:-1] * 4, begins[1:] * 4):
    record = payload[first:end]
    out.append(np.array([end - first], "<i4").tobytes() + record.tobytes() +
               bytes([int(record.sum(dtype=np.uint8))]))
  return b"".join(out)
