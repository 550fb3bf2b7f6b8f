# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Controls the running server from Python: models, rows, metrics.

All functions are thread-safe, need no session or graph of the caller, and act on the
server of this process, whichever graph started it.
"""

import json
import os

import numpy as np
import tensorflow as tf

from hierarchical_parameter_server import _lib
from hierarchical_parameter_server import initialization


def _run(build):
  """Evaluates the tensor returned by build() in a session of its own."""
  with tf.Graph().as_default():
    fetched = build()
    # Takes no GPU.
    config = tf.compat.v1.ConfigProto(device_count={"GPU": 0})
    with tf.compat.v1.Session(config=config) as session:
      return session.run(fetched)


def _command(command, argument=""):
  answer = _run(lambda: _lib.load().hps_command(command=command, argument=argument))
  return answer.decode("utf-8")


def start(ps_config_file, global_batch_size=1):
  """Starts the server without a graph of the caller, like running hps.Init's tensor."""
  _run(lambda: initialization.init_op(ps_config_file, global_batch_size))


def stop():
  """Stops the server; running lookups finish. Another one may be started."""
  _command("stop")


def add_models(ps_config_file):
  """Adds all models of a configuration file to the running server, or none on an error.

  The file's databases are ignored: the server's are used.

  Raises:
    tf.errors.AlreadyExistsError: a model with one of the names exists.
    tf.errors.OpError: as for hps.Init.
  """
  _command("add_models", os.fsencode(ps_config_file))


def reload_model(model_name):
  """Loads a model's tables from its folders again, while lookups go on.

  Afterwards the tables have exactly the files' rows, whatever push_rows stored in
  between. One exception: Redis and RocksDB keep rows of keys that are not in the files
  if an update source feeds the model. These two databases change row by row during the
  reload; after an error in between, some rows are new and others old. A file of the
  wrong size is detected before that.

  Raises:
    tf.errors.NotFoundError: no such model.
    tf.errors.OpError: a file is invalid; the old tables stay in use.
  """
  _command("reload_model", model_name)


def remove_model(model_name):
  """Removes a model. Lookups in it fail from now on with NotFoundError.

  Raises:
    tf.errors.NotFoundError: no such model.
  """
  _command("remove_model", model_name)


def push_rows(model_name, table_name, keys, rows):
  """Stores rows in a table, each as a whole; the next lookup returns them.

  Args:
    model_name, table_name: strings.
    keys: int64 [n].
    rows: float32 [n, width].

  Raises:
    tf.errors.NotFoundError: no such table.
    tf.errors.InvalidArgumentError: another width, or lengths that disagree.
  """
  keys = np.ascontiguousarray(keys, np.int64)
  rows = np.ascontiguousarray(rows, np.float32)
  tag = "hps_et.%s.%s" % (model_name, table_name)
  with tf.Graph().as_default():
    fed_keys = tf.compat.v1.placeholder(tf.int64)
    fed_rows = tf.compat.v1.placeholder(tf.float32)
    op = _lib.load().hps_push_rows(tag=tag, keys=fed_keys, rows=fed_rows)
    config = tf.compat.v1.ConfigProto(device_count={"GPU": 0})
    with tf.compat.v1.Session(config=config) as session:
      session.run(op, {fed_keys: keys, fed_rows: rows})


def metrics():
  """Returns the server's metrics as a dict.

  `models`: a list with `model` and `tables`. A table has, counted since it was loaded:
  `lookups` (calls), `keys` (ids), `from_volatile`, `from_persistent`, `defaults` (ids
  by the source of their row), `unavailable` (ids with the default row because a tier
  was unavailable), `failed` (calls), `nanoseconds` (in lookups), `latency` (calls that
  took less than 1, 2, 4, ... microseconds, each without the previous ones), and for
  each tier `rows`, `host_bytes`, `inserted`, `evicted`.

  `tiers`: `volatile` and `persistent`, each None, or for Redis or RocksDB: `away`
  (whether lookups skip it at present), `failures` (lookups that did not reach it),
  `skipped` (lookups that did not try), `skips` (`on_unavailable` is "skip") and
  `last_error`.

  `updates`: for each reader of the update source `group`, `received_rows`,
  `delivered_rows` (stored), `rejected_rows` and `rejected` (rows and batches that no
  table accepts), `malformed` (messages or files), `failures` (which were retried),
  `waiting` (messages or files not yet read; -1: unknown), and the last reasons as
  `last_malformed`, `last_rejected`, `last_failure`.

  Raises:
    tf.errors.FailedPreconditionError: no server runs.
  """
  return json.loads(_command("metrics"))


def notes():
  """Returns notes, as strings, on keys of the running configuration without effect or
  with an effect that differs from upstream's.
  """
  return json.loads(_command("notes"))


def health():
  """Returns `tiers` of metrics() without accessing a database.

  Raises:
    tf.errors.FailedPreconditionError: no server runs.
  """
  return json.loads(_command("health"))


def check(ps_config_file, connect=False):
  """Checks a configuration without starting a server.

  Args:
    ps_config_file: path of the configuration.
    connect: bool, whether to try to reach its Redis and RocksDB. This changes nothing
      in them and takes at most `timeout_ms`.

  Returns:
    dict: `errors`, a list of strings (about the file and the tables' files); `notes`, a
      list of strings; `plan`, None or a dict with `tables` (for each: rows, width,
      file_bytes, host_bytes, lookup_bytes) and `host_bytes`; `tiers`, None or with
      `connect` a list of dicts: `tier`, `what` (type and address), `milliseconds`,
      `error` ("" if it was reached).
  """
  path = os.fsencode(ps_config_file)
  found = json.loads(_command("check", path))
  found["tiers"] = None
  # Without a plan the file has errors, so its tiers are unknown.
  if connect and found["plan"] is not None:
    found["tiers"] = json.loads(_command("connect", path))
  return found


def loaded_rows():
  """Returns the number of rows this process has loaded so far; shows a start's
  progress.
  """
  return int(_command("loaded_rows"))
