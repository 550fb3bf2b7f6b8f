# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes checkpoints atomically: either all files are there or none.

A saver writes to `<prefix>.partial` and renames the files once they are on disk
(`delta_ops.publish_checkpoint`). This module has the rest: finishing a replacement that
a process left unfinished, or reading it without write access, and the state file.

Other files, and folders whose files belong together, are written to `begin(path)` and
get their name by `replace(path)`. `current(path)` is the path to read.
"""

import atexit
import os
import re
import shutil
import tempfile

from embedding_variable.ops import delta_ops
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import errors
from embedding_variable.tf_names import file_io
from embedding_variable.tf_names import string_ops

_STAGED = ".partial"
_COMMIT = ".commit"
# A new file or folder before it has its name, and the one that it replaces.
_PART = ".part"
_OLD = ".old"

_FILE = re.compile("^file://[^/]*")


def add_save_ops(prefix, make):
  """Wraps a save so that the checkpoint is written atomically; returns a string scalar.

  Args:
    prefix: string scalar, the checkpoint's prefix.
    make: function from the prefix to write to, to a tensor that is computed when the
      files are written.
  """
  staged = string_ops.string_join([prefix, _STAGED])
  written = make(staged)
  from_op = [written.op if hasattr(written, "op") else written]
  with_prefix = control_flow_ops.with_dependencies(from_op, prefix)
  published = delta_ops.publish_checkpoint(
      control_flow_ops.with_dependencies(from_op, staged), with_prefix)
  return control_flow_ops.with_dependencies([published], prefix)


def add_part_ops(prefix, make):
  """Wraps a save whose files another process publishes; returns a string scalar.

  Args:
    prefix: string scalar, the checkpoint's prefix.
    make: as for `add_save_ops`.
  """
  written = make(string_ops.string_join([prefix, _STAGED]))
  from_op = [written.op if hasattr(written, "op") else written]
  return control_flow_ops.with_dependencies(from_op, prefix)


def is_local(path):
  """Returns False if `path` is not in one of this machine's file systems."""
  return "://" not in local(path)


def local(path):
  """Returns a path without "file://", which TensorFlow's functions take too."""
  return _FILE.sub("", path)


def finish_interrupted(prefix):
  """Finishes replacing a checkpoint if the replacing process ended in between.

  Several ranks may do so at once: a rank skips files that are already renamed, and the
  index is renamed after all data files.

  Args:
    prefix: string. No-op if nothing was interrupted.
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
  """Finishes an interrupted replacement if possible; returns the prefix to read.

  Args:
    prefix: string.

  Raises:
    tf.errors.OpError: a replacement must be finished, and that failed.
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
  """Returns the prefix to read a checkpoint under; writes nothing next to it.

  This is `prefix`, unless a replacement was interrupted. Then it is the prefix of links
  to the checkpoint's files, in a temporary folder that is removed when this process
  exits.

  Args:
    prefix: string. Returned as it is on other machines' file systems (`hdfs://`).
  """
  for _ in range(10):
    if not is_local(prefix) or not file_io.file_exists(prefix + _COMMIT + ".index"):
      return prefix
    folder = tempfile.mkdtemp(prefix="embedding_variable_")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    if _link_to_parts(os.path.abspath(local(prefix)), folder):
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
  return waiting if file_io.file_exists(waiting) else prefix + ".index"


def _move(path, new_path):
  """Renames a file, unless another process has done so."""
  try:
    file_io.rename(path, new_path, overwrite=True)
  except errors.NotFoundError:
    if not file_io.file_exists(new_path):
      raise


def sync(path):
  """Waits until a file's content, or a directory's entries, are on disk."""
  if not is_local(path):
    return
  descriptor = os.open(local(path), os.O_RDONLY)
  try:
    os.fsync(descriptor)
  finally:
    os.close(descriptor)


def sync_state(directory, latest_filename=None):
  """Syncs the state file, which names the newest checkpoint."""
  if not is_local(directory):
    return
  path = os.path.join(directory, latest_filename or "checkpoint")
  if os.path.exists(local(path)):
    sync(path)
    sync(directory or ".")


def remove_interrupted(prefix):
  """Removes the files of an interrupted replacement of a checkpoint that is being
  removed.
  """
  if is_local(prefix):
    for path in file_io.get_matching_files(prefix + _COMMIT + ".*"):
      file_io.delete_file(path)


def make_folder(path):
  """Creates a folder and its parents if necessary, and syncs the entries of new ones."""
  path = os.path.abspath(path)
  new = []
  while not os.path.isdir(path):
    new.append(path)
    path = os.path.dirname(path)
  if new:
    os.makedirs(new[0], exist_ok=True)
    for folder in new:
      sync(os.path.dirname(folder))


def begin(path):
  """Returns the path to write a new file or folder to, before `replace`.

  Finishes an interrupted replacement first, and removes what a failed write left.

  Args:
    path: string, the final path; its parent folder must exist.
  """
  path = os.path.normpath(path)
  if current(path) != path:
    _give_name(path)
  _remove(path + _PART)
  return path + _PART


def replace(path):
  """Gives what was written to `begin(path)` its final path, in place of the previous.

  The new files are on disk before the previous ones lose their name, and a file or folder
  is removed only after the new one has the name. If the process ends at any point,
  `current` returns either the previous or the new one, complete.

  Args:
    path: string, a file or a folder.
  """
  path = os.path.normpath(path)
  part = path + _PART
  for folder, _, names in os.walk(part):
    for name in names:
      sync(os.path.join(folder, name))
    sync(folder)
  if not os.path.isdir(part):
    sync(part)
  # A rename replaces a file by a file only.
  if os.path.isdir(path) or (os.path.isdir(part) and os.path.lexists(path)):
    _remove(path + _OLD)
    os.rename(path, path + _OLD)
  _give_name(path)


def current(path):
  """Returns the path to read a file or folder of `replace` from; writes nothing."""
  path = os.path.normpath(path)
  is_replaced = not os.path.lexists(path) and os.path.lexists(path + _OLD)
  return path + _PART if is_replaced and os.path.lexists(path + _PART) else path


def _give_name(path):
  os.replace(path + _PART, path)
  sync(os.path.dirname(path) or ".")
  _remove(path + _OLD)


def _remove(path):
  if os.path.isdir(path) and not os.path.islink(path):
    shutil.rmtree(path)
  elif os.path.lexists(path):
    os.remove(path)
