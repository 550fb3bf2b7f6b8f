# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The optimizers that stock TensorFlow lacks: one table, read by the integration.

To add one: its module here with a `register()` that names its row rule, and its line
in `OPTIMIZERS`.
"""

import sys

from embedding_variable.optimizers import adagrad_decay
from embedding_variable.optimizers import adam_async
from embedding_variable.optimizers import adam_w

# Module of `tensorflow.python.training` in which DeepRec has the class -> the class,
# which is also put on `tf.train`.
OPTIMIZERS = (
    ("adam_async", adam_async.AdamAsyncOptimizer),
    ("adagrad_decay", adagrad_decay.AdagradDecayOptimizer),
    ("adagrad_decay_v2", adagrad_decay.AdagradDecayOptimizerV2),
    ("weight_decay_optimizers", adam_w.AdamWOptimizer),
)


def register():
  """Makes embedding variables take the fused rules of these optimizers."""
  for module in sorted({cls.__module__ for _, cls in OPTIMIZERS}):
    sys.modules[module].register()
