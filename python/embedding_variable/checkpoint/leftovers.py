# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Removes files that failed or killed saves left next to checkpoints.

A partial checkpoint of a large table is a large file, and useless unless it is merged.
The next save of the same series removes it, and a failing save removes its own. Rank 0
does that for all ranks. A save of full checkpoints also removes leftovers of deltas,
which are in a separate folder (delta_chain.py).
"""

import contextlib
import os
import re
import threading

from embedding_variable.checkpoint_format import delta_chain
from embedding_variable.tf_names import errors
from embedding_variable.tf_names import file_io

# Matches `model.ckpt-12.partial_part_tables0.index` and similar, also while stock code
# is writing them; the folder of a sharded save, `model.ckpt-12.partial_temp_<32
# digits>`; and files that are not renamed yet (durable.py),
# `model.ckpt-12.partial.index`.
_FILE = r"\.(index|data-\d{5}-of-\d{5})(\.tempstate\d+)?"
_PART = (r"((\.partial)?(_part_(rest|tables\d+|rank\d+_tables\d+)%s|_temp_[0-9a-f]{32})"
         r"|\.partial%s)/?$" % (_FILE, _FILE))
_PART_OF_RANK = r"(\.partial)?_part_rank%05d_tables\d+" + _FILE + "$"
_STEP = r"(-\d+)?"
# The part of a delta's name after the full checkpoint's.
_DELTA = r"-[0-9a-f]{8}-\d{5,}"

_lock = threading.Lock()
_saving = {}  # save path -> number of running saves of this process


@contextlib.contextmanager
def removed(save_path):
  """Context of a save: removes leftovers before it, and after it fails.

  Removes nothing while another thread saves under the same path.

  Args:
    save_path: string, as passed to `Saver.save`: without the step.
  """
  save_path = _absolute(save_path)
  with _lock:
    _saving[save_path] = _saving.get(save_path, 0) + 1
    if _saving[save_path] == 1:
      _remove(save_path)
  failed = True
  try:
    yield
    failed = False
  finally:
    with _lock:
      _saving[save_path] -= 1
      if not _saving[save_path]:
        del _saving[save_path]
        if failed:
          _remove(save_path)


@contextlib.contextmanager
def removed_part(save_path, rank):
  """Context of a save by a rank other than 0: removes this rank's part if it fails.

  Rank 0 may have removed the leftovers before this rank ends its part.

  Args:
    save_path: string, as passed to `Saver.save`: without the step.
    rank: int, this rank.
  """
  try:
    yield
  except BaseException:
    with _lock:
      _remove(_absolute(save_path), _PART_OF_RANK % rank)
    raise


def delete(path):
  """Deletes a file, or a folder with its content; no-op if it does not exist."""
  try:
    if file_io.is_directory(path):
      file_io.delete_recursively(path)
    else:
      file_io.delete_file(path)
  except errors.NotFoundError:
    pass


def remove_deltas(full_prefix):
  """Removes the deltas of all full checkpoints with a name, and leftovers of their
  saves.

  Args:
    full_prefix: string.
  """
  directory, name = os.path.split(full_prefix)
  directory = os.path.join(directory, delta_chain.DIRECTORY)
  if not file_io.is_directory(directory):
    return
  pattern = re.compile(re.escape(name) + r"-([0-9a-f]{8})-(\d{5,})(\..*)$")
  found = list(filter(None, map(pattern.match, file_io.list_directory(directory))))
  # Removes the last delta first, so that an interruption leaves a shorter chain; and of
  # each delta the index first, since without it the files are no checkpoint.
  order = lambda m: (m.group(1), int(m.group(2)), m.group(3) == ".index",
                     m.group(3).endswith(".index"))
  for match in sorted(found, key=order, reverse=True):
    delete(os.path.join(directory, match.group(0)))


def _absolute(save_path):
  return os.path.abspath(save_path) if "://" not in save_path else save_path


def _remove(save_path, part=_PART):
  folder, base = os.path.split(save_path)
  series = re.escape(base) + _STEP
  _remove_matching(folder, "(%s)%s" % (series, part), save_path)
  _remove_matching(os.path.join(folder, delta_chain.DIRECTORY), "(%s%s)%s" % (series, _DELTA, part),
                   save_path)


def _remove_matching(folder, pattern, save_path):
  """Removes matching files of a folder, except those that another thread saves.

  Args:
    folder: string.
    pattern: string, a regular expression whose first group is the checkpoint's name.
    save_path: string, under which no other thread saves.
  """
  pattern = re.compile(pattern)
  try:
    for match in filter(None, map(pattern.match, file_io.list_directory(folder))):
      saved_as = os.path.join(folder, match.group(1))
      if saved_as == save_path or saved_as not in _saving:
        delete(os.path.join(folder, match.group(0)))
  except errors.OpError:
    # The folder does not exist; a save that cannot write reports that itself.
    pass
