# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Readers: files to batches, by threads that read ahead of training.

`norm_dataset`, `raw_dataset` and `parquet_dataset` give scripts these batches as a
`tf.data.Dataset`. Only these functions import TensorFlow, on first use.
"""

import importlib

_DATASETS = ("norm_dataset", "parquet_dataset", "raw_dataset")


def __getattr__(name):
  if name not in _DATASETS:
    raise AttributeError("module 'hugectr.data' has no attribute '%s'" % name)
  return getattr(importlib.import_module("hugectr.data.datasets"), name)
