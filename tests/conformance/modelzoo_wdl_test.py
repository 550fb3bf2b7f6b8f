# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A wide and deep model in the style of DeepRec scripts trains and resumes.

The model, its columns, partitioners, hooks and sessions use DeepRec's names. Apart from
its import they use nothing of this package.
"""

import glob
import os
import random

from absl.testing import absltest
from absl.testing import parameterized
import tensorflow as tf

# Imported first, because it creates modules that the script imports.
import embedding_variable  # pylint: disable=unused-import
from tensorflow.core.framework.embedding import config_pb2
from tensorflow.python.framework import ops
from tensorflow.python.ops import partitioned_variables

CONTINUOUS_COLUMNS = ["I1", "I2"]
CATEGORICAL_COLUMNS = ["C1", "C2"]
FEATURE_COLUMNS = CONTINUOUS_COLUMNS + CATEGORICAL_COLUMNS
LABEL_COLUMN = ["clicked"]
TRAIN_DATA_COLUMNS = LABEL_COLUMN + FEATURE_COLUMNS
EMBEDDING_DIMENSION = 4


def generate_input_data(filename, batch_size, num_epochs):

  def parse_csv(value):
    cont_defaults = [[0.0] for i in range(len(CONTINUOUS_COLUMNS))]
    cate_defaults = [[" "] for i in range(len(CATEGORICAL_COLUMNS))]
    record_defaults = [[0]] + cont_defaults + cate_defaults
    columns = tf.io.decode_csv(value, record_defaults=record_defaults)
    all_columns = dict(zip(TRAIN_DATA_COLUMNS, columns))
    labels = all_columns.pop(LABEL_COLUMN[0])
    return all_columns, labels

  dataset = tf.data.TextLineDataset(filename)
  dataset = dataset.shuffle(buffer_size=1000, seed=2021)
  dataset = dataset.repeat(num_epochs)
  dataset = dataset.batch(batch_size)
  dataset = dataset.map(parse_csv, num_parallel_calls=2)
  return dataset.prefetch(2)


def build_feature_columns(ev_filter, ev_elimination):
  wide_column, deep_column = [], []
  with tf.feature_column.group_embedding_column_scope(name="categorical"):
    for column_name in CATEGORICAL_COLUMNS:
      evict_opt = filter_option = None
      if ev_elimination == "gstep":
        evict_opt = tf.GlobalStepEvict(steps_to_live=4000)
      elif ev_elimination == "l2":
        evict_opt = tf.L2WeightEvict(l2_weight_threshold=1e-9)
      if ev_filter == "cbf":
        filter_option = tf.CBFFilter(filter_freq=3, max_element_size=2**20,
                                     false_positive_probability=0.01,
                                     counter_type=tf.int64)
      elif ev_filter == "counter":
        filter_option = tf.CounterFilter(filter_freq=3)
      ev_opt = tf.EmbeddingVariableOption(
          evict_option=evict_opt, filter_option=filter_option,
          storage_option=tf.StorageOption(
              storage_type=config_pb2.StorageType.DRAM),
          init_option=tf.InitializerOption(default_value_dim=0))
      categorical_column = tf.feature_column.categorical_column_with_embedding(
          column_name, dtype=tf.string, ev_option=ev_opt)
      wide_column.append(categorical_column)
      deep_column.append(tf.feature_column.embedding_column(
          categorical_column, dimension=EMBEDDING_DIMENSION, combiner="mean",
          do_fusion=True))
  for column_name in CONTINUOUS_COLUMNS:
    column = tf.feature_column.numeric_column(
        column_name, normalizer_fn=lambda col: tf.log1p(col), shape=(1,))
    wide_column.append(column)
    deep_column.append(column)
  return wide_column, deep_column


class WDL(object):

  def __init__(self, wide_column, deep_column, inputs, input_layer_partitioner,
               dense_layer_partitioner, optimizer):
    self._feature, label = inputs
    self.global_step = tf.train.get_or_create_global_step()
    with tf.variable_scope("deep", reuse=tf.AUTO_REUSE):
      with tf.variable_scope("input_layer", partitioner=input_layer_partitioner,
                             reuse=tf.AUTO_REUSE):
        net = tf.feature_column.input_layer(self._feature, deep_column)
      with tf.variable_scope("dnn", partitioner=dense_layer_partitioner,
                             reuse=tf.AUTO_REUSE):
        for i, units in enumerate([16, 8]):
          net = tf.layers.dense(net, units=units, activation=tf.nn.relu,
                                kernel_initializer=tf.glorot_uniform_initializer(),
                                name="layer_%d" % i)
        dnn_logits = tf.layers.dense(net, units=1, name="logits")
    with tf.variable_scope("linear", partitioner=input_layer_partitioner,
                           reuse=tf.AUTO_REUSE):
      linear_logits = tf.feature_column.linear_model(
          units=1, features=self._feature, feature_columns=wide_column,
          sparse_combiner="sum", trainable=True)
    logits = dnn_logits + linear_logits
    self.output = tf.sigmoid(logits)
    label = tf.cast(tf.expand_dims(label, -1), tf.float32)
    self.loss = tf.losses.sigmoid_cross_entropy(label, logits)
    self.acc, self.acc_op = tf.metrics.accuracy(label, tf.round(self.output))
    self.auc, self.auc_op = tf.metrics.auc(label, self.output, num_thresholds=100)
    tf.summary.scalar("eval_auc", self.auc)
    if optimizer == "adamasync":
      deep = tf.train.AdamAsyncOptimizer(learning_rate=0.01, beta1=0.9, beta2=0.999,
                                         epsilon=1e-8)
    else:
      deep = tf.train.AdagradDecayOptimizer(learning_rate=0.2,
                                            global_step=self.global_step)
    linear = tf.train.FtrlOptimizer(learning_rate=0.2, l1_regularization_strength=0.0,
                                    l2_regularization_strength=0.0)
    self.train_op = tf.group(
        deep.minimize(self.loss, var_list=tf.get_collection(
            tf.GraphKeys.TRAINABLE_VARIABLES, scope="deep"),
                      global_step=self.global_step),
        linear.minimize(self.loss, var_list=tf.get_collection(
            tf.GraphKeys.TRAINABLE_VARIABLES, scope="linear")))


def train(data, checkpoint_dir, steps, ps_num=0, ev_filter=None, ev_elimination=None,
          optimizer="adamasync"):
  """Trains up to a global step; returns (first global step, losses)."""
  input_layer_partitioner = dense_layer_partitioner = None
  if ps_num:
    input_layer_partitioner = partitioned_variables.min_max_variable_partitioner(
        max_partitions=ps_num, min_slice_size=1 << 10)
    dense_layer_partitioner = partitioned_variables.min_max_variable_partitioner(
        max_partitions=ps_num, min_slice_size=1 << 8)
  tf.set_random_seed(2021)
  train_dataset = generate_input_data(data, 32, num_epochs=100)
  iterator = tf.data.Iterator.from_structure(train_dataset.output_types,
                                             train_dataset.output_shapes)
  train_init_op = iterator.make_initializer(train_dataset)
  wide_column, deep_column = build_feature_columns(ev_filter, ev_elimination)
  model = WDL(wide_column, deep_column, iterator.get_next(), input_layer_partitioner,
              dense_layer_partitioner, optimizer)
  scaffold = tf.train.Scaffold(
      local_init_op=tf.group(tf.local_variables_initializer(), tf.tables_initializer(),
                             train_init_op),
      saver=tf.train.Saver(max_to_keep=2, sharded=True, incremental_save_restore=True),
      incremental_save_restore=True)
  hooks = [tf.train.StopAtStepHook(last_step=steps), tf.train.NanTensorHook(model.loss),
           tf.train.LoggingTensorHook({"steps": model.global_step, "loss": model.loss},
                                      every_n_iter=10)]
  first, losses = None, []
  with tf.train.MonitoredTrainingSession(
      master="", is_chief=True, hooks=hooks, scaffold=scaffold,
      checkpoint_dir=checkpoint_dir, save_checkpoint_steps=20,
      save_incremental_checkpoint_steps=5, summary_dir=checkpoint_dir,
      save_summaries_steps=20, config=tf.ConfigProto(allow_soft_placement=True)) as sess:
    first = sess.run_step_fn(lambda step_context: step_context.session.run(model.global_step))
    sess.run_step_fn(lambda step_context: step_context.session.run(
        [ops.get_collection(ops.GraphKeys.EV_INIT_VAR_OPS),
         ops.get_collection(ops.GraphKeys.EV_INIT_SLOT_OPS)]))
    while not sess.should_stop():
      _, loss, _, _ = sess.run([model.train_op, model.loss, model.acc_op, model.auc_op])
      losses.append(loss)
  return first, losses


def _write_data(path):
  """Writes clicks that depend on C1 alone; C2 is noise."""
  numbers = random.Random(7)
  with open(path, "w") as f:
    for _ in range(640):
      key = numbers.randrange(20)
      f.write(",".join(
          [str(int(key % 3 == 0)), str(numbers.random()), str(numbers.random()),
           "a%d" % key, "b%d" % numbers.randrange(50)]) + "\n")


class ModelzooTest(parameterized.TestCase):

  @parameterized.parameters(
      dict(ps_num=2, ev_filter="counter", ev_elimination="gstep"),
      dict(ev_filter="cbf", ev_elimination="l2", optimizer="adagraddecay"))
  def test_trains_and_resumes(self, **options):
    directory = self.create_tempdir().full_path
    data, model = os.path.join(directory, "train.csv"), os.path.join(directory, "model")
    _write_data(data)
    with tf.Graph().as_default() as graph:
      first, losses = train(data, model, 28, **options)
      lookups = [op for op in graph.get_operations() if op.type == "EvLookupSparse"]
      tables = tf.get_collection(tf.GraphKeys.EMBEDDING_VARIABLES)
    self.assertEqual(first, 0)
    self.assertLess(sum(losses[-3:]), .8 * sum(losses[:3]))
    num_parts = options.get("ps_num") or 1
    self.assertLen(tables, 4 * num_parts)
    # The deep tables form one group; the linear model's weights are looked up one by one.
    self.assertLen(lookups, 4 * num_parts if num_parts > 1 else 3)
    names = [name for name, _ in tf.train.list_variables(model)]
    table = "deep/input_layer/input_layer/C1_embedding/embedding_weights"
    if num_parts > 1:
      table += "/part_1"
      self.assertIn("deep/dnn/layer_0/kernel", names)
    self.assertIn(table + "-keys", names)
    slot = "AdagradDecay" if "optimizer" in options else "AdamAsync_1"
    self.assertIn("%s/%s-values" % (table, slot), names)
    deltas = glob.glob(os.path.join(model, ".incremental_checkpoint", "*.index"))
    self.assertTrue(deltas)
    if num_parts == 1:
      return
    with tf.Graph().as_default():
      first, more = train(data, model, 31, **options)
    self.assertEqual(first, 28)
    self.assertLess(sum(more), .8 * sum(losses[:3]))


if __name__ == "__main__":
  absltest.main()
