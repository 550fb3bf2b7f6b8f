# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Loads exported models and prints the mean of what each one predicts.

  serve.py SAVED_MODELS DATA MODELS LIBRARY

DATA is a JSON file of columns. MODELS are joined by commas. LIBRARY is the op library,
which embedding variables need, or empty. The package itself is not imported.
"""

import json
import os
import sys

import tensorflow as tf


def main(folder, data, names, library):
  if library:
    tf.load_op_library(library)
  with open(data) as f:
    columns = json.load(f)
  for name in names.split(","):
    with tf.Graph().as_default(), tf.Session() as session:
      model = tf.saved_model.load(session, ["serve"], os.path.join(folder, name))
      signature = model.signature_def["serving_default"]
      predicted = session.run(
          signature.outputs["probability"].name,
          {t.name: columns[key] for key, t in signature.inputs.items()})
      print("%s predicts %.7f" % (name, predicted.mean()))


if __name__ == "__main__":
  main(*sys.argv[1:])
