# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exports a trained model as a SavedModel without optimizer and input files."""

import tensorflow.compat.v1 as tf

import criteo
import criteo_input


def export(directory, checkpoint, categories_type, probability, make_session):
  """Writes a SavedModel with the signature `serving_default`.

  Inputs: `numbers` float32 [B, 13], as in data files, 0 where empty; `categories` [B, 26],
  strings or int64 as in the training data. Output: `probability` float32 [B]. The graph
  hashes the ids, and needs only the op library.

  Args:
    directory: string; must not exist.
    checkpoint: prefix of the checkpoint with the model's variables.
    categories_type: tf.string or tf.int64.
    probability: function of (numeric, list of 26 ids) that builds the model.
    make_session: function that returns a session of the default graph.
  """
  with tf.Graph().as_default():
    numbers = tf.placeholder(tf.float32, [None, criteo.NUM_NUMERIC], "numbers")
    categories = tf.placeholder(
        categories_type, [None, criteo.NUM_CATEGORICAL], "categories")
    numeric, ids = criteo_input.features(numbers, categories)
    output = probability(numeric, tf.unstack(ids, criteo.NUM_CATEGORICAL))
    saver = tf.train.Saver()
    with make_session() as session:
      saver.restore(session, checkpoint)
      tf.saved_model.simple_save(
          session, directory, {"numbers": numbers, "categories": categories},
          {"probability": output})
