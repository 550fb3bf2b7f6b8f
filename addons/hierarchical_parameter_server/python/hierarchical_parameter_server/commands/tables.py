# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Finds the table that a command names, and makes a callable that looks it up."""

import tensorflow as tf

from hierarchical_parameter_server import _lib
from hierarchical_parameter_server import serving


def find(model, table):
  """Returns (model, number, facts) of a table of the running server.

  Args:
    model: name, or None for the first one.
    table: number, or name.

  Raises:
    ValueError: it does not exist; the message lists the existing ones.
  """
  models = {m["model"]: m["tables"] for m in serving.metrics()["models"]}
  model = model or sorted(models)[0]
  if model not in models:
    raise ValueError("there is no model '%s'; the models are %s" %
                     (model, ", ".join(sorted(models))))
  names = [t["table"] for t in models[model]]
  number = names.index(table) if table in names else None
  if number is None:
    try:
      number = int(table)
    except ValueError:
      number = -1
  if not 0 <= number < len(names):
    raise ValueError("model '%s' has no table '%s'; its tables are %s" %
                     (model, table, ", ".join(names)))
  return model, number, models[model][number]


def lookup_callable(session, model, number, width, dtype):
  """Returns a function from ids to rows, in a session of the default graph."""
  ids = tf.compat.v1.placeholder(dtype, [None])
  rows = _lib.load().hps_lookup(
      ids=ids, init_status="", model_name=model, table_id=number, emb_vec_size=width)
  return session.make_callable(rows, [ids])
