# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Creates checkpoints for the tools' tests, without using the tools."""

import collections
import os
import struct

import numpy as np
import tensorflow as tf

from embedding_variable.checkpoint_format import delta_chain
from embedding_variable.checkpoint_format import tensor_names

_BUCKETS = 1000


def write(prefix, tensors):
  """Writes a stock V2 checkpoint of NumPy arrays by name."""
  with tf.Graph().as_default(), tf.Session() as session:
    names = sorted(tensors)
    session.run(tf.raw_ops.SaveV2(
        prefix=prefix, tensor_names=names, shape_and_slices=[""] * len(names),
        tensors=[tf.constant(tensors[n]) for n in names]))
  return prefix


def table(prefix, keys, values, versions=None, freqs=None, filtered=(), slots=None,
          defaults=None):
  """Returns the tensors of a table with DeepRec's names.

  Args:
    prefix: string.
    keys: list of ints.
    values: list of lists of floats, one for each key.
    versions, freqs: list of ints, or None: not recorded.
    filtered: list of (key, version, frequency) that were not admitted.
    slots: dict: slot -> list of rows.
    defaults: list of rows, or None as in DeepRec's own files.
  """
  keys = np.array(keys, np.int64)
  order = np.lexsort((keys, keys % _BUCKETS))
  filtered = sorted(filtered, key=lambda f: (f[0] % _BUCKETS, f[0]))

  def offsets(some_keys):
    counts = np.bincount(np.array(some_keys, np.int64) % _BUCKETS, minlength=_BUCKETS)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)

  def meta(numbers):
    return np.array([] if numbers is None else numbers, np.int64)

  tensors = collections.OrderedDict()
  rows = [(prefix, values)]
  rows += [(tensor_names.slot(prefix, s), v) for s, v in (slots or {}).items()]
  for name, row_values in rows:
    versions_and_freqs = [
        numbers[order] if len(numbers) else numbers
        for numbers in (meta(versions), meta(freqs))
    ]
    columns = [keys[order], np.array(row_values, np.float32)[order]]
    columns += versions_and_freqs + [offsets(keys)]
    columns += [meta([f[i] for f in filtered]) for i in range(3)]
    columns.append(offsets([f[0] for f in filtered]))
    for column, array in zip(tensor_names.COLUMNS, columns):
      tensors[tensor_names.tensor(name, column.name)] = array
  if defaults is not None:
    name = tensor_names.tensor(prefix, tensor_names.DEFAULT_ROWS.name)
    tensors[name] = np.array(defaults, np.float32)
  return tensors


def write_chain(prefix, name, parts, placement):
  """Writes the files that ranks save together: a table's full checkpoint and its
  deltas.

  Args:
    prefix: string.
    name: string, the table's.
    parts: for the full checkpoint, and then for each delta, a list of dicts, one per
      rank: arguments of `table`, of `delta` for deltas.
    placement: list of ranks; key k is on rank placement[k % len(placement)].
  """
  dim = len(parts[0][0]["values"][0])
  tensors = {}
  for rank, part in enumerate(parts[0]):
    tensors.update(table(tensor_names.part(name, rank), defaults=[[9.] * dim], **part))
  write(prefix, tensors)
  full = delta_chain.Link(prefix, delta_chain.identity(prefix))
  previous = None
  for sequence, ranks in enumerate(parts[1:], 1):
    tensors = {
        tensor_names.tensor(name, tensor_names.DELTA_PLACEMENT):
            np.array(placement, np.int64),
        delta_chain.INFO: np.array(
            delta_chain.info(full, previous, sequence, sequence).encode()),
    }
    for rank, part in enumerate(ranks):
      tensors.update(delta(tensor_names.part(name, rank), dim=dim, **part))
    path = delta_chain.delta_prefix(full, sequence)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write(path, tensors)
    previous = delta_chain.Link(path, delta_chain.identity(path))


def delta(prefix, keys, values, dim, erased=(), replaces=False, filtered=(),
          defaults=None):
  """Returns the tensors of an incremental checkpoint for a table or part.

  Args:
    prefix: string.
    keys, values: as for `table`, the changed rows.
    dim: length of a row.
    erased: list of keys.
    replaces: bool.
    filtered: as for `table`.
    defaults: list of rows, or None.
  """
  keys, count = np.array(keys, np.int64), len(filtered)
  columns = [
      (tensor_names.DELTA_KEYS, keys),
      (tensor_names.DELTA_VALUES, np.array(values, np.float32).reshape([-1, dim])),
      (tensor_names.DELTA_VERSIONS, np.zeros([0], np.int64)),
      (tensor_names.DELTA_FREQS, np.zeros([0], np.int64)),
      (tensor_names.DELTA_ERASED_KEYS, np.array(erased, np.int64)),
      (tensor_names.DELTA_REPLACES, np.array([replaces], np.int64)),
      (tensor_names.DEFAULT_ROWS.delta,
       np.array([] if defaults is None else defaults, np.float32).reshape([-1, dim])),
  ]
  columns += [(c, np.array([f[i] for f in filtered], np.int64).reshape([count]))
              for i, c in enumerate((tensor_names.DELTA_KEYS_FILTERED,
                                     tensor_names.DELTA_VERSIONS_FILTERED,
                                     tensor_names.DELTA_FREQS_FILTERED))]
  return {tensor_names.tensor(prefix, column): array for column, array in columns}


def write_claiming(prefix, tensors, claims):
  """Writes a V2 checkpoint whose index claims larger tensors, with valid checksums.

  Args:
    prefix: string.
    tensors: dict: name -> NumPy array of int64 or float32, as for `write`.
    claims: dict: name -> shape of the tensor in the index.
  """
  data, entries = b"", {}
  for name in sorted(tensors):
    array = np.asarray(tensors[name])
    stored = array.tobytes()
    dims = b"".join(
        _field(2, _field(1, int(size))) for size in claims.get(name, array.shape))
    entries[name.encode()] = (
        _field(1, tf.as_dtype(array.dtype).as_datatype_enum) + _field(2, dims) +
        _field(4, len(data)) + _field(5, len(stored)) + b"\x35" +
        _masked_crc32c(stored))
    data += stored
  # Header: one data file, little endian, version 1.
  entries[b""] = _field(1, 1) + _field(3, _field(1, 1))
  index, handles = b"", []
  for pairs in (entries, {}):
    handles.append(_varint(len(index)))
    block = _block(pairs)
    handles[-1] += _varint(len(block) - 5)
    index += block
  top = _block({max(entries): handles[0]})
  footer = handles[1] + _varint(len(index)) + _varint(len(top) - 5)
  index += top + footer.ljust(40, b"\0") + struct.pack("<Q", 0xdb4775248b80fb57)
  for suffix, content in ((".index", index), (".data-00000-of-00001", data)):
    with open(prefix + suffix, "wb") as f:
      f.write(content)


def _varint(number):
  """Encodes a number as in protocol buffers and tables."""
  digits = b""
  while number >= 128:
    digits += bytes([number % 128 + 128])
    number //= 128
  return digits + bytes([number])


def _field(tag, value):
  """Encodes a field of a protocol buffer: an int, or bytes."""
  if isinstance(value, bytes):
    return _varint(tag * 8 + 2) + _varint(len(value)) + value
  return _varint(tag * 8) + _varint(value)


def _block(pairs):
  """Encodes a block of a table, including its checksum."""
  block = b"".join(
      _varint(0) + _varint(len(k)) + _varint(len(v)) + k + v
      for k, v in sorted(pairs.items()))
  block += struct.pack("<II", 0, 1) + b"\0"  # one restart; not compressed
  return block + _masked_crc32c(block)


def _masked_crc32c(content):
  """Returns the four checksum bytes as in TensorFlow's files."""
  crc = 0xffffffff
  for byte in content:
    crc ^= byte
    for _ in range(8):
      crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
  crc ^= 0xffffffff
  return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff)


def read(prefix):
  """Returns all tensors of a checkpoint by name, through stock TensorFlow."""
  reader = tf.train.load_checkpoint(prefix)
  return {n: reader.get_tensor(n) for n in reader.get_variable_to_shape_map()}


def files(directory):
  """Returns the names of all files under a directory."""
  return sorted(os.path.join(d, n) for d, _, names in os.walk(directory) for n in names)
