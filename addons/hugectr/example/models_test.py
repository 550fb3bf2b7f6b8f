# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The five configurations against the same models written directly in TensorFlow."""

import json
import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

import hugectr
from hugectr import testing
from hugectr.data import batches
from hugectr.data import synthetic
from hugectr.training import metrics

_HERE = "addons/hugectr/example/"
_SIZE, _DENSE = 20, 13
_BATCH, _STEPS = 256, 20

# Widths and lengths of rows that a test has time for.
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
  """Ops of a model over parameters that come from one flat list of numbers."""

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
  weights = direct.parameter(_DENSE, 10), direct.parameter(_DENSE, 1)
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


class ModelsTest(parameterized.TestCase):

  def data(self, slots):
    """Returns (file lists of training and evaluation data, their samples)."""
    folder = self.create_tempdir().full_path
    planted = testing.Planted([_SIZE] * slots, _DENSE)
    paths, samples = [], []
    for k, rows in enumerate((3000, 2000)):
      path = os.path.join(folder, str(k), "_file_list.txt")
      paths.append(testing.write_data(path, planted, 1, rows, seed=k))
      chunk = batches.joined(list(synthetic.chunks(planted, rows, k, rows)))
      keys = np.stack([s.keys for s in chunk.slots], 1) + _SIZE * np.arange(slots)
      samples.append((chunk.labels, chunk.dense, keys))
    return paths, samples

  @parameterized.parameters(
      ("wdl", _wdl, 28, 3e-3), ("dcn", _dcn, 26, 3e-3), ("deepfm", _deepfm, 26, 3e-3),
      ("dlrm", _dlrm, 26, .2), ("criteo_parquet", _criteo_parquet, 26, 5e-3))
  def test_trains_as_the_same_model_does(self, name, build, slots, rate):
    paths, samples = self.data(slots)
    with open(_HERE + name + ".json") as f:
      configuration = _shrunk(json.load(f))
    data = configuration["layers"][0]
    data["source"], data["eval_source"] = paths
    data["slot_size_array"] = [_SIZE] * slots
    if name == "dlrm":
      configuration["optimizer"]["sgd_hparam"] = {"learning_rate": rate}
    folder = self.create_tempdir().full_path
    path = testing.write_json(folder + "/model.json", configuration)
    rows, files = self.write_rows(configuration, folder)
    solver = hugectr.solver_parser_helper(
        batchsize=_BATCH, batchsize_eval=2000, repeat_dataset=True, embedding_files=files)
    with hugectr.Session(solver, path) as session:
      session.download_params_to_files(folder + "/start", 1)
      dense = np.fromfile(folder + "/start_dense_1.model", np.float32)
      direct = self.train_directly(build, dense, rows, samples, rate,
                                   configuration["optimizer"])
      session.start_data_reading()
      session.set_learning_rate(rate)
      losses = [session.train() and session.get_current_loss() for _ in range(_STEPS)]
      (_, auc), = session.evaluation()
    np.testing.assert_allclose(losses, direct[0], rtol=2e-3)
    self.assertAlmostEqual(auc, direct[1], delta=.002)
    self.assertLess(np.mean(losses[-4:]), np.mean(losses[:4]))

  def write_rows(self, configuration, folder):
    """Writes a file of all rows per embedding; returns (rows by key, paths)."""
    random = np.random.RandomState(4)
    inputs = {s["top"]: s for s in configuration["layers"][0]["sparse"]}
    first, rows, files = 0, [], []
    for layer in configuration["layers"]:
      if "sparse_embedding_hparam" not in layer:
        continue
      floats = layer["sparse_embedding_hparam"]["embedding_vec_size"]
      slots = inputs[layer["bottom"]]["slot_num"]
      found = random.uniform(-.1, .1, [28 * _SIZE, floats]).astype(np.float32)
      rows.append(found)
      files.append("%s/rows%d" % (folder, len(rows)))
      with open(files[-1], "wb") as f:
        for key in range(first * _SIZE, (first + slots) * _SIZE):
          slot = np.int64(key // _SIZE - first).tobytes()
          f.write(np.uint32(key).tobytes() +
                  (slot if layer["type"].startswith("Local") else b"") +
                  found[key].tobytes())
      first += slots
    return rows, files

  def train_directly(self, build, dense, rows, samples, rate, clause):
    """Returns (losses, AUC) of the model in TensorFlow alone."""
    labels, features, keys = samples[0]
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      inputs = [tf.compat.v1.placeholder(tf.float32, [None, 1]),
                tf.compat.v1.placeholder(tf.float32, [None, _DENSE]),
                tf.compat.v1.placeholder(tf.int64, [None, keys.shape[1]])]
      direct = Direct(dense, rows)
      logits = build(direct, *inputs[1:])
      self.assertTrue(direct.all_taken())
      loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(
          labels=inputs[0], logits=logits))
      if clause["type"] == "SGD":
        optimizer = tf.compat.v1.train.GradientDescentOptimizer(rate)
      elif clause["update_type"] == "Global":
        optimizer = tf.compat.v1.train.AdamOptimizer(rate, epsilon=1e-7)
      else:
        optimizer = tf.contrib.opt.LazyAdamOptimizer(rate, epsilon=1e-7)
      step = optimizer.minimize(loss)
      session.run(tf.compat.v1.global_variables_initializer())
      losses = []
      for k in range(_STEPS):
        at = np.arange(k * _BATCH, (k + 1) * _BATCH) % len(labels)
        feed = dict(zip(inputs, (labels[at], features[at], keys[at])))
        losses.append(session.run([loss, step], feed)[0])
      found = session.run(logits, dict(zip(inputs, samples[1])))
      return losses, metrics.auc(samples[1][0][:, 0], found[:, 0])


if __name__ == "__main__":
  absltest.main()
