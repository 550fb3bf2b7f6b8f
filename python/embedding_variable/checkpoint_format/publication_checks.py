# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares the files of a publication with its `current.json` (publications.py)."""

import json
import os

import tensorflow as tf

from . import bundle_reader
from . import delta_chain
from . import errors
from . import publications
from . import tensor_names


def _check_files(what, top, entry):
  for name, expected in sorted(entry["files"].items()):
    path = os.path.join(top, name)
    if os.path.isabs(name) or ".." in name.split("/"):
      raise errors.CheckpointError("%s: the file name %r leaves the version" % (what, name))
    try:
      size = tf.io.gfile.stat(path).length
      if size != expected["bytes"]:
        raise errors.CheckpointError("%s is damaged: %s has %d bytes, expected %d" %
                                     (what, path, size, expected["bytes"]))
      if "sha256" in expected and publications.sha256(path) != expected["sha256"]:
        raise errors.CheckpointError("%s is damaged or another one: the SHA-256 of %s is "
                                     "not the one in %s" % (what, path, publications.CURRENT))
    except tf.errors.NotFoundError:
      raise errors.CheckpointError("%s is not complete: %s is missing" % (what, path))
    except tf.errors.OpError as e:
      raise errors.CheckpointError("%s cannot be read: %s" % (what, e.message))


def check_full(folder, state, with_tensors=False):
  """Compares the files of the current version with `current.json`.

  Args:
    folder: string.
    state: dict, the content of `current.json`.
    with_tensors: bool: also read every tensor, one at a time, and compare its checksum.

  Raises:
    CheckpointError: names the version and the file.
  """
  what = "version %d" % state["version"]
  _check_files(what, os.path.join(folder, str(state["version"])), state["full"])
  prefix = publications.stored_prefix(folder, state["version"])
  try:
    if delta_chain.identity(prefix) != state["full"]["sha256"]:
      raise errors.CheckpointError("%s: the SHA-256 of %s.index is not the one in %s" %
                                   (what, prefix, publications.CURRENT))
    if with_tensors:
      reader = bundle_reader.open_bundle(prefix)
      for name in sorted(bundle_reader.maps(reader)[0]):
        reader.get_tensor(name)
  except tf.errors.OpError as e:
    raise errors.CheckpointError("%s is damaged: %s" % (what, e.message))


def check_delta(folder, state, sequence):
  """Reads a delta, compares checksums, what it continues, tables and shapes.

  Args:
    folder: string.
    state: dict, the content of `current.json`.
    sequence: int, counts from 1.

  Returns:
    The delta's prefix.

  Raises:
    CheckpointError: names the version, the delta and its file.
  """
  version, entries = state["version"], state["deltas"]
  prefix = publications.delta_prefix(folder, state, sequence)
  what = "delta %d of version %d (%s)" % (sequence, version, prefix)
  full = delta_chain.Link(publications.chain_prefix(folder, version), state["full"]["sha256"])
  previous = None
  if sequence > 1:
    previous = delta_chain.Link(delta_chain.delta_prefix(full, sequence - 1),
                                entries[sequence - 2]["sha256"])
  try:
    identity = delta_chain.identity(prefix)
    if identity != entries[sequence - 1]["sha256"]:
      raise errors.CheckpointError(
          "%s is damaged or another one: its index has the SHA-256 %s, expected %s of %s" %
          (what, identity[:8], entries[sequence - 1]["sha256"][:8], publications.CURRENT))
    _check_files(what, os.path.join(folder, str(version)), entries[sequence - 1])
    reader = delta_chain.check(
        prefix, json.loads(delta_chain.info(full, previous, sequence, None)))
    stored = bundle_reader.open_bundle(publications.stored_prefix(folder, version))
  except tf.errors.NotFoundError as e:
    raise errors.CheckpointError("%s is missing: %s" % (what, e.message))
  except tf.errors.OpError as e:
    raise errors.CheckpointError("%s is damaged: %s" % (what, e.message))
  except errors.CheckpointError:
    raise
  except ValueError as e:
    raise errors.CheckpointError("%s %s" % (what, e))
  _check_fits(what, reader, stored)
  return prefix


def _check_fits(what, delta, full):
  """Raises unless a delta has the tables and other tensors of its full version."""
  (shapes, types), (new_shapes, new_types) = map(bundle_reader.maps, (full, delta))
  keyed = [name for name in (tensor_names.without_column(n, tensor_names.KEYS) for n in shapes)
           if name is not None]
  tables = [t for t in keyed if tensor_names.tensor(t, tensor_names.OFFSETS) in shapes]
  # TensorFlow's mutable hash tables, whose size changes.
  growing = {tensor_names.tensor(t, c) for t in set(keyed) - set(tables)
             for c in (tensor_names.KEYS, tensor_names.VALUES)}
  columns = [c.name for c in tensor_names.COLUMNS] + [t.name for t in tensor_names.TABLE_TENSORS]
  of_tables = {tensor_names.tensor(t, c) for t in tables for c in columns}
  pairs = [(tensor_names.tensor(t, old), tensor_names.tensor(t, new), 1) for t in tables
           for old, new in ((tensor_names.KEYS, tensor_names.DELTA_KEYS),
                            (tensor_names.VALUES, tensor_names.DELTA_VALUES))]
  pairs += [(name, name, int(name in growing)) for name in shapes if name not in of_tables]
  for old, new, first in sorted(pairs):
    if new not in new_shapes:
      raise errors.CheckpointError("%s has no tensor %s" % (what, new))
    if (new_shapes[new][first:], new_types[new]) != (shapes[old][first:], types[old]):
      raise errors.CheckpointError(
          "%s: tensor %s has type %s and shape %s, expected type %s and shape %s of %s" %
          (what, new, new_types[new].name, new_shapes[new], types[old].name, shapes[old], old))
