# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Incremental checkpoints ("deltas") that continue a full checkpoint.

The deltas of a full checkpoint `dir/m` are `dir/.incremental_checkpoint/m-<id>-00001`,
`-00002` and so on, in TensorFlow's V2 format. <id> is the start of the SHA-256 of the
full checkpoint's index file. A string tensor `incremental_checkpoint` (JSON) has the
whole SHA-256, that of the previous delta, and the delta's number. This module accepts
and rejects the same chains as the training side's `tf.train.Saver.restore`.
"""

import collections
import hashlib
import json
import os
import re

import tensorflow as tf

from hierarchical_parameter_server.convert import bundles

_FOLDER = ".incremental_checkpoint"
_INFO = "incremental_checkpoint"

# prefix: string. reader: TensorFlow's. info: dict, the content of `_INFO`.
Delta = collections.namedtuple("Delta", ["prefix", "reader", "info"])


def of_checkpoint(prefix):
  """Returns the `Delta`s that a restore of a checkpoint applies, in order.

  There are none if the folder's file `checkpoint` names another checkpoint as the
  newest: an older one is restored as it was saved. Reads every tensor of every delta,
  which verifies its checksum.

  Args:
    prefix: string, of a full checkpoint.

  Raises:
    ValueError: a delta is missing, damaged or continues another checkpoint; the message
      names it.
  """
  folder, name = os.path.split(prefix)
  newest = _newest(folder)
  if newest is not None and newest != name:
    return []
  identity = _identity(prefix)
  stem = "%s-%s-" % (name, identity[:8])
  numbers = _numbers(os.path.join(folder, _FOLDER), stem)
  found, previous = [], ""
  for number in range(1, max(numbers) + 1 if numbers else 1):
    path = os.path.join(folder, _FOLDER, "%s%05d" % (stem, number))
    wanted = {"full_sha256": identity, "previous_sha256": previous, "sequence": number}
    try:
      if number not in numbers:
        raise ValueError("is missing, but number %d continues it" % max(numbers))
      found.append(_checked(path, wanted))
    except tf.errors.OpError as e:
      raise ValueError(_refused(prefix, path, number, "cannot be read: %s" % e.message))
    except ValueError as e:
      raise ValueError(_refused(prefix, path, number, str(e)))
    previous = _identity(path)
  return found


def end_of(deltas):
  """Returns the step, or the number, of the last delta as text."""
  step = deltas[-1].info.get("global_step")
  return "its %d deltas" % len(deltas) if step is None else "its deltas to %s" % step


def _newest(folder):
  """Returns the name of a folder's newest checkpoint; None if it is not recorded."""
  try:
    state = tf.train.get_checkpoint_state(folder)
  except UnicodeDecodeError:
    state = None
  return state and os.path.basename(state.model_checkpoint_path)


def _identity(prefix):
  with tf.io.gfile.GFile(prefix + ".index", "rb") as f:
    return hashlib.sha256(f.read()).hexdigest()


def _numbers(folder, stem):
  """Returns the set of numbers of the deltas in a folder."""
  if not tf.io.gfile.isdir(folder):
    return set()
  pattern = re.compile(re.escape(stem) + r"(\d{5,})\.index$")
  matches = [pattern.match(f) for f in tf.io.gfile.listdir(folder)]
  return {int(m.group(1)) for m in matches if m}


def _checked(path, wanted):
  """Reads all of a delta and returns it; raises ValueError or OpError if it does not
  fit.
  """
  reader = bundles.open_bundle(path)
  names = reader.get_variable_to_shape_map()
  if _INFO not in names:
    raise ValueError("has no tensor %s" % _INFO)
  info = json.loads(reader.get_tensor(_INFO).decode())
  if not isinstance(info, dict):
    raise ValueError("tensor %s holds no JSON object" % _INFO)
  for key, value in sorted(wanted.items()):
    if info.get(key) != value:
      raise ValueError("continues something else: %s is %s, expected %s" %
                       (key, info.get(key), value))
  for name in sorted(names):
    reader.get_tensor(name)
  return Delta(path, reader, info)


def _refused(prefix, path, number, why):
  before = "the full checkpoint %s" % prefix
  if number > 1:
    before += " and its first %d incremental checkpoints" % (number - 1)
  return ("incremental checkpoint %s %s. Remove it and those that continue it to convert "
          "%s, or convert the full checkpoint alone (full_only=True, --full-only)" %
          (path, why, before))
