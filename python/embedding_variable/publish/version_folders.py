# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The folders of versions in the folder of a publication."""

import os
import re

from embedding_variable.checkpoint import leftovers
from embedding_variable.checkpoint_format import durable
from embedding_variable.checkpoint_format import errors
from embedding_variable.checkpoint_format import publications
from embedding_variable.tf_names import file_io

# File systems of other machines append a slash to the names of folders.
_NUMBER = re.compile(r"(\d{1,19})/?$")
_INCOMPLETE = re.compile(r"\d{1,19}%s/?$" % re.escape(durable.PART))


def _names(folder):
  return file_io.list_directory(folder) if file_io.is_directory(folder) else []


def _numbers(folder):
  return sorted(int(m.group(1)) for m in map(_NUMBER.match, _names(folder)) if m)


def next_number(folder):
  """Returns a number above those of all versions in a folder, which may not exist."""
  try:
    state = publications.read(folder)
  except errors.CheckpointError:
    state = None  # The new version will replace it.
  return 1 + max(_numbers(folder) + [state["version"] if state else 0])


def begin(folder):
  """Makes room for a new version; returns its number as a string.

  On this machine's file systems the version is first written to `<number>.part`; what a
  killed publication left there is removed.
  """
  file_io.recursive_create_dir(folder)
  number = next_number(folder)
  if durable.is_local(folder):
    durable.begin(os.path.join(durable.local(folder), str(number)))
  return str(number)


def remove_old(folder, newest, keep):
  """Removes versions.

  Args:
    folder: string.
    newest: int, the number of the newest version.
    keep: int >= 1, how many versions stay. Others, and incomplete ones, are removed.
  """
  for name in filter(_INCOMPLETE.match, _names(folder)):
    leftovers.delete(os.path.join(folder, name))
  older = [number for number in _numbers(folder) if number < newest]
  for number in older[:max(0, len(older) - (keep - 1))]:
    path = os.path.join(folder, str(number))
    # Without it the folder is no version.
    leftovers.delete(os.path.join(path, "saved_model.pb"))
    leftovers.delete(path)
