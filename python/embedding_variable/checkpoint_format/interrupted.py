# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finishes replacing a checkpoint if the replacing process ended in between.

Without write access, reads it as if that were done.
"""

import atexit
import os
import re
import shutil
import tempfile

import tensorflow as tf

from . import durable

_COMMIT = ".commit"


def finish_interrupted(prefix):
  """Finishes replacing a checkpoint if the replacing process ended in between.

  Several ranks may do so at once: a rank skips files that are already renamed, and the
  index is renamed after all data files.

  Args:
    prefix: string. No-op if nothing was interrupted.
  """
  commit = prefix + _COMMIT
  if not tf.io.gfile.exists(commit + ".index"):
    return
  directory, name = os.path.split(commit)
  data = re.compile(re.escape(name) + r"(\.data-\d{5}-of-\d{5})$")
  for found in sorted(tf.io.gfile.listdir(directory or ".")):
    match = data.match(found)
    if match:
      _move(commit + match.group(1), prefix + match.group(1))
  durable.sync(directory or ".")
  _move(commit + ".index", prefix + ".index")
  durable.sync(directory or ".")


def finished(prefix):
  """Finishes an interrupted replacement if possible; returns the prefix to read.

  Args:
    prefix: string.

  Raises:
    tf.errors.OpError: a replacement must be finished, and that failed.
  """
  try:
    finish_interrupted(prefix)
    return prefix
  except (tf.errors.OpError, OSError):
    found = readable(prefix)
    if found == prefix:
      raise
    return found


def readable(prefix):
  """Returns the prefix to read a checkpoint under; writes nothing next to it.

  This is `prefix`, unless a replacement was interrupted. Then it is the prefix of links
  to the checkpoint's files, in a temporary folder that is removed when this process
  exits.

  Args:
    prefix: string. Returned as it is on other machines' file systems (`hdfs://`).
  """
  for _ in range(10):
    if not durable.is_local(prefix) or not tf.io.gfile.exists(prefix + _COMMIT + ".index"):
      return prefix
    folder = tempfile.mkdtemp(prefix="embedding_variable_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if _link_to_parts(os.path.abspath(durable.local(prefix)), folder):
      return os.path.join(folder, os.path.basename(prefix))
  # The checkpoint is being replaced again and again.
  return prefix


def _link_to_parts(prefix, folder):
  """Creates the links of `readable`; returns whether all of them lead to a file."""
  directory, name = os.path.split(prefix)
  pattern = re.compile(
      r"%s(%s)?(\.index|\.meta|\.data-\d{5}-of-\d{5})$" %
      (re.escape(name), re.escape(_COMMIT)))
  # A file with the final name belongs to the replacement, unless its new version still
  # has the temporary name.
  for found in sorted(os.listdir(directory)):
    match = pattern.match(found)
    if match:
      link = os.path.join(folder, name + match.group(2))
      if match.group(1) and os.path.lexists(link):
        os.remove(link)
      if not os.path.lexists(link):
        os.symlink(os.path.join(directory, found), link)
  links = [os.path.join(folder, link) for link in os.listdir(folder)]
  return (all(map(os.path.exists, links)) and
          os.path.exists(prefix + _COMMIT + ".index"))


def index_of(prefix):
  """Returns the path of a checkpoint's index, also after an interruption."""
  waiting = prefix + _COMMIT + ".index"
  return waiting if tf.io.gfile.exists(waiting) else prefix + ".index"


def _move(path, new_path):
  """Renames a file, unless another process has done so."""
  try:
    tf.io.gfile.rename(path, new_path, overwrite=True)
  except tf.errors.NotFoundError:
    if not tf.io.gfile.exists(new_path):
      raise


def remove_interrupted(prefix):
  """Removes the files of an interrupted replacement of a checkpoint that is being
  removed.
  """
  if durable.is_local(prefix):
    for path in tf.io.gfile.glob(prefix + _COMMIT + ".*"):
      tf.io.gfile.remove(path)
