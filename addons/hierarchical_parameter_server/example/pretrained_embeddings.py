# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Train a Keras model on top of a pretrained table that stays unchanged.

  python pretrained_embeddings.py --folder=pretrained

The table is served, so it may be larger than memory for training would allow: the layer
has no variable and gets no gradient.
"""

import json
import os

from absl import app
from absl import flags
import numpy as np
import tensorflow as tf

import hierarchical_parameter_server as hps
from hierarchical_parameter_server import convert

FLAGS = flags.FLAGS
flags.DEFINE_string("folder", "pretrained", "Where everything is written.")
flags.DEFINE_integer("epochs", 15, "Rounds of training.", lower_bound=1)

_WORDS, _DIM, _LENGTH = 5000, 16, 6


def main(argv):
  del argv
  os.makedirs(FLAGS.folder, exist_ok=True)
  random = np.random.RandomState(3)
  vectors = random.normal(size=[_WORDS, _DIM]).astype(np.float32)
  convert.write_table(os.path.join(FLAGS.folder, "words"), None, vectors)
  config = os.path.join(FLAGS.folder, "ps.json")
  with open(config, "w") as f:
    json.dump({"supportlonglong": False, "models": [{  # int32 ids
        "model": "words", "sparse_files": ["words"], "embedding_vecsize_per_table": [_DIM],
        "maxnum_catfeature_query_per_table_per_sample": [_LENGTH],
        "default_value_for_each_table": [0.0], "deployed_device_list": [0],
        "max_batch_size": 512}]}, f)

  # The labels depend on the rows of the table.
  sentences = random.randint(0, _WORDS, [2000, _LENGTH]).astype(np.int32)
  labels = (vectors[sentences].mean(1)[:, :1] > 0).astype(np.float32)

  ids = tf.keras.Input([_LENGTH], dtype=tf.int32)
  rows = hps.LookupLayer("words", 0, _DIM, tf.float32, config, 512)(ids)
  mean = tf.keras.layers.GlobalAveragePooling1D()(rows)
  output = tf.keras.layers.Dense(1, activation="sigmoid")(mean)
  model = tf.keras.Model(ids, output)
  model.compile(tf.keras.optimizers.Adam(0.05), "binary_crossentropy", ["accuracy"])
  before = model.evaluate(sentences, labels, batch_size=500, verbose=0)[1]
  model.fit(sentences, labels, batch_size=500, epochs=FLAGS.epochs, verbose=0)
  after = model.evaluate(sentences, labels, batch_size=500, verbose=0)[1]
  print("accuracy %.3f before, %.3f after; %d trained weights" %
        (before, after, model.count_params()))
  if after < 0.9:
    raise SystemExit("the head did not learn")


if __name__ == "__main__":
  app.run(main)
