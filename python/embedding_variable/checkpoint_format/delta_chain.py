# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The files of incremental checkpoints, and the chain that they form.

The deltas of a full checkpoint `dir/model.ckpt-100` are

  dir/.incremental_checkpoint/model.ckpt-100-<id>-00001, -00002, ...

each a stock V2 checkpoint. <id> is the first eight hexadecimal digits of the SHA-256 of
the full checkpoint's index file. That file holds the checksums of all tensors, so a
checkpoint that is saved again under the same name gets other deltas. Every delta has a
string tensor `incremental_checkpoint` (JSON) with the names and the SHA-256 of the
index files of the full checkpoint and of the previous delta.
"""

import collections
import hashlib
import json
import os
import re

import tensorflow as tf

from . import bundle_reader
from . import interrupted

DIRECTORY = ".incremental_checkpoint"
INFO = "incremental_checkpoint"

# prefix: string. identity: string, SHA-256 of its index.
Link = collections.namedtuple("Link", ["prefix", "identity"])


def identity(prefix):
  """Returns the identity of a checkpoint: the SHA-256 of its index file."""
  with tf.io.gfile.GFile(interrupted.index_of(prefix), "rb") as f:
    return hashlib.sha256(f.read()).hexdigest()


def delta_prefix(full, sequence):
  """Returns the prefix of a full checkpoint's delta; sequence counts from 1.

  Args:
    full: `Link`.
    sequence: int.
  """
  directory, name = os.path.split(full.prefix)
  return os.path.join(directory, DIRECTORY,
                      "%s-%s-%05d" % (name, full.identity[:8], sequence))


def info(full, previous, sequence, global_step):
  """Returns the JSON of a delta's `incremental_checkpoint`.

  Args:
    full: `Link` of the full checkpoint.
    previous: `Link` of the previous delta, or None for the first.
    sequence: int.
    global_step: int or None.
  """
  return json.dumps({
      "full": os.path.basename(full.prefix),
      "full_sha256": full.identity,
      "previous": os.path.basename(previous.prefix) if previous else "",
      "previous_sha256": previous.identity if previous else "",
      "sequence": sequence,
      "global_step": None if global_step is None else int(global_step),
  }, sort_keys=True)


def is_newest(full_prefix):
  """Returns whether a full checkpoint is the last one saved to its folder."""
  try:
    state = tf.train.get_checkpoint_state(os.path.dirname(full_prefix))
  except UnicodeDecodeError:
    # Stock code treats an undecodable file as no state.
    state = None
  return state is None or (os.path.basename(state.model_checkpoint_path) ==
                           os.path.basename(full_prefix))


def find(full_prefix, may_write=True):
  """Checks a full checkpoint's deltas and returns their `Link`s, in order.

  Reads every tensor of every delta, which verifies its checksum.

  Args:
    full_prefix: string, of a checkpoint that exists.
    may_write: bool; False: do not finish an interrupted replacement, but read it
      through links (`interrupted.readable`).

  Raises:
    tf.errors.DataLossError: a delta is missing or damaged; the message names it.
  """
  full = Link(full_prefix, identity(full_prefix))
  found = _sequences(full)
  links = []
  for sequence in range(1, max(found) + 1 if found else 1):
    prefix = delta_prefix(full, sequence)
    previous = links[-1] if links else None
    if sequence not in found:
      raise _lost(full, prefix, sequence, "is missing, but %s continues it" %
                  delta_prefix(full, max(found)))
    try:
      readable = (interrupted.finished if may_write else interrupted.readable)(prefix)
      check(readable, json.loads(info(full, previous, sequence, None)))
      links.append(Link(readable, identity(prefix)))
    except tf.errors.OpError as e:
      raise _lost(full, prefix, sequence, "cannot be read: %s" % e.message)
    except ValueError as e:
      raise _lost(full, prefix, sequence, str(e))
  return links


def count(full_prefix):
  """Returns the number of a full checkpoint's deltas, without reading them."""
  return len(_sequences(Link(full_prefix, identity(full_prefix))))


def _sequences(full):
  """Returns the set of the numbers of a full checkpoint's deltas."""
  directory, name = os.path.split(delta_prefix(full, 0))
  if not tf.io.gfile.isdir(directory):
    return set()
  pattern = re.compile(re.escape(name[:-5]) + r"(\d{5,})\.index$")
  matches = [pattern.match(f) for f in tf.io.gfile.listdir(directory)]
  return {int(m.group(1)) for m in matches if m}


def _lost(full, prefix, sequence, why):
  before = "the full checkpoint %s" % full.prefix
  if sequence > 1:
    before += " and its first %d incremental checkpoints" % (sequence - 1)
  return tf.errors.DataLossError(
      None, None,
      "incremental checkpoint %s %s. Remove it and those that continue it to restore %s"
      % (prefix, why, before))


def check(prefix, expected):
  """Reads all of a delta and compares what it continues.

  Args:
    prefix: string, the delta's prefix.
    expected: dict, the content of `info`; its step is not compared.

  Returns:
    TensorFlow's checkpoint reader of the delta.

  Raises:
    tf.errors.OpError: a file is missing or damaged.
    ValueError: it continues something else.
  """
  reader = bundle_reader.open_bundle(prefix)
  names, _ = bundle_reader.maps(reader)
  if INFO not in names:
    raise ValueError("has no tensor %s" % INFO)
  got = read_info(reader)
  for key in ("full_sha256", "previous_sha256", "sequence"):
    if got.get(key) != expected[key]:
      raise ValueError(
          "continues something else: %s is %s, expected %s (of %s)" %
          (key, got.get(key), expected[key], expected["previous"] or expected["full"]))
  for name in sorted(names):
    reader.get_tensor(name)
  return reader


def read_info(reader):
  """Returns the content of a delta's `incremental_checkpoint`, a dict; see `info`.

  Args:
    reader: TensorFlow's checkpoint reader of the delta.

  Raises:
    ValueError: it is not a JSON object.
  """
  got = json.loads(reader.get_tensor(INFO).decode())
  if not isinstance(got, dict):
    raise ValueError("tensor %s holds no JSON object" % INFO)
  return got
