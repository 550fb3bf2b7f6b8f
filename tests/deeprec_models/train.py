# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains several models in one process, one after the other.

  train.py --models=din,mmoe --data_location=DIR --output_dir=DIR [FLAGS OF zoo.py]

Each model has a graph and a folder of its own. DIR has the files of data.py, in a folder
for each kind of inputs.
"""

import argparse
import importlib
import os

import tensorflow as tf

import zoo


def folder_of(inputs):
  """Returns the name of the folder with the data of an Inputs."""
  return "%d_labels_%d_strings" % (len(inputs.labels), len(inputs.strings))


def main():
  parser = zoo.parser()
  parser.add_argument("--models", required=True)
  parser.add_argument("--stop_at", help="steps at which a model is saved and restored "
                      "into a new graph, joined by commas", default="")
  args = parser.parse_args()
  stops = [int(s) for s in args.stop_at.split(",") if s] + [args.steps]
  for name in args.models.split(","):
    module = importlib.import_module(name)
    inputs = getattr(module, "INPUTS", zoo.INPUTS)
    own = argparse.Namespace(**vars(args))
    own.output_dir = os.path.join(args.output_dir, name)
    own.data_location = os.path.join(args.data_location, folder_of(inputs))
    print("model " + name)
    for steps in stops:
      own.steps = steps
      is_last = steps == stops[-1]
      own.no_eval = args.no_eval or not is_last
      own.saved_model = (os.path.join(args.saved_model, name)
                         if args.saved_model and is_last else None)
      with tf.Graph().as_default():
        zoo.main(module.model, own, inputs)


if __name__ == "__main__":
  main()
