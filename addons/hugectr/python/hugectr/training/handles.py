# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The handles of a session's readers for scripts."""


class DataReader(object):
  """The training or evaluation data of a session.

  Args:
    open_reader: function (path) -> data's Reader.
    path: string, the default file list; None: there is none.
    what: string, name for error messages.
  """

  def __init__(self, open_reader, path, what):
    self._open = open_reader
    self._default = path
    self._path = path
    self._what = what
    self._reader = None

  def set_source(self, file=""):
    """Reads another file list from its beginning.

    Args:
      file: path of the list; "": the one of the configuration.

    Raises:
      ValueError: the configuration names no file list.
      DataError: files are missing or damaged; the previous list stays in use.
    """
    path = file or self._default
    self._take(path, self._opened(path))

  # Name in version 2.3.
  set_file_list_source = set_source

  def _opened(self, path):
    """Returns a reader from the beginning."""
    if not path:
      raise ValueError("hugectr: the configuration names no file list for %s" % self._what)
    return self._open(path)

  def _take(self, path, reader):
    self.close()
    self._path, self._reader = path, reader

  @property
  def has_source(self):
    """bool, whether there is a file list."""
    return bool(self._path)

  @property
  def is_started(self):
    """bool, whether reading has started."""
    return self._reader is not None

  @property
  def waits(self):
    """int, number of `next` calls that had to wait for a batch, since the last start."""
    return self._reader.waits if self._reader else 0

  def restart(self):
    """Reads the current file list from its beginning."""
    self.set_source(self._path)

  def next(self):
    """Returns the next data Batch, or None at the end of the data."""
    return self._reader.next()

  def close(self):
    """Stops its threads."""
    if self._reader is not None:
      self._reader.close()
      self._reader = None


def restart_all(readers, paths=None):
  """Starts file lists of DataReaders from their beginning.

  Args:
    readers: list of DataReaders.
    paths: list of paths, one per reader; None: the current ones.

  Raises:
    ValueError, DataError: as in `set_source`, for any of them. Then none has changed.
  """
  opened = []
  try:
    # pylint: disable=protected-access
    for reader, path in zip(readers, paths or [r._path for r in readers]):
      opened.append((reader, path, reader._opened(path)))
  except Exception:
    for _, _, source in opened:
      source.close()
    raise
  for reader, path, source in opened:
    reader._take(path, source)  # pylint: disable=protected-access
