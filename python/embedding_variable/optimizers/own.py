# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The table of optimizers that stock TensorFlow lacks, read by the integration.

To add one of DeepRec's, create its module with a `register()` that names its row rule, and add a
line to `OPTIMIZERS`.
"""

import sys

from embedding_variable.optimizers import adagrad_decay
from embedding_variable.optimizers import adam_async
from embedding_variable.optimizers import adam_w
from embedding_variable.optimizers import row_wise_adagrad

# DeepRec's module in `tensorflow.python.training` -> the class, which is also added to
# `tf.train`. `RowWiseAdagradOptimizer` is not DeepRec's and not in `tf.train`.
OPTIMIZERS = (
    ("adam_async", adam_async.AdamAsyncOptimizer),
    ("adagrad_decay", adagrad_decay.AdagradDecayOptimizer),
    ("adagrad_decay_v2", adagrad_decay.AdagradDecayOptimizerV2),
    ("weight_decay_optimizers", adam_w.AdamWOptimizer),
)


def register():
  """Registers the fused rules of these optimizers for embedding variables."""
  for module in sorted({cls.__module__ for _, cls in OPTIMIZERS}):
    sys.modules[module].register()
  row_wise_adagrad.register()
