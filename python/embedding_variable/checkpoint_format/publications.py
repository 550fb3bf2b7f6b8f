# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The folder of a publication: versions of a SavedModel, their deltas, `current.json`.

  FOLDER/current.json
  FOLDER/3/saved_model.pb, assets/, variables/variables.index and .data-*
  FOLDER/3/.incremental_checkpoint/variables-<id>-00001.index and .data-*, -00002, ...

The deltas are those of delta_chain.py. They are not beside the SavedModel's own
checkpoint, so `tf.saved_model.load` restores the version as it was written.

`current.json` is replaced after everything that it names is on disk:

  {"format": 1, "version": 3, "step": 120, "time": "2026-01-31T12:00:00Z",
   "full": {"step": 100, "time": ..., "sha256": ..., "files": {...}},
   "deltas": [{"step": 120, "time": ..., "sha256": ..., "previous_sha256": "",
               "files": {...}}]}

`sha256` is that of the index file, which holds the checksums of all tensors. `files` has
the bytes of each file, and the SHA-256 of those that no index describes.
"""

import hashlib
import json
import os
import time

import tensorflow as tf

from . import delta_chain
from . import durable
from . import errors

CURRENT = "current.json"
_FORMAT = 1
_DATA = ".data-"


def chain_prefix(folder, version):
  """Returns the prefix that places and names the deltas of a version."""
  return os.path.join(folder, str(version), "variables")


def stored_prefix(folder, version):
  """Returns the prefix of the checkpoint in the SavedModel of a version."""
  return os.path.join(folder, str(version), "variables", "variables")


def delta_prefix(folder, state, sequence):
  """Returns the prefix of a delta of the current version.

  Args:
    folder: string.
    state: dict, the content of `current.json`.
    sequence: int, counts from 1.
  """
  full = delta_chain.Link(chain_prefix(folder, state["version"]), state["full"]["sha256"])
  return delta_chain.delta_prefix(full, sequence)


def sha256(path):
  digest = hashlib.sha256()
  with tf.io.gfile.GFile(path, "rb") as f:
    for block in iter(lambda: f.read(1 << 20), b""):
      digest.update(block)
  return digest.hexdigest()


def _file(path):
  found = {"bytes": tf.io.gfile.stat(path).length}
  if _DATA not in os.path.basename(path):
    found["sha256"] = sha256(path)
  return found


def _entry(step, identity, files):
  now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
  return {"step": step, "time": now, "sha256": identity, "files": files,
          "bytes": sum(f["bytes"] for f in files.values())}


def describe_full(folder, version, step):
  """Returns the entry `full` of `current.json` for a version that is on disk.

  Reads all its files except the data of the checkpoint.
  """
  top = os.path.join(folder, str(version))
  files = {}
  for inner, _, names in tf.io.gfile.walk(top):
    if os.path.basename(os.path.normpath(inner)) != delta_chain.DIRECTORY:
      for name in names:
        path = os.path.join(inner, name)
        files[os.path.relpath(path, top)] = _file(path)
  return _entry(step, delta_chain.identity(stored_prefix(folder, version)), files)


def describe_delta(folder, version, prefix, previous, step):
  """Returns the entry in `deltas` for a delta that is on disk.

  Args:
    folder: string, the folder of the publication.
    version: int, the full version that the delta continues.
    prefix: string, the prefix of the delta.
    previous: the entry before it, or None.
    step: int, or None.
  """
  top = os.path.join(folder, str(version))
  directory, name = os.path.split(prefix)
  paths = [os.path.join(directory, found) for found in tf.io.gfile.listdir(directory)
           if found.startswith(name + ".")]
  files = {os.path.relpath(path, top): _file(path) for path in paths}
  entry = _entry(step, delta_chain.identity(prefix), files)
  entry["previous_sha256"] = previous["sha256"] if previous else ""
  return entry


def make(version, full, deltas):
  """Returns the content of `current.json`; its step and time are those of the last entry."""
  last = (deltas or [full])[-1]
  return {"format": _FORMAT, "version": version, "step": last["step"],
          "time": last["time"], "full": full, "deltas": list(deltas)}


def write(folder, state):
  """Replaces `current.json` atomically, durably on file systems of this machine."""
  path = os.path.join(folder, CURRENT)
  text = json.dumps(state, indent=1, sort_keys=True) + "\n"
  if durable.is_local(folder):
    with durable.replaced(durable.local(path)) as part:
      with open(part, "w") as f:
        f.write(text)
    return
  with tf.io.gfile.GFile(path + durable.PART, "w") as f:
    f.write(text)
  tf.io.gfile.rename(path + durable.PART, path, overwrite=True)


def read(folder):
  """Returns the content of `current.json`, or None if the folder has none.

  Raises:
    CheckpointError: it cannot be read, or is not valid.
  """
  path = os.path.join(folder, CURRENT)
  try:
    with tf.io.gfile.GFile(path, "rb") as f:
      state = json.loads(f.read().decode("utf-8"))
  except tf.errors.NotFoundError:
    return None
  except (tf.errors.OpError, ValueError) as e:
    raise errors.CheckpointError("%s cannot be read: %s" % (path, getattr(e, "message", e)))
  if not isinstance(state, dict) or state.get("format") != _FORMAT:
    raise errors.CheckpointError("%s: expected an object of format %d" % (path, _FORMAT))
  entries = state.get("deltas")
  valid = (isinstance(state.get("version"), int) and state["version"] >= 0 and
           isinstance(entries, list))
  if not valid or not all(_is_entry(e) for e in [state.get("full")] + entries):
    raise errors.CheckpointError("%s has no valid version, full version or deltas" % path)
  return state


def _is_entry(entry):
  return (isinstance(entry, dict) and isinstance(entry.get("sha256"), str) and
          isinstance(entry.get("files"), dict) and
          all(isinstance(f, dict) and isinstance(f.get("bytes"), int)
              for f in entry["files"].values()))
