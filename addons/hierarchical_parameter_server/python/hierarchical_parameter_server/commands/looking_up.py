# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The command `lookup`: prints the rows of keys."""

import numpy as np
import tensorflow as tf

from hierarchical_parameter_server import serving
from hierarchical_parameter_server.commands import tables


def key_type(ps_config_file):
  """Returns the type of a configuration's ids: tf.int64 or tf.int32."""
  plan = serving.check(ps_config_file)["plan"]
  return tf.int64 if plan is None or plan["long_keys"] else tf.int32


def lookup(args, out, err):
  """Prints a line per key: the key and its row."""
  del err
  serving.start(args.config)
  dtype = key_type(args.config)
  model, number, facts = tables.find(args.model, args.table)
  info = np.iinfo(dtype.as_numpy_dtype)
  for key in args.keys:
    if not info.min <= key <= info.max:
      raise ValueError("key %d: expected a key of %d bits" % (key, info.bits))
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    call = tables.lookup_callable(session, model, number, facts["width"], dtype)
    for begin in range(0, len(args.keys), facts["max_keys"]):
      keys = args.keys[begin:begin + facts["max_keys"]]
      for key, row in zip(keys, call(np.array(keys, dtype.as_numpy_dtype))):
        print("%d\t%s" % (key, " ".join("%.9g" % value for value in row)), file=out)
  missing = tables.find(args.model, args.table)[2]["defaults"] - facts["defaults"]
  if missing:
    print("%d of %d keys have the default value" % (missing, len(args.keys)), file=out)
  return True
