# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""sok.incremental_model_dump: the rows that changed since a given time."""

import calendar
import datetime

import numpy as np

from sparse_operation_kit.exchange import collectives
from sparse_operation_kit.files import table_files
from sparse_operation_kit.variables import dynamic_variable


def incremental_model_dump(sok_vars, time_threshold, sess=None):
  """Returns the rows of all ranks that were trained, assigned or loaded after a given time.

  Every rank calls it with the same arguments and gets the same result. Row timestamps
  are whole seconds: rows that changed in the same second as `time_threshold` are
  included. Clocks of ranks may differ, so choose the time a few seconds early. Lookups
  do not change rows.

  Example:

    since = datetime.datetime.now(datetime.timezone.utc)
    ...                                                              # train
    keys, values = sok.incremental_model_dump([v], since, session)   # [K], [K, dim]

  Args:
    sok_vars: list of `sok.DynamicVariable` of var_type "hybrid", or one.
    time_threshold: `datetime.datetime`, in UTC if it has no time zone; or a list of
      them, one per variable.
    sess: `tf.Session`; None: the default one.

  Returns:
    (keys, values): lists with one entry per variable: an array `[K]` of its key type in
    ascending order, and float32 `[K, dim]`.

  Raises:
    TypeError: another kind of variable, or of time.
    ValueError: the lists differ in length, there is no session, or arguments differ
      between ranks.
    RuntimeError: another rank failed or did not come. Or the graph is finalized, and
      this is the first call for a table with its present slots, which adds ops.
  """
  what = "sok.incremental_model_dump"
  sok_vars = list(sok_vars) if isinstance(sok_vars, (list, tuple)) else [sok_vars]
  for var in sok_vars:
    if not (isinstance(var, dynamic_variable.DynamicVariable) and
            var.versions_are_times):
      raise TypeError("%s: expected sok.DynamicVariables of var_type 'hybrid', got %r" %
                      (what, var))
  sess = table_files.session_for(sok_vars, sess, what)
  if not isinstance(time_threshold, (list, tuple)):
    time_threshold = [time_threshold] * len(sok_vars)
  if len(time_threshold) != len(sok_vars):
    raise ValueError("%s: expected one time, or one per variable: got %d times and %d "
                     "variables" % (what, len(time_threshold), len(sok_vars)))
  limits = [_seconds(t, what) for t in time_threshold]
  channel = collectives.channel(what)
  channel.check_equal("the variables", repr([v.name for v in sok_vars]))
  all_keys, all_values = [], []
  for var, limit in zip(sok_vars, limits):
    contents, error = None, None
    try:
      contents = table_files.access(var).read(sess)
    except Exception as e:  # pylint: disable=broad-except
      error = e
    channel.check(error)
    mine = (contents.versions >= limit) & table_files.owned_mask(var, contents.keys)
    keys = np.concatenate(channel.gather(contents.keys[mine]))
    values = np.concatenate(channel.gather(contents.values[mine]))
    order = np.argsort(keys, kind="stable")
    all_keys.append(keys[order].astype(var.key_dtype.as_numpy_dtype))
    all_values.append(values[order])
  return all_keys, all_values


def _seconds(time, what):
  """Returns a time as whole seconds since 1970."""
  if not isinstance(time, datetime.datetime):
    raise TypeError("%s: time_threshold: expected a datetime.datetime, got %r" %
                    (what, time))
  # A time without zone is UTC.
  return calendar.timegm(time.utctimetuple())
