# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Readers: files to batches, by threads that read ahead of training.

`norm_dataset`, `raw_dataset` and `parquet_dataset` give scripts these batches as a
`tf.data.Dataset`. Only these functions import TensorFlow, on first use.
"""

import importlib

_DATASETS = ("norm_dataset", "parquet_dataset", "raw_dataset")

# Upstream's names that this package does not have, with the reason.
_MISSING = {"DataSource": "this package does not read HDFS, S3 or GCS; copy the files to a "
                          "local folder"}


def __getattr__(name):
  if name not in _DATASETS:
    raise AttributeError("module 'hugectr.data' has no attribute '%s'%s" % (
        name, ": " + _MISSING[name] if name in _MISSING else ""))
  return getattr(importlib.import_module("hugectr.data.datasets"), name)
