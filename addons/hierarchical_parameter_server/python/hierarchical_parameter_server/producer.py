# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sends rows changed by training to the servers that serve them."""

import os

import numpy as np
import tensorflow as tf

from hierarchical_parameter_server import _lib


class Producer:
  """Sends updates of tables through a queue or a folder.

  Servers whose configuration names the same queue or folder as `update_source` store
  the updates. Each row is replaced as a whole, and updates of a key keep their order.
  Thread-safe. Uses no GPU.

  Example:

    with hps.Producer(type="directory", path="/shared/updates") as producer:
      keys, rows = sok.incremental_model_dump([v], since, session)
      producer.send_all("model", ["table"], keys, rows)

  Args:
    type: "kafka_message_queue" or "directory".
    brokers: "host:port;host:port", for a queue.
    path: the folder; created if its parent exists.

  Raises:
    ValueError: the type is unknown, or the arguments do not match the type.
    tf.errors.FailedPreconditionError: librdkafka is not installed.
    tf.errors.NotFoundError: the folder cannot be created.
  """

  def __init__(self, type="kafka_message_queue", brokers=None, path=None):
    if type not in ("kafka_message_queue", "directory"):
      raise ValueError("type: expected 'kafka_message_queue' or 'directory', got %r" %
                       (type,))
    wanted, other = (("brokers", "path") if type == "kafka_message_queue" else
                     ("path", "brokers"))
    given = {"brokers": brokers, "path": path}
    if not given[wanted] or given[other] is not None:
      raise ValueError("Producer of type %r: expected %s and no %s, got brokers=%r, path=%r" %
                       (type, wanted, other, brokers, path))
    ops = _lib.load()
    self._number = None
    with tf.Graph().as_default() as graph:
      opened = ops.hps_open_producer(type=type, target=os.fsencode(given[wanted]))
      self._fed_number = tf.compat.v1.placeholder(tf.int64, [])
      self._tag = tf.compat.v1.placeholder(tf.string, [])
      self._keys = tf.compat.v1.placeholder(tf.int64, [None])
      self._rows = tf.compat.v1.placeholder(tf.float32, [None, None])
      self._timeout_ms = tf.compat.v1.placeholder(tf.int64, [])
      self._send = ops.hps_send_rows(
          producer=self._fed_number, tag=self._tag, keys=self._keys, rows=self._rows)
      self._flush = ops.hps_flush_rows(
          producer=self._fed_number, timeout_ms=self._timeout_ms)
      self._close = ops.hps_close_producer(producer=self._fed_number)
    config = tf.compat.v1.ConfigProto(device_count={"GPU": 0})
    self._session = tf.compat.v1.Session(graph=graph, config=config)
    self._number = self._session.run(opened)

  def _run(self, op, feed):
    if self._number is None:
      raise ValueError("the producer is closed")
    feed[self._fed_number] = self._number
    self._session.run(op, feed)

  def send(self, model_name, table_name, keys, rows):
    """Takes rows of a table; `flush` ensures that they are sent.

    Args:
      model_name, table_name: strings, as in the servers' configuration.
      keys: integers [n]; if a key repeats, its last row counts.
      rows: float32 [n, width].

    Raises:
      ValueError: keys are not integers, shapes disagree, or the producer is closed.
      tf.errors.InvalidArgumentError: a name or the width is invalid.
      tf.errors.InternalError: the queue is not reached within 30 seconds, or the folder
        cannot be written.
    """
    keys = np.asarray(keys)
    rows = np.ascontiguousarray(rows, np.float32)
    if keys.size and keys.dtype.kind not in "iu":
      raise ValueError("keys: expected integers, got %s" % keys.dtype)
    if keys.ndim != 1 or rows.ndim != 2 or len(keys) != len(rows):
      raise ValueError("table %s of model %s: expected keys [n] and rows [n, width], got %s "
                       "and %s" % (table_name, model_name, keys.shape, rows.shape))
    if not len(keys):
      return
    self._run(
        self._send, {
            self._tag: "hps_et.%s.%s" % (model_name, table_name),
            self._keys: np.ascontiguousarray(keys.astype(np.int64)),
            self._rows: rows,
        })

  def send_all(self, model_name, table_names, keys, rows):
    """Takes rows of several tables, as returned by `sok.incremental_model_dump`.

    Args:
      model_name: string.
      table_names: a list of strings.
      keys, rows: lists with the arguments of `send` for each table; for a single table
        also without a list.

    Raises:
      ValueError: the lists differ in length, or as for `send`.
      tf.errors.OpError: as for `send`.
    """
    if len(table_names) == 1 and isinstance(keys, np.ndarray):
      keys, rows = [keys], [rows]
    if not len(table_names) == len(keys) == len(rows):
      raise ValueError("expected keys and rows for each of %d tables, got %d and %d" %
                       (len(table_names), len(keys), len(rows)))
    for name, some_keys, some_rows in zip(table_names, keys, rows):
      self.send(model_name, name, some_keys, some_rows)

  def flush(self, timeout=30.):
    """Waits until everything taken so far is available to the servers.

    Args:
      timeout: seconds.

    Raises:
      tf.errors.InternalError: this took longer than `timeout`.
      ValueError: the producer is closed.
    """
    self._run(self._flush, {self._timeout_ms: max(int(timeout * 1000), 0)})

  def close(self):
    """Closes the producer; rows that were not flushed may be lost. Repeated calls are
    no-ops.
    """
    if self._number is not None:
      self._run(self._close, {})
      self._number = None
      self._session.close()

  def __enter__(self):
    return self

  def __exit__(self, kind, value, traceback):
    try:
      if kind is None:
        self.flush()
    finally:
      self.close()
