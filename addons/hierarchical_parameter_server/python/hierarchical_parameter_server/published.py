# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sends the rows of a publication (`embedding_variable.publish`) to the servers of a model."""

import numpy as np

from hierarchical_parameter_server.checkpoint_format import bundle_reader
from hierarchical_parameter_server.checkpoint_format import publication_checks
from hierarchical_parameter_server.checkpoint_format import publications
from hierarchical_parameter_server.checkpoint_format import tensor_names
from hierarchical_parameter_server.checkpoint_format.checkpoint_tables import Checkpoint
from hierarchical_parameter_server.convert import checkpoints

# Rows that a producer takes at once.
_ROWS = 100000


class PublicationSender:
  """Sends what a publication's `current.json` names and has not been sent.

  A full version is sent whole, unless everything up to its step has been sent. A delta's
  changed rows are sent. A key that has lost its row gets its default row, which is what it
  reads in training. Not thread-safe.

  Example:

    with hps.Producer(brokers="kafka:9092") as producer:
      sender = hps.PublicationSender(producer, "ranking", "./ranking")
      while training:
        ...
        publisher.delta(session)
        sender.send()
  """

  def __init__(self, producer, model_name, folder, tables=None):
    """Reads nothing.

    Args:
      producer: hps.Producer.
      model_name: string, the model's name in the servers' configuration.
      folder: string, the folder of the publication.
      tables: {name of an embedding variable: name of the servers' table}; None: all
        embedding variables, each under the name of the folder that
        `convert.from_checkpoint` writes for it.
    """
    self._producer, self._model, self._folder = producer, model_name, folder
    self._names = tables
    self._sent = None  # the state of the last send, with all that it names

  def send(self):
    """Sends; returns the number of rows, 0 if there is nothing new.

    Reads the whole version or the deltas, and waits until the rows are available to the
    servers. A send that fails is repeated by the next call: the rows of a key come in the
    same order again.

    Raises:
      ValueError: a file is missing or damaged, `tables` names a variable that the version
        lacks, or two variables have one table's name.
      tf.errors.OpError: see `Producer.send` and `Producer.flush`.
    """
    state = publications.read(self._folder)
    if state is None:
      return 0
    sent = self._sent
    continues = sent is not None and (
        sent["version"], sent["full"]["sha256"]) == (state["version"], state["full"]["sha256"])
    begin = len(sent["deltas"]) if continues else 0
    prefixes = [publication_checks.check_delta(self._folder, state, k + 1)
                for k in range(len(state["deltas"]))]
    rows = 0
    if not continues:
      publication_checks.check_full(self._folder, state)
      if sent is None or None in (sent["step"], state["full"]["step"]) or (
          sent["step"] != state["full"]["step"]):
        rows += self._send_full(state)
    for number in range(begin, len(prefixes)):
      rows += self._send_delta(state, prefixes[:number + 1])
    self._producer.flush()
    self._sent = state
    return rows

  def _opened(self, state, prefixes):
    return Checkpoint(publications.stored_prefix(self._folder, state["version"]),
                      deltas=prefixes)

  def _tables(self, checkpoint):
    """Returns [(Table, name of the servers' table)]."""
    if self._names is not None:
      return [(checkpoint.table(variable), name) for variable, name in
              sorted(self._names.items())]
    found = [(table, checkpoints.folder_name(variable))
             for variable, table in checkpoint.tables.items()]
    if len({name for _, name in found}) < len(found):
      raise ValueError("%s: two variables have one table's name: give `tables`; the variables "
                       "are %s" % (checkpoint.name, ", ".join(checkpoint.tables)))
    return found

  def _send_full(self, state):
    sent = 0
    for table, name in self._tables(self._opened(state, [])):
      for keys, rows in table.pieces_of_rows():
        sent += self._send(name, keys, rows)
      before = self._keys_before(table.name)
      if before is not None:
        sent += self._send_gone(table, name, np.setdiff1d(before, _keys(table)))
    return sent

  def _keys_before(self, variable):
    """Returns the keys that the servers have by the last send; None: nothing was sent."""
    if self._sent is None:
      return None
    state = self._sent
    prefixes = [publications.delta_prefix(self._folder, state, k + 1)
                for k in range(len(state["deltas"]))]
    return _keys(self._opened(state, prefixes).tables[variable])

  def _send_delta(self, state, prefixes):
    sent, reader = 0, bundle_reader.BundleReader(prefixes[-1], prefixes[-1])
    earlier = None
    for table, name in self._tables(self._opened(state, prefixes)):
      gone, replaces = [], False
      for piece in table.pieces:
        keys, rows = piece.of_delta(len(prefixes) - 1, True)
        sent += self._send(name, keys, rows)
        gone.append(reader.read(piece.tensor(tensor_names.DELTA_ERASED_KEYS)))
        replaces |= bool(reader.read(piece.tensor(tensor_names.DELTA_REPLACES))[0])
      gone = np.concatenate(gone)
      if replaces:
        # The delta has the rows that a part has now, not the keys that are gone.
        earlier = earlier or self._opened(state, prefixes[:-1])
        gone = np.setdiff1d(_keys(earlier.tables[table.name]), _keys(table))
      sent += self._send_gone(table, name, gone)
    return sent

  def _send_gone(self, table, name, keys):
    if not len(keys):
      return 0
    rows = table.default_rows(keys)
    if rows is None:
      raise ValueError("%s has no default rows, which %d keys without a row read: publish with "
                       "this package's Publisher" % (table.name, len(keys)))
    return self._send(name, keys, rows)

  def _send(self, name, keys, rows):
    for begin in range(0, len(keys), _ROWS):
      self._producer.send(self._model, name, keys[begin:begin + _ROWS],
                          rows[begin:begin + _ROWS])
    return len(keys)


def _keys(table):
  return np.concatenate([keys for keys, _ in table.pieces_of_rows(with_rows=False)])
