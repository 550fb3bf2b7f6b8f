# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The five sample models, reduced in size, and the same written directly in TensorFlow."""

import collections
import json
import os

import numpy as np
import tensorflow as tf

import hugectr
from hugectr import testing
from hugectr.data import batches
from hugectr.data import synthetic
from hugectr.training import metrics

HERE = "addons/hugectr/example/"
SIZE, DENSE = 20, 13
BATCH, STEPS = 256, 20

# Reduced widths and row lengths, for short tests.
_WIDTHS = {1024: 24, 512: 16, 400: 16, 256: 16, 200: 24, 128: 8}


def _shrunk(value):
  """Returns a configuration with narrow layers and without dropout."""
  if isinstance(value, list):
    return [_shrunk(v) for v in value]
  if not isinstance(value, dict):
    return value
  found = {k: _shrunk(v) for k, v in value.items()}
  for key in ("num_output", "embedding_vec_size"):
    if key in found:
      found[key] = _WIDTHS.get(found[key], found[key])
  if "rate" in found:
    found["rate"] = 0.0
  return found


class Direct(object):
  """Ops of a model whose parameters come from one flat list of numbers."""

  def __init__(self, dense, rows):
    self._numbers = dense
    self._at = 0
    self._rows = rows

  def parameter(self, *shape):
    count = int(np.prod(shape))
    value = self._numbers[self._at:self._at + count].reshape(shape)
    self._at += count
    return tf.Variable(value)

  def all_taken(self):
    return self._at == len(self._numbers)

  def rows(self, keys, k=0):
    """Returns [batch, slots, floats] of embedding k."""
    return tf.nn.embedding_lookup(tf.Variable(self._rows[k]), keys)

  def fc(self, x, width):
    return tf.matmul(x, self.parameter(x.shape[1], width)) + self.parameter(width)

  def mlp(self, x, *widths):
    for width in widths:
      x = tf.nn.relu(self.fc(x, width))
    return x


def _flat(x):
  return tf.reshape(x, [-1, x.shape[1] * x.shape[2]])


def _wdl(direct, dense, keys):
  wide = tf.reduce_sum(direct.rows(keys[:, :2], 0), axis=1)
  deep = tf.concat([_flat(direct.rows(keys[:, 2:], 1)), dense], 1)
  return direct.fc(direct.mlp(deep, 24, 24), 1) + wide


def _dcn(direct, dense, keys):
  first = tf.concat([_flat(direct.rows(keys)), dense], 1)
  x = first
  for _ in range(6):
    weight, bias = direct.parameter(first.shape[1]), direct.parameter(first.shape[1])
    x = first * tf.reduce_sum(x * weight, axis=1, keepdims=True) + bias + x
  return direct.fc(tf.concat([x, direct.mlp(first, 24, 24)], 1), 1)


def _deepfm(direct, dense, keys):
  rows = direct.rows(keys)
  weights = direct.parameter(DENSE, 10), direct.parameter(DENSE, 1)
  vectors = tf.concat([rows[:, :, :10], dense[:, :, None] * weights[0]], 1)
  linear = tf.concat([rows[:, :, 10:], dense[:, :, None] * weights[1]], 1)
  second = 0.5 * (tf.reduce_sum(vectors, 1) ** 2 - tf.reduce_sum(vectors ** 2, 1))
  deep = direct.fc(direct.mlp(_flat(vectors), 16, 16, 16), 1)
  return (deep + tf.reduce_sum(linear, axis=1) +
          tf.reduce_sum(second, axis=1, keepdims=True))


def _dlrm(direct, dense, keys):
  bottom = direct.mlp(dense, 16, 16, 8)
  rows = direct.rows(keys)
  every = tf.concat([bottom[:, None], rows], axis=1)
  products = tf.transpose(tf.einsum("bif,bjf->bij", every, every), [1, 2, 0])
  pairs = [[i, j] for j in range(every.shape[1]) for i in range(j)]
  chosen = tf.transpose(tf.gather_nd(products, pairs))
  x = tf.concat([bottom, chosen, tf.zeros_like(chosen[:, :1])], 1)
  return direct.fc(direct.mlp(x, 24, 24, 16, 16), 1)


def _criteo_parquet(direct, dense, keys):
  x = tf.concat([_flat(direct.rows(keys)), dense], 1)
  return direct.fc(direct.mlp(x, 24, 24, 24), 1)


# build: function (Direct, dense, keys) -> logits. slots: number of slots. rate:
# learning rate.
Model = collections.namedtuple("Model", ["name", "build", "slots", "rate"])

MODELS = (
    Model("wdl", _wdl, 28, 3e-3), Model("dcn", _dcn, 26, 3e-3),
    Model("deepfm", _deepfm, 26, 3e-3), Model("dlrm", _dlrm, 26, .2),
    Model("criteo_parquet", _criteo_parquet, 26, 5e-3))

# losses: list of float. auc: float.
Found = collections.namedtuple("Found", ["losses", "auc"])

_EVAL_SAMPLES = 2000


def _samples(rows, slots, seed):
  planted = testing.Planted([SIZE] * slots, DENSE)
  chunk = batches.joined(list(synthetic.chunks(planted, rows, seed, rows)))
  keys = np.stack([s.keys for s in chunk.slots], 1) + SIZE * np.arange(slots)
  return chunk.labels, chunk.dense, keys


def write(model, folder):
  """Writes data, a configuration and initial rows into a folder."""
  with open(HERE + model.name + ".json") as f:
    configuration = _shrunk(json.load(f))
  data = configuration["layers"][0]
  planted = testing.Planted([SIZE] * model.slots, DENSE)
  for seed, (key, rows) in enumerate((("source", 3000), ("eval_source", _EVAL_SAMPLES))):
    data[key] = testing.write_data(os.path.join(folder, str(seed), "_file_list.txt"),
                                   planted, 1, rows, seed=seed)
  data["slot_size_array"] = [SIZE] * model.slots
  if model.name == "dlrm":
    configuration["optimizer"]["sgd_hparam"] = {"learning_rate": model.rate}
  testing.write_json(folder + "/model.json", configuration)
  _write_rows(configuration, folder)


def train(model, folder, start, ranks=1):
  """Trains the data of `write` by a Session. Every rank calls it.

  Args:
    model: Model.
    folder: string.
    start: prefix of the model files to write before training.
    ranks: int.

  Returns:
    Found.
  """
  with open(folder + "/model.json") as f:
    tables = sum("sparse_embedding_hparam" in l for l in json.load(f)["layers"])
  solver = hugectr.solver_parser_helper(
      batchsize=BATCH, batchsize_eval=_EVAL_SAMPLES, repeat_dataset=True,
      vvgpu=[list(range(ranks))],
      embedding_files=["%s/rows%d" % (folder, k + 1) for k in range(tables)])
  with hugectr.Session(solver, folder + "/model.json") as session:
    session.download_params_to_files(start, 1)
    session.start_data_reading()
    session.set_learning_rate(model.rate)
    losses = [session.train() and session.get_current_loss() for _ in range(STEPS)]
    (_, auc), = session.evaluation()
  return Found(losses, auc)


def train_directly(model, folder, start):
  """Trains the same model in TensorFlow alone, in this process; returns Found."""
  with open(folder + "/model.json") as f:
    configuration = json.load(f)
  dense = np.fromfile(start + "_dense_1.model", np.float32)
  rows = _rows(configuration)
  samples = [_samples(count, model.slots, seed)
             for seed, count in enumerate((3000, _EVAL_SAMPLES))]
  return Found(*_train_directly(model.build, dense, rows, samples, model.rate,
                                configuration["optimizer"]))


def _rows(configuration):
  """Returns initial rows by key, an array per embedding."""
  random = np.random.RandomState(4)
  return [random.uniform(-.1, .1, [28 * SIZE, layer["sparse_embedding_hparam"][
      "embedding_vec_size"]]).astype(np.float32)
          for layer in configuration["layers"] if "sparse_embedding_hparam" in layer]


def _write_rows(configuration, folder):
  """Writes a file of all rows per embedding."""
  inputs = {s["top"]: s for s in configuration["layers"][0]["sparse"]}
  layers = [l for l in configuration["layers"] if "sparse_embedding_hparam" in l]
  first = 0
  for k, (layer, found) in enumerate(zip(layers, _rows(configuration)), 1):
    slots = inputs[layer["bottom"]]["slot_num"]
    with open("%s/rows%d" % (folder, k), "wb") as f:
      for key in range(first * SIZE, (first + slots) * SIZE):
        slot = np.int64(key // SIZE - first).tobytes()
        f.write(np.uint32(key).tobytes() +
                (slot if layer["type"].startswith("Local") else b"") + found[key].tobytes())
    first += slots


class _LazyAdam(tf.compat.v1.train.AdamOptimizer):
  """Adam that changes rows and moments of the gradient's indices only.

  TensorFlow 1.15 has it as tf.contrib.opt.LazyAdamOptimizer, TensorFlow 2 has none.
  """

  def _apply_sparse(self, grad, var):
    m, v = self.get_slot(var, "m"), self.get_slot(var, "v")
    new_m = self._beta1 * tf.gather(m, grad.indices) + (1 - self._beta1) * grad.values
    new_v = self._beta2 * tf.gather(v, grad.indices) + (1 - self._beta2) * grad.values**2
    beta1_power, beta2_power = self._get_beta_accumulators()
    rate = self._lr_t * tf.sqrt(1 - beta2_power) / (1 - beta1_power)
    change = rate * new_m / (tf.sqrt(new_v) + self._epsilon_t)
    return tf.group(tf.compat.v1.scatter_update(m, grad.indices, new_m),
                    tf.compat.v1.scatter_update(v, grad.indices, new_v),
                    tf.compat.v1.scatter_sub(var, grad.indices, change))


def _train_directly(build, dense, rows, samples, rate, clause):
  """Returns (losses, AUC) of the model in TensorFlow alone."""
  labels, features, keys = samples[0]
  with tf.Graph().as_default(), tf.compat.v1.Session() as session:
    inputs = [tf.compat.v1.placeholder(tf.float32, [None, 1]),
              tf.compat.v1.placeholder(tf.float32, [None, DENSE]),
              tf.compat.v1.placeholder(tf.int64, [None, keys.shape[1]])]
    direct = Direct(dense, rows)
    logits = build(direct, *inputs[1:])
    assert direct.all_taken()
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
        labels=inputs[0], logits=logits))
    if clause["type"] == "SGD":
      optimizer = tf.compat.v1.train.GradientDescentOptimizer(rate)
    elif clause["update_type"] == "Global":
      optimizer = tf.compat.v1.train.AdamOptimizer(rate, epsilon=1e-7)
    else:
      optimizer = _LazyAdam(rate, epsilon=1e-7)
    step = optimizer.minimize(loss)
    session.run(tf.compat.v1.global_variables_initializer())
    losses = []
    for k in range(STEPS):
      at = np.arange(k * BATCH, (k + 1) * BATCH) % len(labels)
      feed = dict(zip(inputs, (labels[at], features[at], keys[at])))
      losses.append(session.run([loss, step], feed)[0])
    found = session.run(logits, dict(zip(inputs, samples[1])))
    return losses, metrics.auc(samples[1][0][:, 0], found[:, 0])
