# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Readers: files into batches, by threads ahead of training.

`norm_dataset`, `raw_dataset` and `parquet_dataset` give the batches to scripts of other
kinds, as a `tf.data.Dataset`. Nothing else here needs TensorFlow, which is imported when
one of them is first asked for.
"""

import importlib

_DATASETS = ("norm_dataset", "parquet_dataset", "raw_dataset")


def __getattr__(name):
  if name not in _DATASETS:
    raise AttributeError("module 'hugectr.data' has no attribute '%s'" % name)
  return getattr(importlib.import_module("hugectr.data.datasets"), name)
