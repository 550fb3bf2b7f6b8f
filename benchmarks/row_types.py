# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures what rows of 16 and 8 bits cost: AUC and normalised entropy.

  bazel run //benchmarks:row_types
  bazel run //benchmarks:row_types -- --training=all

For each seed trains examples/train_ctr.py's model on generated data in Criteo's format.
With --training once with each type of values and rounding, and twice with float32 and other
initial weights: a training is so sensitive that their differences are its noise. Otherwise
evaluates one model with rows as they are and as the parameter server stores them in fewer
bytes. Each feature has one id, so rounding what a lookup returns gives the bits of a table
that was rounded.

Prints AUC, normalised entropy (the cross entropy over that of the mean click rate) and their
differences to float32. Flags are also those of train_ctr.py, such as --steps.
"""

import collections
import tempfile

from absl import app
from absl import flags
import numpy as np
import tensorflow.compat.v1 as tf

if tf.executing_eagerly():  # TensorFlow 2.x
  tf.disable_v2_behavior()

# pylint: disable=wrong-import-position
from embedding_variable.checkpoint_format import packed_rows
import auc
import criteo_input
import ctr_data
import embeddings
import models
import train_ctr

FLAGS = flags.FLAGS
flags.DEFINE_integer("seeds", 3, "Models to train.", lower_bound=1)
flags.DEFINE_integer("train_samples", 1200000, "Samples to generate for the training.",
                     lower_bound=1)

flags.DEFINE_list("training", [], "Train with these types of values, instead of serving them in "
                  "fewer bytes; all: each one.")

_EVAL_BATCH = 8192

# value_dtype, value_rounding and what is added to the seed of the initial weights; the first
# training is what others are compared to.
_TRAININGS = collections.OrderedDict([
    ("float32", ("float32", "nearest", 0)),
    ("float32 other weights", ("float32", "nearest", 1000)),
    ("float32 yet others", ("float32", "nearest", 2000)),
    ("float16 stochastic", ("float16", "stochastic", 0)),
    ("float16 nearest", ("float16", "nearest", 0)),
    ("bfloat16 stochastic", ("bfloat16", "stochastic", 0)),
    ("bfloat16 nearest", ("bfloat16", "nearest", 0))])


def _rounded(rows, row_type):
  """Returns float32 rows [B, dim] as a table of that type serves them."""
  def of_type(rows):
    stored = packed_rows.pack(np.arange(len(rows)), rows, row_type, "a table")
    return packed_rows.unpack(stored, row_type, rows.shape[1])

  result = tf.py_func(of_type, [rows], tf.float32, stateful=False)
  result.set_shape(rows.shape)
  return result


def _evaluate(data, checkpoint, row_type):
  """Returns (labels, probabilities)."""
  with tf.Graph().as_default():
    batches = tf.data.make_initializable_iterator(
        criteo_input.dataset(batch_size=_EVAL_BATCH, **data.evaluation))
    source = tf.placeholder(tf.string, [])
    batch = criteo_input.unpack(tf.data.Iterator.from_string_handle(
        source, tf.data.get_output_types(batches), tf.data.get_output_shapes(batches)).get_next())
    model = models.MODELS[FLAGS.model]
    looked_up = embeddings.lookup(batch.ids, model.tables(FLAGS.dim), embeddings.SOK)
    looked_up = {name: [_rounded(rows, row_type) for rows in group]
                 for name, group in looked_up.items()}
    probability = tf.sigmoid(model.logits(batch.numeric, looked_up))
    graph = train_ctr.Graph(source, None, batches, None, None, probability, batch.label,
                            tf.train.Saver(), None)
    with train_ctr.make_session() as session:
      graph.saver.restore(session, checkpoint)
      return train_ctr.evaluate(session, graph)


def _scores(labels, probabilities):
  """Returns (AUC, normalised entropy)."""
  p = np.clip(probabilities.astype(np.float64), 1e-12, 1 - 1e-12)
  cross = -np.mean(np.where(labels > 0, np.log(p), np.log(1 - p)))
  rate = labels.mean(dtype=np.float64)
  return auc.auc(labels, probabilities), cross / -(
      rate * np.log(rate) + (1 - rate) * np.log(1 - rate))


def _norms(checkpoint):
  """Returns the quartiles and the largest of the tables' row norms."""
  reader = tf.train.NewCheckpointReader(checkpoint)
  names = [name for name in reader.get_variable_to_shape_map()
           if name.endswith("-values") and name.count("/") == 0]
  norms = np.concatenate([np.linalg.norm(reader.get_tensor(name), axis=1) for name in names])
  return np.percentile(norms, [25, 50, 75, 100])


def main(argv):
  if len(argv) > 1:
    raise app.UsageError("expected no arguments, got %s" % " ".join(argv[1:]))
  FLAGS.demo, FLAGS.steps = True, FLAGS.steps or FLAGS.train_samples // FLAGS.batch_size
  tf.logging.set_verbosity(tf.logging.ERROR)
  ways = packed_rows.ROW_TYPES
  if FLAGS.training:
    ways = list(_TRAININGS) if FLAGS.training == ["all"] else FLAGS.training
  worst = dict.fromkeys(ways[1:], (0., 0.))
  for seed in range(1, FLAGS.seeds + 1):
    with tempfile.TemporaryDirectory(prefix="row_types_") as folder:
      data = ctr_data.generate(folder, FLAGS.train_samples, FLAGS.eval_samples, seed)
      exact = checkpoint = None
      for way in ways:
        if FLAGS.training or checkpoint is None:
          FLAGS.value_dtype, FLAGS.value_rounding, other = _TRAININGS[
              way if FLAGS.training else "float32"]
          FLAGS.seed = seed + other
          checkpoint = train_ctr.run(data, tempfile.mkdtemp(dir=folder)).checkpoint
          print("seed %d: row norms %s (quartiles, largest)" % (
              seed, " ".join("%.3f" % norm for norm in _norms(checkpoint))))
        row_type = packed_rows.ROW_TYPES[0] if FLAGS.training else way
        found = _scores(*_evaluate(data, checkpoint, row_type))
        exact = exact or found
        lost = [abs(a - b) for a, b in zip(found, exact)]
        print("seed %d, %-7s: AUC %.6f (%.1e), normalised entropy %.6f (%.1e)" % (
            seed, way, found[0], lost[0], found[1], lost[1]), flush=True)
        if way in worst:
          worst[way] = tuple(map(max, worst[way], lost))
  for way, lost in worst.items():
    print("%s: largest difference of AUC %.1e, of normalised entropy %.1e" % ((way,) + lost))


if __name__ == "__main__":
  app.run(main)
