# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Folders of versions below the base path of a model."""

import collections
import json
import os
import re

import tensorflow as tf

_NUMBER = re.compile(r"\d{1,19}$")
_MAX_NUMBER = 2 ** 63 - 1

# A folder is a version only when one of them exists. Copy it last, or rename the complete
# folder.
_GRAPHS = ("saved_model.pb", "saved_model.pbtxt")

# kind: "latest" (count: how many), "all", or "specific" (numbers: frozenset).
Policy = collections.namedtuple("Policy", ["kind", "count", "numbers"])
LATEST = Policy("latest", 1, frozenset())


# Names the newest version of a folder that embedding_variable.publish writes.
_CURRENT = "current.json"


def _is_remote(path):
  """Returns whether a path is of a file system that TensorFlow alone can read.

  Python reads the others: while it waits for a disk, other threads run on all TensorFlows.
  """
  return "://" in path


def _newest(base_path):
  """Returns the number of the version that current.json names, or None without a valid one."""
  try:
    make = tf.io.gfile.GFile if _is_remote(base_path) else open
    with make(os.path.join(base_path, _CURRENT), "rb") as f:
      return int(json.loads(f.read().decode())["version"])
  except (OSError, tf.errors.OpError, ValueError, KeyError, TypeError):
    return None


def _is_complete(path):
  is_file = tf.io.gfile.exists if _is_remote(path) else os.path.isfile
  return any(is_file(os.path.join(path, name)) for name in _GRAPHS)


def list_versions(base_path):
  """Returns {number: path} of the complete versions, or None without a readable folder.

  A child is a version if its whole name is a number. Of names with the same number
  ("7" and "007") the last one in sorted order counts. A base path that is itself a
  SavedModel is version 1. Versions above the one that `current.json` names are not
  published yet. The path may be of any file system of tf.io.gfile.
  """
  list_names = tf.io.gfile.listdir if _is_remote(base_path) else os.listdir
  try:
    if _is_complete(base_path):
      return {1: base_path}
    # An object store ends the names of folders with a slash.
    names = sorted(name.rstrip("/") for name in list_names(base_path))
    return _complete_versions(base_path, names)
  except (OSError, tf.errors.OpError):
    return None


def _complete_versions(base_path, names):
  found = {}
  for name in names:
    if _NUMBER.match(name) and int(name) <= _MAX_NUMBER:
      path = os.path.join(base_path, name)
      if _is_complete(path):
        found[int(name)] = path
  newest = _newest(base_path)
  if newest in found:
    found = {number: path for number, path in found.items() if number <= newest}
  return found


def select(policy, versions):
  """Returns the {number: path} of the versions that a policy selects."""
  if policy.kind == "all":
    return dict(versions)
  if policy.kind == "specific":
    return {number: path for number, path in versions.items() if number in policy.numbers}
  return {number: versions[number] for number in sorted(versions)[-policy.count:]}
