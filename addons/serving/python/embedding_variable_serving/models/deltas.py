# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Deltas of a published model (`embedding_variable.publish`), applied to a loaded version."""

import contextlib
import logging
import os
import threading
import time

import embedding_variable as ev

from embedding_variable_serving import errors

# Seconds between attempts to apply a refused delta.
_FIRST_DELAY, _LAST_DELAY = 1.0, 60.0

COUNT = ":embedding_variable:serving:delta_count"


def _read(path, number):
  """Returns (folder, content of its current.json if that names the version, else None).

  Raises:
    ServingError: DATA_LOSS, current.json cannot be read.
  """
  folder = os.path.dirname(path if "://" in path else os.path.abspath(path))
  try:
    state = ev.publications.read(folder)
  except ev.publications.errors.CheckpointError as e:
    raise errors.ServingError("DATA_LOSS", str(e))
  return folder, state if state and state["version"] == number else None


def check_version(path, number):
  """Compares the files of a version with current.json, if that is valid and names it.

  Returns:
    string, the identity of the version, or None if current.json does not name it.

  Raises:
    ServingError: DATA_LOSS; the message has the version and the file.
  """
  try:
    folder, state = _read(path, number)
  except errors.ServingError as e:
    logging.error("version %d is loaded without a check: %s", number, e.message)
    return None
  if state is None:
    return None
  try:
    ev.publication_checks.check_full(folder, state)
  except ev.publications.errors.CheckpointError as e:
    raise errors.ServingError("DATA_LOSS", str(e))
  return state["full"]["sha256"]


class Follower(object):
  """Keeps a loaded version at the state that current.json names.

  A delta is read, and compared with current.json and with the version, before a row
  changes. One that is refused is logged once; it is tried again, less and less often.
  Thread-safe.
  """

  def __init__(self, name, number, path, identity, servable, metrics):
    """Reads nothing.

    Args:
      name: name of the model, in messages.
      number: number of the version.
      path: its folder.
      identity: the result of check_version before it was loaded.
      servable: SavedModel.
      metrics: metrics.Metrics.
    """
    self._name, self._number, self._path = name, number, path
    self._identity, self._servable, self._metrics = identity, servable, metrics
    self._lock = threading.Lock()
    self._applied = 0
    self._last = identity
    self._refused, self._delay, self._next_attempt = None, _FIRST_DELAY, 0.0

  def update(self, alone=contextlib.nullcontext):
    """Applies the deltas that current.json names and the version lacks.

    Args:
      alone: function that returns a context in which no request uses the version; its
        value is False if there was no such moment. By default no request can use it.
    """
    with self._lock:
      if self._servable.broken or time.time() < self._next_attempt:
        return
      try:
        if self._update(alone):
          self._refused, self._delay = None, _FIRST_DELAY
      except (ev.publications.errors.CheckpointError, errors.ServingError) as e:
        self._refuse(str(e))

  def _update(self, alone):
    """Returns False if requests left no moment to apply a delta."""
    folder, state = _read(self._path, self._number)
    if state is None:
      return True
    if self._identity is None:  # It was loaded before current.json named it.
      self._identity = self._last = check_version(self._path, self._number)
    entries = state["deltas"]
    before = entries[self._applied - 1] if 0 < self._applied <= len(entries) else state["full"]
    if (state["full"]["sha256"] != self._identity or before["sha256"] != self._last or
        len(entries) < self._applied):
      raise errors.ServingError(
          "DATA_LOSS", "current.json continues another version %d, or other deltas, than "
          "those that serve" % self._number)
    for sequence in range(self._applied + 1, len(entries) + 1):
      prefix = ev.publication_checks.check_delta(folder, state, sequence)
      with alone() as is_alone:
        if is_alone is False:
          return False
        begin = time.time()
        try:
          self._servable.apply_delta(prefix)
        except Exception as e:  # pylint: disable=broad-except
          # Whatever it is: some rows may be new and some old.
          self._servable.broken = "delta %s was applied in part: %s" % (
              prefix, errors.wrapped(e).message)
          raise errors.ServingError("DATA_LOSS", self._servable.broken +
                                    "; the version answers again when it is loaded anew")
      self._applied, self._last = sequence, entries[sequence - 1]["sha256"]
      self._metrics.count(COUNT, model_name=self._name, status="applied")
      logging.info("model %s: version %d serves step %s, delta %d, applied in %.0f ms",
                   self._name, self._number, entries[sequence - 1].get("step"), sequence,
                   1e3 * (time.time() - begin))
    return True

  def _refuse(self, message):
    self._next_attempt = time.time() + self._delay
    self._delay = min(2 * self._delay, _LAST_DELAY)
    if message != self._refused:
      self._refused = message
      self._metrics.count(COUNT, model_name=self._name, status="refused")
      logging.error("model %s: version %d keeps its state: %s", self._name, self._number,
                    message)
