# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Files that are a checkpoint whole or not at all.

A saver writes to `<prefix>.partial` and gives the files their names when they are on the
disk (`delta_ops.publish_checkpoint`). What is here is the rest: finishing what an ended
process had decided, or reading it where nothing may be written, and the state file.
"""

import atexit
import os
import re
import shutil
import tempfile

from tensorflow.python.framework import errors
from tensorflow.python.lib.io import file_io
from tensorflow.python.ops import control_flow_ops
from tensorflow.python.ops import string_ops

from embedding_variable.ops import delta_ops

_STAGED = ".partial"
_COMMIT = ".commit"


def add_save_ops(prefix, make):
  """Returns what `make` returns, a string scalar, for a checkpoint that is durable.

  Args:
    prefix: string scalar, the checkpoint's prefix.
    make: function that takes the prefix to write to and returns a tensor that is there
      when it is written.
  """
  staged = string_ops.string_join([prefix, _STAGED])
  written = make(staged)
  from_op = [written.op if hasattr(written, "op") else written]
  with_prefix = control_flow_ops.with_dependencies(from_op, prefix)
  published = delta_ops.publish_checkpoint(
      control_flow_ops.with_dependencies(from_op, staged), with_prefix)
  return control_flow_ops.with_dependencies([published], prefix)


def add_part_ops(prefix, make):
  """Returns what `make` returns, for what another process publishes.

  Args:
    prefix: string scalar, the checkpoint's prefix.
    make: as of `add_save_ops`.
  """
  written = make(string_ops.string_join([prefix, _STAGED]))
  from_op = [written.op if hasattr(written, "op") else written]
  return control_flow_ops.with_dependencies(from_op, prefix)


def is_local(path):
  """False for what is not a path of this machine's file systems."""
  return "://" not in path


def finish_interrupted(prefix):
  """Completes the replacement of a checkpoint whose process ended meanwhile.

  The ranks of a job may do so at once: a rank that finds a file under its name already
  goes on, and the index is renamed when no data is left to be.

  Args:
    prefix: string. Nothing happens when nothing was interrupted.
  """
  commit = prefix + _COMMIT
  if not file_io.file_exists(commit + ".index"):
    return
  directory, name = os.path.split(commit)
  data = re.compile(re.escape(name) + r"(\.data-\d{5}-of-\d{5})$")
  for found in sorted(file_io.list_directory(directory or ".")):
    match = data.match(found)
    if match:
      _move(commit + match.group(1), prefix + match.group(1))
  sync(directory or ".")
  _move(commit + ".index", prefix + ".index")
  sync(directory or ".")


def finished(prefix):
  """Returns the prefix to read a checkpoint under, finishing its replacement if it can.

  Args:
    prefix: string.

  Raises:
    tf.errors.OpError: there is a replacement to be finished, and it cannot be.
  """
  try:
    finish_interrupted(prefix)
    return prefix
  except (errors.OpError, OSError):
    found = readable(prefix)
    if found == prefix:
      raise
    return found


def readable(prefix):
  """Returns the prefix to read a checkpoint under; nothing is written beside it.

  It is the checkpoint's own, unless a replacement was interrupted: then that of links to
  the files that are the checkpoint, in a temporary folder that goes with this process.

  Args:
    prefix: string. Where there are no links (`hdfs://`) it is what is returned.
  """
  for _ in range(10):
    if not is_local(prefix) or not file_io.file_exists(prefix + _COMMIT + ".index"):
      return prefix
    folder = tempfile.mkdtemp(prefix="embedding_variable_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if _link_to_parts(os.path.abspath(prefix), folder):
      return os.path.join(folder, os.path.basename(prefix))
  # Somebody replaces it all the time.
  return prefix


def _link_to_parts(prefix, folder):
  """Makes the links of `readable`; returns whether they all lead to a file."""
  directory, name = os.path.split(prefix)
  pattern = re.compile(
      r"%s(%s)?(\.index|\.meta|\.data-\d{5}-of-\d{5})$" %
      (re.escape(name), re.escape(_COMMIT)))
  # A file under its own name belongs to the replacement, unless that file still waits.
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
  """Returns the path of the index that is a checkpoint's, also when interrupted."""
  waiting = prefix + _COMMIT + ".index"
  return waiting if file_io.file_exists(waiting) else prefix + ".index"


def _move(path, new_path):
  """Renames a file, unless somebody else did."""
  try:
    file_io.rename(path, new_path, overwrite=True)
  except errors.NotFoundError:
    if not file_io.file_exists(new_path):
      raise


def sync(path):
  """Waits until a file's contents, or a directory's entries, are on the disk."""
  if not is_local(path):
    return
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def sync_state(directory, latest_filename=None):
  """The same for the file that says which checkpoint is the newest."""
  if not is_local(directory):
    return
  path = os.path.join(directory, latest_filename or "checkpoint")
  if os.path.exists(path):
    sync(path)
    sync(directory or ".")


def remove_interrupted(prefix):
  """Removes what is left of a replacement of a checkpoint that is removed itself."""
  if is_local(prefix):
    for path in file_io.get_matching_files(prefix + _COMMIT + ".*"):
      file_io.delete_file(path)
