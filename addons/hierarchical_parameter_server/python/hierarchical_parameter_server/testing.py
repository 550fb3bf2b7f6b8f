# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables and configurations for tests."""

import json
import os

import numpy as np

from hierarchical_parameter_server.checkpoint_format import durable

# Keys that every model gets unless a test sets them.
IN_EVERY_MODEL = {}


def write_table(folder, keys, rows):
  """Writes a table directory; replaces old files by new ones."""
  os.makedirs(folder, exist_ok=True)
  for name, array, dtype in (("key", keys, "<i8"), ("emb_vector", rows, "<f4")):
    path = os.path.join(folder, name)
    with durable.replaced(path) as part:
      np.ascontiguousarray(array, dtype).tofile(part)


def model(name, folders, widths, defaults=None, most=1000, **more):
  """Returns a model's section of a configuration as a dict."""
  config = {
      "model": name,
      "sparse_files": list(folders),
      "embedding_table_names": ["table%d" % t for t in range(len(folders))],
      "embedding_vecsize_per_table": list(widths),
      "maxnum_catfeature_query_per_table_per_sample": [most] * len(folders),
      "default_value_for_each_table": list(defaults or [0.] * len(folders)),
      "deployed_device_list": [0],
      "max_batch_size": 1024,
  }
  config.update(IN_EVERY_MODEL)
  config.update(more)
  return config


def write_config(path, models, **more):
  """Writes a configuration; returns its path."""
  with open(path, "w") as f:
    json.dump(dict(more, models=models), f)
  return path
