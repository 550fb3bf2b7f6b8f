# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The order in which a publication's files are written and named, for all publishers."""

import os

from embedding_variable.checkpoint_format import durable
from embedding_variable.checkpoint_format import packed_rows
from embedding_variable.checkpoint_format import publications
from embedding_variable.publish import version_folders


def _call(function):
  return function()


class FolderPublisher(object):
  """Base of publishers: the versions and deltas in one folder; see `publications`."""

  def __init__(self, folder, keep, row_type="float32"):
    """Writes nothing.

    Args:
      folder: string, of this machine, NFS, or a file system of `tf.io.gfile`.
      keep: int >= 1, full versions in the folder; older ones are removed.
      row_type: "float32", "float16" or "uint8", in which rows are written
        (`packed_rows`).

    Raises:
      ValueError: `keep` is less than 1, or another `row_type`.
    """
    if keep < 1:
      raise ValueError("keep: expected at least 1, got %d" % keep)
    self._folder = folder if "://" in folder else os.path.abspath(folder)
    self._keep = keep
    self._row_type = packed_rows.checked(row_type)
    self.restart()

  def restart(self):
    """Makes the next publication a full version; call it when the tables were replaced."""
    self._version = self._full = None
    self._deltas = []

  @property
  def can_continue(self):
    """Whether `delta` has a full version to continue."""
    return self._version is not None

  def _publish_full(self, step, write, finish, begin_chain, on_rank_0=_call):
    """Writes a version, and names it in `current.json`.

    Args:
      step: int, or None.
      write: function of the path where the version's folder is written; writes its
        checkpoint, on every rank.
      finish: function of that path; writes what is missing, on rank 0.
      begin_chain: function of the version's number, called when it has its name; starts
        the chain of its deltas.
      on_rank_0: function that runs a function without arguments on rank 0 and returns its
        string on every rank.

    Returns:
      int, the number of the version.
    """
    self.restart()
    version = int(on_rank_0(lambda: version_folders.begin(self._folder)))
    target = os.path.join(self._folder, str(version))
    is_local = durable.is_local(self._folder)
    part = durable.local(target) + durable.PART if is_local else target
    write(part)

    def name():
      finish(part)
      if is_local:
        durable.replace(durable.local(target))
      return ""

    def publish():
      self._full = publications.describe_full(self._folder, version, step)
      publications.write(self._folder, publications.make(version, self._full, []))
      version_folders.remove_old(self._folder, version, self._keep)
      return ""

    on_rank_0(name)
    begin_chain(version)
    on_rank_0(publish)
    self._version = version
    return version

  def _publish_delta(self, step, write, on_rank_0=_call):
    """Writes the next delta, and names it in `current.json`.

    Args:
      step: int, or None.
      write: function of the version's number; writes the delta, returns its prefix.
      on_rank_0: as for `_publish_full`.

    Returns:
      string, the prefix of the delta.

    Raises:
      ValueError: there is no full version to continue.
    """
    if self._version is None:
      raise ValueError("a delta continues a full version, and %s has none of this session: "
                       "call full() first" % self._folder)
    version = self._version
    prefix = write(version)
    # Until the delta is described, only a full version can follow.
    self._version = None

    def publish():
      previous = self._deltas[-1] if self._deltas else None
      self._deltas.append(publications.describe_delta(
          self._folder, version, prefix, previous, step))
      publications.write(self._folder,
                         publications.make(version, self._full, self._deltas))
      return ""

    on_rank_0(publish)
    self._version = version
    return prefix
