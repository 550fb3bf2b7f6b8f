# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes string tensors of bytes that another library has stored."""

from embedding_variable import _lib

_gen = _lib.load()


def split_bytes(bytes_, offsets, name=None):
  """Cuts bytes to strings, as Arrow stores a column of strings.

  Makes no Python objects; the cost is a copy of each string.

  Args:
    bytes_: uint8 `[B]`, the bytes of all strings, one after the other.
    offsets: int32 `[N + 1]`, not decreasing: string k has the bytes from
      `offsets[k] - offsets[0]` to `offsets[k + 1] - offsets[0]`.
    name: name of the op.

  Returns:
    string `[N]`.

  Raises:
    InvalidArgumentError: when it runs, if offsets decrease or end after the bytes.
  """
  return _gen.ev_split_bytes(bytes_, offsets, name=name)
