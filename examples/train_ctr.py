# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains a click-through model on data in Criteo's format.

  python examples/train_ctr.py --demo                      # generated data
  python examples/train_ctr.py --demo --model=dcnv2
  python examples/train_ctr.py --data=train.txt            # Criteo's Kaggle data
  python examples/train_ctr.py --data=parquet/             # the same columns in Parquet
  python examples/train_ctr.py --demo --device=gpu         # all but the input on a GPU

Each of the 26 categories has an embedding variable of its own (two in models
with a linear part); one sok.lookup_sparse looks up all of them. After training
the program evaluates, writes a checkpoint, restores it into a fresh graph and
evaluates again: the AUC must be the same to the bit.
"""

import collections
import contextlib
import os
import sys
import tempfile
import time
import warnings

from absl import app
from absl import flags
import numpy as np

# TensorFlow 1.15 logs many deprecation warnings.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
warnings.simplefilter("ignore", FutureWarning)

import tensorflow.compat.v1 as tf  # pylint: disable=g-import-not-at-top

if tf.executing_eagerly():  # TensorFlow 2.x
  tf.disable_v2_behavior()

import auc as auc_lib
import criteo
import criteo_input
import ctr_data
import embeddings
import exporting
import models
import progress
from models import dcnv2

FLAGS = flags.FLAGS

flags.DEFINE_bool("demo", False, "Generate the data.")
flags.DEFINE_string(
    "data", "", "A train.txt in Criteo's format; or a Parquet file, or a folder of *.parquet, "
    "with the columns label, I1 to I13 and C1 to C26. Categories in Parquet are text, or "
    "integers, which are taken as ids.")
flags.DEFINE_string(
    "eval_data", "", "Data to evaluate on. Without it the first eval_samples "
    "samples of --data are evaluated on and not trained on.")
flags.DEFINE_enum("model", "dlrm", sorted(models.MODELS), "The model.")
flags.DEFINE_integer(
    "steps", None, "Training steps. Default: 600 with --demo, one pass through the data "
    "with --data.")
flags.DEFINE_integer("batch_size", 2048, "Samples per step.", lower_bound=1)
flags.DEFINE_integer("eval_samples", 100000, "Samples to evaluate on.",
                     lower_bound=1)
flags.DEFINE_integer("dim", 16, "Floats per embedding row.", lower_bound=1)
flags.DEFINE_enum(
    "lookup", embeddings.SOK, embeddings.LOOKUPS,
    "sok: embedding variables, one sok.lookup_sparse for all. tf: embedding "
    "variables, tf.nn.embedding_lookup_sparse for each. dense: stock variables of "
    "--dense_rows rows, in which ids collide.")
flags.DEFINE_integer("dense_rows", 100000, "Rows per table of --lookup=dense.",
                     lower_bound=1)
flags.DEFINE_enum(
    "device", None, ["cpu", "gpu"],
    "The device of lookups, model and optimizer; the CPU reads the input. Default: "
    "TensorFlow's placement. gpu needs a TensorFlow with GPU devices: "
    "`python -m embedding_variable.gpu` sets one up.")
flags.DEFINE_enum(
    "storage", None, embeddings.STORAGES,
    "The memory of embedding variables' rows. dram: CPU memory. hbm: GPU memory. auto: GPU "
    "memory if the process can use a GPU. Default: hbm with --device=gpu, else dram.")
flags.DEFINE_enum("value_dtype", "float32", ["float32", "float16", "bfloat16"],
                  "The type in which rows keep their values; --storage=dram if narrow.")
flags.DEFINE_enum("value_rounding", "stochastic", ["stochastic", "nearest"],
                  "How updates round values to a narrower type.")
flags.DEFINE_integer("cross_layers", dcnv2.CROSS_LAYERS, "Cross layers of --model=dcnv2.",
                     lower_bound=1)
flags.DEFINE_integer(
    "cross_rank", dcnv2.CROSS_RANK, "Rank of the matrices of --model=dcnv2's cross layers; "
    "0: square matrices.", lower_bound=0)
flags.DEFINE_enum("optimizer", "adam", ["adagrad", "adam", "ftrl", "sgd"],
                  "A stock optimizer.")
flags.DEFINE_float("learning_rate", 0.004, "Learning rate; adagrad needs more, "
                   "about 0.03.")
flags.DEFINE_integer("seed", 1, "Seed of the generated data and of the weights.")
flags.DEFINE_string(
    "work_dir", "", "Folder for generated data and checkpoints. Default: a "
    "temporary folder that is removed at the end.")
flags.DEFINE_string(
    "summaries", "", "A folder for TensorBoard: loss, samples per second, AUC, and size and "
    "growth of the tables.")
flags.DEFINE_integer("summary_steps", 100, "Steps between summaries.", lower_bound=1)
flags.DEFINE_string(
    "export", "", "A new folder, for the trained model as a SavedModel.")

_DEMO_STEPS = 600
_EVAL_BATCH = 8192

# summary: string tensor, or None without --summaries.
Graph = collections.namedtuple(
    "Graph", ["source", "train_batches", "eval_batches", "train_op", "loss",
              "probability", "label", "saver", "summary"])


def make_optimizer(name, learning_rate):
  """Returns a stock optimizer."""
  if name in ("adagrad", "ftrl"):
    # The loss is a mean over thousands of samples, so squared gradients of a row
    # are tiny; with the default 0.1 rows would hardly change.
    optimizer = {
        "adagrad": tf.train.AdagradOptimizer,
        "ftrl": tf.train.FtrlOptimizer,
    }[name]
    return optimizer(learning_rate, initial_accumulator_value=1e-5)
  return {
      "adam": tf.train.AdamOptimizer,
      "sgd": tf.train.GradientDescentOptimizer,
  }[name](learning_rate)


class NoGpu(Exception):
  """TensorFlow has no GPU device. The message has the remedy."""


def make_session():
  """Returns a session that has --device.

  Raises:
    NoGpu: --device is a GPU, and TensorFlow has none.
  """
  config = tf.ConfigProto()
  if FLAGS.device == "gpu":
    # Leaves GPU memory for rows.
    config.gpu_options.allow_growth = True
    # TensorFlow 1.15 has no GPU kernels for parts of stock lookups and for FTRL of dense
    # variables. Those run on the CPU.
    config.allow_soft_placement = (FLAGS.lookup == embeddings.DENSE or
                                   FLAGS.optimizer == "ftrl")
  session = tf.Session(config=config)
  if FLAGS.device == "gpu":
    devices = [d.name for d in session.list_devices()]
    if not any(":GPU:" in name for name in devices):
      session.close()
      raise NoGpu(
          "--device=gpu, but this TensorFlow (%s) has no GPU device, only %s. On a "
          "machine with an NVIDIA card `python -m embedding_variable.gpu setup DIR` sets "
          "up TensorFlow 1.15.0's GPU build, and `python -m embedding_variable.gpu run "
          "DIR -- python examples/train_ctr.py ...` starts this with it" %
          (tf.__version__, ", ".join(devices)))
  return session


def device():
  """Returns the context that places lookups, model and optimizer on --device."""
  return (tf.device("/%s:0" % FLAGS.device) if FLAGS.device else
          contextlib.nullcontext())


def storage():
  """Returns the one of embeddings.STORAGES that holds the rows."""
  return FLAGS.storage or ("hbm" if FLAGS.device == "gpu" else "dram")


def model_logits(numeric, ids, rows, ids_on=None):
  """Builds tables and model. Returns logits float32 [B].

  Args:
    numeric: float32 [B, 13].
    ids: list of 26 int64 [B].
    rows: one of embeddings.STORAGES.
    ids_on: device of the ops that prepare the ids; None for the caller's device.
  """
  model = models.MODELS[FLAGS.model]
  looked_up = embeddings.lookup(
      ids, model.tables(FLAGS.dim), FLAGS.lookup, FLAGS.dense_rows, rows, ids_on=ids_on,
      values=dict(value_dtype=FLAGS.value_dtype, value_rounding=FLAGS.value_rounding))
  options = {}
  if model is dcnv2:
    options = dict(cross_layers=FLAGS.cross_layers, cross_rank=FLAGS.cross_rank)
  return model.logits(numeric, looked_up, **options)


def served_probability(numeric, ids):
  """Builds the model for --export: without a device, with rows in CPU memory."""
  return tf.sigmoid(model_logits(numeric, ids, "dram"))


def add_summaries(loss):
  """Returns the merged summaries of the loss and of the tables."""
  # --lookup=dense does not import it otherwise.
  import embedding_variable  # pylint: disable=g-import-not-at-top
  with tf.device("/cpu:0"):
    return tf.summary.merge(
        [tf.summary.scalar("loss", loss)] + embedding_variable.summaries())


def build(data):
  """Builds input, model, update and saver in the default graph."""
  tf.set_random_seed(FLAGS.seed)
  with tf.device("/cpu:0") if FLAGS.device else contextlib.nullcontext():
    step = tf.train.get_or_create_global_step()
    train = criteo_input.dataset(
        batch_size=FLAGS.batch_size, repeat=bool(FLAGS.steps), **data.train)
    evaluation = criteo_input.dataset(batch_size=_EVAL_BATCH, **data.evaluation)
    train_batches = tf.data.make_one_shot_iterator(train)
    eval_batches = tf.data.make_initializable_iterator(evaluation)
    # Fed with the handle of one of the two iterators.
    source = tf.placeholder(tf.string, [])
    batch = criteo_input.unpack(
        tf.data.Iterator.from_string_handle(
            source, tf.data.get_output_types(train),
            tf.data.get_output_shapes(train)).get_next())

  with device():
    logits = model_logits(batch.numeric, batch.ids, storage(),
                          ids_on="/cpu:0" if FLAGS.device else None)
    probability = tf.sigmoid(logits)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
        labels=batch.label, logits=logits))
    train_op = make_optimizer(FLAGS.optimizer, FLAGS.learning_rate).minimize(
        loss, global_step=step)
  return Graph(source, train_batches, eval_batches, train_op, loss, probability,
               batch.label, tf.train.Saver(),
               add_summaries(loss) if FLAGS.summaries else None)


def scalar(tag, value):
  """Returns a summary of one number."""
  return tf.Summary(
      value=[tf.Summary.Value(tag=tag, simple_value=value)])


def train(session, graph, data, writer=None):
  """Trains. Returns (mean losses of the first and the last tenth, samples/s).

  Args:
    session: a session.
    graph: Graph.
    data: Data.
    writer: FileWriter of --summaries, or None.
  """
  steps = FLAGS.steps or -(-data.train_samples // FLAGS.batch_size)
  feed = {graph.source: session.run(graph.train_batches.string_handle())}
  losses = []
  # The time starts after the first step, which also builds the input pipeline.
  start = None
  with progress.ProgressBar(steps, "training") as bar:
    while not FLAGS.steps or len(losses) < steps:
      fetches = [graph.train_op, graph.loss]
      summarized = writer and len(losses) % FLAGS.summary_steps == 0
      if summarized:
        fetches.append(graph.summary)
      try:
        _, loss, *summary = session.run(fetches, feed)
      except tf.errors.OutOfRangeError:
        break
      losses.append(loss)
      if start is None:
        start = time.time()
      rate = ((len(losses) - 1) * FLAGS.batch_size /
              max(time.time() - start, 1e-9))
      if summarized:
        writer.add_summary(summary[0], len(losses))
        if len(losses) > 1:
          writer.add_summary(scalar("samples_per_second", rate), len(losses))
      # Without --steps the number of steps is an estimate.
      bar.update(min(len(losses), steps), "loss %.4f  %d samples/s" %
                 (np.mean(losses[-20:]), rate))
  tenth = max(1, len(losses) // 10)
  return np.mean(losses[:tenth]), np.mean(losses[-tenth:]), rate


def evaluate(session, graph):
  """Returns (labels, probabilities), each [n], of the evaluation lines."""
  session.run(graph.eval_batches.initializer)
  feed = {graph.source: session.run(graph.eval_batches.string_handle())}
  labels, probabilities = [], []
  while True:
    try:
      label, probability = session.run([graph.label, graph.probability], feed)
    except tf.errors.OutOfRangeError:
      return np.concatenate(labels), np.concatenate(probabilities)
    labels.append(label)
    probabilities.append(probability)


Result = collections.namedtuple(
    "Result", ["first_loss", "last_loss", "samples_per_second", "auc",
               "restored_auc", "same_bits", "best_auc", "checkpoint"])


def summary_writer():
  """Returns the context manager of the FileWriter of --summaries, or of None."""
  if not FLAGS.summaries:
    return contextlib.nullcontext()
  return tf.summary.FileWriter(FLAGS.summaries)


def run(data, folder):
  """Trains, evaluates, saves, restores into a fresh graph, exports. Returns Result."""
  with tf.Graph().as_default():
    graph = build(data)
    with make_session() as session, summary_writer() as writer:
      session.run(tf.global_variables_initializer())
      first_loss, last_loss, rate = train(session, graph, data, writer)
      labels, trained = evaluate(session, graph)
      auc = auc_lib.auc(labels, trained)
      if writer:
        step = session.run(tf.train.get_global_step())
        writer.add_summary(scalar("evaluation/auc", auc), step)
      print("evaluation AUC %.6f on %d samples" % (auc, len(labels)))
      checkpoint = graph.saver.save(
          session, os.path.join(folder, "model.ckpt"),
          global_step=tf.train.get_global_step())
      print("checkpoint %s" % checkpoint)
  with tf.Graph().as_default():
    graph = build(data)
    with make_session() as session:
      graph.saver.restore(session, checkpoint)
      labels, restored = evaluate(session, graph)
  restored_auc = auc_lib.auc(labels, restored)
  if FLAGS.export:
    exporting.export(
        FLAGS.export, checkpoint, criteo_input.categories_type(data.train["path"]),
        served_probability, make_session)
    print("SavedModel %s" % FLAGS.export)
  return Result(first_loss, last_loss, rate, auc, restored_auc,
                trained.tobytes() == restored.tobytes(), data.best_auc,
                checkpoint)


_NEXT = """
What to try next:
  --model=dcnv2                another model: %(models)s
  --lookup=dense               stock variables instead: collisions cost AUC
  --optimizer=adagrad --learning_rate=0.03
                               any stock optimizer works on embedding variables
  --data=PATH/train.txt        the real Criteo data, once through
  --work_dir=DIR               keep the data and the checkpoint, then look inside:
                               python -m embedding_variable inspect DIR
  --summaries=DIR              curves: tensorboard --logdir=DIR
  --export=DIR                 a SavedModel, which docs/serving.md loads
"""


def report(result):
  """Prints the outcome. Returns the exit status: 1 if the restored AUC differs."""
  print("samples per second  %d" % result.samples_per_second)
  print("training loss       %.4f at the start, %.4f at the end" %
        (result.first_loss, result.last_loss))
  if result.best_auc is None:
    print("AUC                 %.6f" % result.auc)
  else:
    print("AUC                 %.6f of %.6f, the best possible on this data" %
          (result.auc, result.best_auc))
  if result.auc != result.restored_auc or not result.same_bits:
    print("AUC after restore   %.17g, but %.17g before: NOT the same" %
          (result.restored_auc, result.auc))
    return 1
  print("AUC after restore   %.6f, the same to the bit" % result.restored_auc)
  print(_NEXT % {"models": ", ".join(sorted(models.MODELS))})
  return 0


def check_device():
  """Raises NoGpu as `make_session` does; called before data is generated."""
  with tf.Graph().as_default():
    make_session().close()


def main(argv):
  if len(argv) > 1:
    raise app.UsageError("unexpected arguments: %s" % " ".join(argv[1:]), exitcode=2)
  if FLAGS.demo == bool(FLAGS.data):
    raise app.UsageError(
        "give --data=PATH to a train.txt in Criteo's format or to Parquet, or --demo to "
        "train on generated data", exitcode=2)
  if FLAGS.export and os.path.exists(FLAGS.export):
    raise app.UsageError("--export=%s: it exists; a SavedModel is written into a new folder" %
                         FLAGS.export, exitcode=2)
  if FLAGS.demo and FLAGS.steps is None:
    FLAGS.steps = _DEMO_STEPS
  tf.logging.set_verbosity(tf.logging.ERROR)
  try:
    check_device()
  except NoGpu as e:
    print("error: %s" % e, file=sys.stderr)
    return 1
  try:
    return train_and_report()
  except criteo.DataError as e:
    print("error: %s" % e, file=sys.stderr)
    return 2


def train_and_report():
  """Makes or reads the data, trains and reports. Returns the exit status.

  Raises:
    criteo.DataError: a file of --data or --eval_data cannot be read or has another format.
  """
  with tempfile.TemporaryDirectory() as temporary:
    folder = FLAGS.work_dir or temporary
    os.makedirs(folder, exist_ok=True)
    if FLAGS.demo:
      samples = FLAGS.steps * FLAGS.batch_size
      print("generating %d samples in Criteo's format ..." % samples)
      data = ctr_data.generate(folder, samples, FLAGS.eval_samples, FLAGS.seed)
    else:
      data = ctr_data.of_files(FLAGS.data, FLAGS.eval_data, FLAGS.eval_samples)
    try:
      result = run(data, folder)
    except (tf.errors.InvalidArgumentError, tf.errors.UnknownError):
      # TensorFlow's message names ops. This search names the file and the line.
      for part in (data.train, data.evaluation):
        ctr_data.check(part["path"])
      raise
    return report(result)


if __name__ == "__main__":
  app.run(main)
