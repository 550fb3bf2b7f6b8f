# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Sends trained rows to parameter servers by Kafka."""

import numpy as np

from hugectr.inference import params
from hugectr.inference import server


def send(where, brokers, model_name, tables):
  """Sends rows of a model's tables, and waits until the brokers have them.

  Servers whose JSON has `update_source` of type kafka_message_queue with these brokers,
  and a model and tables of these names, replace their rows.

  Args:
    where: string, the call, for errors.
    brokers: string, "host:port;host:port".
    model_name: string.
    tables: list of (name, keys int64 `[N]`, rows float32 `[N, floats]`).

  Raises:
    ImportError: the package hierarchical_parameter_server is not installed.
    ValueError: a key has rows in several slots of a table, or two tables would have one
      name in the server. Then nothing has been sent.
    tf.errors.OpError: librdkafka is not installed, a name is invalid, or the brokers are
      not reached within 30 seconds.
  """
  names = params.table_names(where, [name for name, _, _ in tables])
  for name, keys, _ in tables:
    ordered = np.sort(keys)
    doubled = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(doubled):
      raise ValueError(
          "%s: embedding '%s': key %d has rows in several slots, and a server has one row of "
          "a key: expected keys that differ between slots, as with slot_size_array" %
          (where, name, ordered[doubled[0]]))
  with server.package(where).Producer(brokers=brokers) as producer:
    for name, (_, keys, rows) in zip(names, tables):
      producer.send(model_name, name, keys, rows)
