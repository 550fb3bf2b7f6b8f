# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The running server from Python: models, rows, metrics.

All functions are thread-safe, need no session or graph of the caller's, and act on the
server of this process, whichever graph started it.
"""

import json
import os

import numpy as np
import tensorflow as tf

from hierarchical_parameter_server import _lib
from hierarchical_parameter_server import initialization


def _run(build):
  """Returns what the op that build() gives evaluates to, in a session of its own."""
  with tf.Graph().as_default():
    fetched = build()
    # No GPU is taken for it.
    config = tf.compat.v1.ConfigProto(device_count={"GPU": 0})
    with tf.compat.v1.Session(config=config) as session:
      return session.run(fetched)


def _command(command, argument=""):
  answer = _run(lambda: _lib.load().hps_command(command=command, argument=argument))
  return answer.decode("utf-8")


def start(ps_config_file, global_batch_size=1):
  """Starts the server without a graph of the caller's; as running hps.Init's tensor."""
  _run(lambda: initialization.init_op(ps_config_file, global_batch_size))


def stop():
  """Ends the server; lookups that run end with their rows. Another one may start."""
  _command("stop")


def add_models(ps_config_file):
  """Adds the models of a configuration file to the running server: all, or none.

  Databases of the file are not looked at: the server's are used.

  Raises:
    tf.errors.AlreadyExistsError: there is a model of one of the names.
    tf.errors.OpError: as hps.Init.
  """
  _command("add_models", os.fsencode(ps_config_file))


def reload_model(model_name):
  """Loads a model's tables from its folders again; lookups go on meanwhile.

  Afterwards the tables have the rows of the files and no others, whatever push_rows had
  stored; but in Redis and RocksDB, where an update source feeds the model, rows of keys that
  are not in the files stay. These two change row by row under the lookups: an error on the
  way (other than one of the files' sizes) leaves some rows new and others old.

  Raises:
    tf.errors.NotFoundError: no such model.
    tf.errors.OpError: a file does not fit; the old tables are served on.
  """
  _command("reload_model", model_name)


def remove_model(model_name):
  """Takes a model away. Lookups in it fail from now on with NotFoundError.

  Raises:
    tf.errors.NotFoundError: no such model.
  """
  _command("remove_model", model_name)


def push_rows(model_name, table_name, keys, rows):
  """Stores rows in a table, each as a whole; the next lookup sees them.

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
  """Returns what the server has served, as a dict.

  `models`: a list with `model` and `tables`; a table has, since it was loaded: `lookups`
  (calls), `keys` (ids), `from_volatile`, `from_persistent`, `defaults` (ids by where their
  row came from), `unavailable` (ids that have the default row because a tier was away),
  `failed` (calls), `nanoseconds` (in lookups), `latency` (calls of less than
  1, 2, 4, ... microseconds, each without those before), and of each tier `rows`,
  `host_bytes`, `inserted`, `evicted`.

  `tiers`: for `volatile` and `persistent` None, or of a Redis or RocksDB `away` (whether
  lookups skip it at present), `failures` and `skipped` (lookups that did not reach it, and
  that did not try), `skips` (`on_unavailable` is "skip") and `last_error`.

  `updates`: of each reader of the update source `group`, `received_rows`, `delivered_rows`
  (stored), `rejected_rows` and `rejected` (rows and batches that no table takes),
  `malformed` (messages or files), `failures` (that were tried again), `waiting` (messages or
  files behind what was read; -1: not known), and the last reasons as `last_malformed`,
  `last_rejected`, `last_failure`.

  Raises:
    tf.errors.FailedPreconditionError: no server runs.
  """
  return json.loads(_command("metrics"))


def notes():
  """Returns what in the running configuration has no or another effect, as strings."""
  return json.loads(_command("notes"))


def health():
  """Returns `tiers` of metrics(), without asking any database.

  Raises:
    tf.errors.FailedPreconditionError: no server runs.
  """
  return json.loads(_command("health"))


def check(ps_config_file, connect=False):
  """Returns what is wrong with a configuration, without starting a server.

  Args:
    ps_config_file: path of the configuration.
    connect: bool, whether to try to reach its Redis and its RocksDB. It changes nothing
      there and takes at most `timeout_ms`.

  Returns:
    dict: `errors`, a list of strings (of the file, and of the tables' files); `notes`, a list
    of strings; `plan`, None or a dict with `tables` (of each: rows, width, file_bytes,
    host_bytes, lookup_bytes) and `host_bytes`; `tiers`, None or with `connect` a list of
    dicts: `tier`, `what` (type and address), `milliseconds`, `error` ("" where it was
    reached).
  """
  path = os.fsencode(ps_config_file)
  found = json.loads(_command("check", path))
  found["tiers"] = None
  # Without a plan the file has mistakes, and does not say what to reach.
  if connect and found["plan"] is not None:
    found["tiers"] = json.loads(_command("connect", path))
  return found


def loaded_rows():
  """Returns how many rows this process has loaded so far: how far a start is."""
  return int(_command("loaded_rows"))
