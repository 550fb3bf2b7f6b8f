# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Flags, input, training and evaluation that the models of this folder share.

The code is in the manner of a training script for DeepRec: it uses DeepRec's names and
imports nothing of this project. Run a model by the launcher:

  python -m embedding_variable.deeprec wdl.py --data_location=DIR

DIR has train.parquet and eval.parquet, or train.csv and eval.csv; `make_data.py` writes
both. With --tf a model uses stock TensorFlow alone, and needs no launcher.
"""

import argparse
import collections
import json
import math
import os
import sys
import time

import tensorflow as tf

from tensorflow.python.ops import partitioned_variables

DENSE = ["I%d" % i for i in range(1, 5)]
SPARSE = ["C%d" % i for i in range(1, 7)]
LABEL = "clicked"

# The columns that a model reads.
#   labels: list of names; with several, a model returns a logit for each.
#   dense: list of names of float columns.
#   strings: list of names of string columns.
Inputs = collections.namedtuple("Inputs", ["labels", "dense", "strings"])

INPUTS = Inputs([LABEL], DENSE, SPARSE)
# The rows of each table, unless it grows (--ev).
BUCKETS = 1000


def _boolean(text):
  return text.lower() in ("true", "1", "yes")


def parser():
  """Returns the parser of the flags of all models."""
  p = argparse.ArgumentParser()
  add = p.add_argument
  add("--data_location", default="./data")
  add("--output_dir", default="./result")
  add("--checkpoint")
  add("--steps", type=int, default=0)
  add("--epochs", type=int, default=1)
  add("--batch_size", type=int, default=512)
  add("--seed", type=int, default=2021)
  add("--save_steps", type=int, default=0)
  add("--keep_checkpoint_max", type=int, default=1)
  add("--no_eval", action="store_true")
  add("--saved_model", help="folder to export the trained model to; it must not exist")
  add("--inter", type=int, default=0)
  add("--intra", type=int, default=0)
  add("--learning_rate", type=float, default=.01)
  add("--input_layer_partitioner", type=int, default=8)
  add("--dense_layer_partitioner", type=int, default=16)
  add("--protocol", choices=["grpc", "grpc++", "star_server"], default="grpc")
  add("--bf16", action="store_true")
  # DeepRec's flags.
  add("--tf", action="store_true")
  add("--optimizer", default="adamasync",
      choices=["adam", "adamasync", "adagraddecay", "adagrad", "gradientdescent"])
  add("--smartstaged", type=_boolean, default=True)
  add("--emb_fusion", type=_boolean, default=True)
  add("--op_fusion", type=_boolean, default=True)
  add("--parquet_dataset", type=_boolean, default=True)
  add("--parquet_dataset_shuffle", type=_boolean, default=False)
  add("--micro_batch", type=int, default=0)
  add("--ev", type=_boolean, default=False)
  add("--ev_elimination", choices=[None, "l2", "gstep"], default=None)
  add("--ev_filter", choices=[None, "counter", "cbf"], default=None)
  add("--workqueue", type=_boolean, default=False)
  add("--group_embedding", choices=[None, "localized", "collective"], default=None)
  return p


def _check_deeprec(args):
  """Stops unless the installed TensorFlow is DeepRec's; --tf turns its features off."""
  if args.tf:
    args.smartstaged = args.emb_fusion = args.op_fusion = args.ev = False
    args.parquet_dataset = args.workqueue = False
    args.group_embedding, args.micro_batch, args.optimizer = None, 0, "adam"
    return
  import pkg_resources  # pylint: disable=g-import-not-at-top
  if "deeprec" not in pkg_resources.get_distribution("Tensorflow").version:
    raise ValueError("these features need DeepRec; run with --tf")
  os.environ["START_STATISTIC_STEP"] = "100"
  os.environ["STOP_STATISTIC_STEP"] = "110"
  os.environ["MALLOC_CONF"] = "background_thread:true,metadata_thp:auto"


def _csv(inputs):
  names = inputs.labels + inputs.dense + inputs.strings
  defaults = [[0.]] * len(inputs.labels + inputs.dense) + [[" "]] * len(inputs.strings)

  def parse(line):
    return _split(inputs, dict(zip(names, tf.io.decode_csv(line, defaults))))

  return parse


def _split(inputs, features):
  """Returns (features, label): [B], or [B, labels] with several."""
  features = dict(features)
  labels = [features.pop(name) for name in inputs.labels]
  return features, labels[0] if len(labels) == 1 else tf.stack(labels, 1)


def dataset(args, name, batch_size, epochs, inputs):
  """Returns the dataset of a file: (dict of features, label)."""
  suffix = ".parquet" if args.parquet_dataset else ".csv"
  files = os.path.join(args.data_location, name + suffix)
  if args.workqueue:
    from tensorflow.python.ops.work_queue import WorkQueue  # pylint: disable=g-import-not-at-top
    queue = WorkQueue([files], num_epochs=epochs)
    files, epochs = queue.input_dataset(), 1
  if args.parquet_dataset:
    from tensorflow.python.data.experimental.ops import dataframe  # pylint: disable=g-import-not-at-top
    from tensorflow.python.data.experimental.ops import parquet_dataset_ops  # pylint: disable=g-import-not-at-top
    field = dataframe.DataFrame.Field
    fields = [field(c, tf.float32, 0) for c in inputs.labels + inputs.dense] + [
        field(c, tf.string, 0) for c in inputs.strings]
    data = parquet_dataset_ops.ParquetDataset(files, batch_size=batch_size,
                                              fields=fields)
    if args.parquet_dataset_shuffle:
      data = data.shuffle(20, seed=args.seed)
    return data.repeat(epochs).map(
        lambda features: _split(inputs, features), num_parallel_calls=2).prefetch(2)
  data = tf.data.TextLineDataset(files).repeat(epochs).batch(batch_size)
  return data.map(_csv(inputs), num_parallel_calls=2).prefetch(2)


def columns(args, names=SPARSE, dimension=8):
  """Returns the lists of numeric columns and of the embeddings of string columns."""
  numeric = [tf.feature_column.numeric_column(name) for name in DENSE]
  embedded = []

  def make(name):
    if args.ev:
      evict = None
      if args.ev_elimination == "gstep":
        evict = tf.GlobalStepEvict(steps_to_live=4000)
      elif args.ev_elimination == "l2":
        evict = tf.L2WeightEvict(l2_weight_threshold=1e-6)
      admit = None
      if args.ev_filter == "counter":
        admit = tf.CounterFilter(filter_freq=2)
      elif args.ev_filter == "cbf":
        admit = tf.CBFFilter(filter_freq=2, max_element_size=2**16,
                             false_positive_probability=.01)
      column = tf.feature_column.categorical_column_with_embedding(
          name, dtype=tf.string, ev_option=tf.EmbeddingVariableOption(
              evict_option=evict, filter_option=admit))
    else:
      column = tf.feature_column.categorical_column_with_hash_bucket(
          name, BUCKETS, dtype=tf.string)
    options = {} if args.tf else {"do_fusion": args.emb_fusion}
    embedded.append(tf.feature_column.embedding_column(
        column, dimension, initializer=tf.random_normal_initializer(
            stddev=.1, seed=args.seed + len(embedded)), **options))

  if args.group_embedding:
    with tf.feature_column.group_embedding_column_scope(name="categorical"):
      for name in names:
        make(name)
  else:
    for name in names:
      make(name)
  return numeric, embedded


def tower(args, net, name, units, partitioner=None):
  """Returns dense layers, computed in bfloat16 if --bf16 is given."""
  scope = tf.variable_scope(name, partitioner=partitioner, reuse=tf.AUTO_REUSE)
  if args.bf16:
    scope = scope.keep_weights(dtype=tf.float32)
    net = tf.cast(net, tf.bfloat16)
  with scope:
    for i, unit in enumerate(units):
      net = tf.layers.dense(
          net, unit, activation=tf.nn.relu, name="layer_%d" % i,
          kernel_initializer=tf.glorot_uniform_initializer(seed=args.seed + i))
  return tf.cast(net, tf.float32)


def _optimizer(args):
  step = tf.train.get_or_create_global_step()
  if args.optimizer == "adam":
    return tf.train.AdamOptimizer(args.learning_rate)
  if args.optimizer == "adamasync":
    return tf.train.AdamAsyncOptimizer(args.learning_rate)
  if args.optimizer == "adagraddecay":
    return tf.train.AdagradDecayOptimizer(args.learning_rate, step)
  if args.optimizer == "adagrad":
    return tf.train.AdagradOptimizer(args.learning_rate)
  return tf.train.GradientDescentOptimizer(args.learning_rate)


class Cluster(object):
  """The task that TF_CONFIG describes; alone without it."""

  def __init__(self):
    text = os.environ.get("TF_CONFIG")
    self.spec = self.server = None
    self.job, self.index = "worker", 0
    if not text:
      return
    config = json.loads(text)
    self.job, self.index = config["task"]["type"], int(config["task"]["index"])
    hosts = config["cluster"]
    workers = hosts.get("chief", []) + hosts.get("worker", [])
    if self.job == "worker" and "chief" in hosts:
      self.index += len(hosts["chief"])
    self.job = "worker" if self.job == "chief" else self.job
    self.spec = tf.train.ClusterSpec({"ps": hosts["ps"], "worker": workers})

  def start(self, args):
    """Starts this task's server; a parameter server does not return."""
    if self.spec is None:
      return
    self.server = tf.distribute.Server(self.spec, job_name=self.job,
                                       task_index=self.index, protocol=args.protocol)
    if self.job == "ps":
      self.server.join()

  @property
  def num_ps(self):
    return self.spec.num_tasks("ps") if self.spec else 0

  def device(self):
    if self.spec is None:
      return tf.device(None)
    return tf.device(tf.train.replica_device_setter(
        worker_device="/job:worker/task:%d" % self.index, cluster=self.spec))

  @property
  def target(self):
    return self.server.target if self.server else ""


def _partitioner(size, shift, num_ps):
  """Returns the partitioner of a flag; 0 turns it off."""
  if not size or not num_ps:
    return None
  return partitioned_variables.min_max_variable_partitioner(
      max_partitions=num_ps, min_slice_size=size << shift)


def _count_rows(args, name):
  path = os.path.join(args.data_location, name + ".csv")
  with open(path) as f:
    return sum(1 for _ in f)


def _config(args, cluster):
  config = tf.ConfigProto(inter_op_parallelism_threads=args.inter,
                          intra_op_parallelism_threads=args.intra)
  if cluster.spec:
    config.device_filters.append("/job:ps")
    config.device_filters.append("/job:worker/task:%d" % cluster.index)
  if not args.tf:
    options = config.graph_options.optimizer_options
    options.do_smart_stage = args.smartstaged
    options.do_op_fusion = args.op_fusion
    options.micro_batch_num = args.micro_batch
  return config


def export(model, args, inputs, checkpoint):
  """Writes the SavedModel `args.saved_model` with the signature `serving_default`.

  Its inputs are the columns, without labels, [B]; its output is `probability`.
  """
  with tf.Graph().as_default(), tf.Session() as session:
    features = {name: tf.placeholder(tf.float32, [None], name) for name in inputs.dense}
    features.update(
        {name: tf.placeholder(tf.string, [None], name) for name in inputs.strings})
    probability = tf.sigmoid(model(args, features, None, None))
    tf.train.Saver().restore(session, checkpoint)
    tf.saved_model.simple_save(session, args.saved_model, features,
                               {"probability": probability})


def _evaluate(init, folder, hooks, config, metrics):
  """Prints the metrics of the folder's last checkpoint."""
  scaffold = tf.train.Scaffold(local_init_op=tf.group(
      tf.local_variables_initializer(), tf.tables_initializer(), init))
  creator = tf.train.ChiefSessionCreator(scaffold, config=config,
                                         checkpoint_dir=folder)
  with tf.train.MonitoredSession(creator, hooks=hooks) as session:
    batches, values = 0, (0., 0.)
    while not session.should_stop():
      values = session.run(metrics)
      batches += 1
  print("eval batches %d AUC %.6f mean %.7f" % ((batches,) + tuple(values)))
  sys.stdout.flush()


def main(model, args=None, inputs=INPUTS):
  """Trains, evaluates and exports a model in the default graph.

  Args:
    model: function of the flags, the features and two partitioners that returns the
      logits [B], or [B, labels] with several labels.
    args: the flags; None: those of the command line.
    inputs: Inputs.
  """
  args = args or parser().parse_args()
  _check_deeprec(args)
  if args.group_embedding == "collective":
    tf.config.experimental.enable_distributed_strategy(strategy="collective")
  cluster = Cluster()
  cluster.start(args)
  batch_size = int(math.ceil(args.batch_size / max(1, args.micro_batch)))
  rows = _count_rows(args, "train")
  steps = args.steps or rows * args.epochs // args.batch_size
  tf.set_random_seed(args.seed)
  with cluster.device():
    train = dataset(args, "train", batch_size,
                    max(args.epochs, -(-steps * args.batch_size // rows)), inputs)
    test = dataset(args, "eval", batch_size, 1, inputs)
    iterator = tf.data.Iterator.from_structure(
        tf.compat.v1.data.get_output_types(train),
        tf.compat.v1.data.get_output_shapes(test))
    train_init, test_init = iterator.make_initializer(train), iterator.make_initializer(
        test)
    features, label = iterator.get_next()
    hooks = []
    if args.smartstaged:
      features, label = tf.staged((features, label), num_threads=4, capacity=40)
      hooks.append(tf.make_prefetch_hook())
    logits = model(args, features,
                   _partitioner(args.input_layer_partitioner, 20, cluster.num_ps),
                   _partitioner(args.dense_layer_partitioner, 10, cluster.num_ps))
    loss = tf.losses.sigmoid_cross_entropy(label, logits)
    probability = tf.sigmoid(logits)
    metrics = [tf.metrics.auc(label, probability, num_thresholds=1000)[1],
               tf.metrics.mean(probability)[1]]
    step = tf.train.get_or_create_global_step()
    train_op = _optimizer(args).minimize(loss, global_step=step)
    saver = tf.train.Saver(max_to_keep=args.keep_checkpoint_max, sharded=True)
  folder = args.checkpoint or args.output_dir
  config = _config(args, cluster)
  scaffold = tf.train.Scaffold(
      local_init_op=tf.group(tf.local_variables_initializer(), tf.tables_initializer(),
                             train_init), saver=saver)
  begin = time.time()
  with tf.train.MonitoredTrainingSession(
      master=cluster.target, is_chief=cluster.index == 0, checkpoint_dir=folder,
      scaffold=scaffold, hooks=hooks + [tf.train.StopAtStepHook(last_step=steps)],
      save_checkpoint_steps=args.save_steps or steps, save_summaries_steps=None,
      save_summaries_secs=None, config=config) as session:
    while not session.should_stop():
      _, value, at = session.run([train_op, loss, step])
      print("step %d loss %.7f" % (at, value))
  print("trained to the end in %.1f s" % (time.time() - begin))
  if not cluster.spec and not args.no_eval:
    _evaluate(test_init, folder, hooks, config, metrics)
  if args.saved_model and cluster.index == 0:
    export(model, args, inputs, tf.train.latest_checkpoint(folder))
