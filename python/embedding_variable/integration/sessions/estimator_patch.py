# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: Estimators.

Why: canned linear Estimators summarise the fraction of zero weights, which reads all
weights whole, embedding variables too. And DeepRec's export functions take
`save_incr_model`, which requests a SavedModel into which incremental checkpoints can be
restored. Every SavedModel of this package allows that.
"""

from tensorflow.python.framework import constant_op
from tensorflow.python.platform import tf_logging as logging
from tensorflow.python.util import nest

from embedding_variable.integration import patching
from embedding_variable.variables import variable as ev


def install():
  """Replaces that summary and the exports, if Estimators are installed."""
  try:
    # pylint: disable=g-import-not-at-top
    from tensorflow_estimator.python.estimator import estimator
    from tensorflow_estimator.python.estimator.canned import linear
    # pylint: enable=g-import-not-at-top
  except ImportError as e:
    logging.debug("embedding_variable: Estimators are left alone (%s)", e)
    return
  patching.wrap(linear, "_compute_fraction_of_zero", _compute_fraction_of_zero)
  for name in ("export_saved_model", "export_savedmodel"):
    patching.wrap(estimator.Estimator, name, patching.with_save_incr_model)


def _compute_fraction_of_zero(stock):

  def compute_fraction_of_zero(variables, *args, **kwargs):
    flat = nest.flatten(variables)
    dense = [v for v in flat if not ev.is_embedding_variable(v)]
    if len(dense) == len(flat):
      return stock(variables, *args, **kwargs)
    return stock(dense, *args, **kwargs) if dense else constant_op.constant(0.0)

  return compute_fraction_of_zero
