# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""What scripts get of a session's readers."""


class DataReader(object):
  """The training data, or the evaluation data, of a session.

  Args:
    open_reader: function (path) -> data's Reader.
    path: string, what is read unless another list is set; None: there is none.
    what: string, for messages.
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
      file: its path; "": the one of the configuration.

    Raises:
      ValueError: the configuration names none.
      DataError: files are missing or damaged; what was read before goes on then.
    """
    path = file or self._default
    self._take(path, self._opened(path))

  # As version 2.3 calls it.
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
    """bool, whether it reads."""
    return self._reader is not None

  @property
  def waits(self):
    """int, how often a batch was asked for before one was ready, since the last start."""
    return self._reader.waits if self._reader else 0

  def restart(self):
    """Reads the current file list from its beginning."""
    self.set_source(self._path)

  def next(self):
    """Returns the next data Batch, or None at the end of the data."""
    return self._reader.next()

  def close(self):
    """Ends its threads."""
    if self._reader is not None:
      self._reader.close()
      self._reader = None


def restart_all(readers):
  """Reads the current file lists of DataReaders from the beginning.

  Raises:
    ValueError, DataError: as `set_source`, of any of them. None has changed then.
  """
  opened = []
  try:
    for reader in readers:
      # pylint: disable=protected-access
      opened.append((reader, reader._path, reader._opened(reader._path)))
  except Exception:
    for _, _, source in opened:
      source.close()
    raise
  for reader, path, source in opened:
    reader._take(path, source)  # pylint: disable=protected-access
