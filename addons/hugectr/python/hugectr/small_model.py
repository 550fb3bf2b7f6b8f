# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A small model for tests of the Session: JSON, files, and training in NumPy."""

import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

import hugectr
from hugectr import testing
from hugectr.data import arrow

SLOTS, SIZE, FLOATS, DENSE = 3, 6, 2, 2
PLANTED = testing.Planted([SIZE] * SLOTS, DENSE)

HPARAMS = {
    "Adam": ("adam_hparam", {"beta1": 0.8, "beta2": 0.9, "epsilon": 1e-4}),
    "MomentumSGD": ("momentum_sgd_hparam", {"momentum_factor": 0.7}),
    "Nesterov": ("nesterov_hparam", {"momentum_factor": 0.7}),
    "SGD": ("sgd_hparam", {}),
    "AdaGrad": ("adagrad_hparam", {"initial_accu_value": 0.1, "epsilon": 1e-3}),
    "Ftrl": ("ftrl_hparam", {"beta": 0.5, "lambda1": 1e-3, "lambda2": 0.1}),
}


def optimizer(kind, update_type="Local"):
  name, hparam = HPARAMS[kind]
  return {"type": kind, "update_type": update_type,
          name: dict(hparam, learning_rate=0.05)}


def configuration(folder, kind="Adam", update_type="Local", localized=False,
                  combiner=0, more=(), **data):
  """Returns the configuration of a linear model over rows and dense features."""
  word = "Localized" if localized else "Distributed"
  layers = [
      dict({"name": "data", "type": "Data", "format": "Parquet",
            "source": os.path.join(folder, "train", "_file_list.txt"),
            "eval_source": os.path.join(folder, "val", "_file_list.txt"),
            "label": {"top": "label", "label_dim": 1},
            "dense": {"top": "dense", "dense_dim": DENSE},
            "slot_size_array": [SIZE] * SLOTS,
            "sparse": [{"top": "keys", "type": word + "Slot", "slot_num": SLOTS,
                        "max_feature_num_per_sample": SLOTS}]}, **data),
      {"name": "rows", "type": word + "SlotSparseEmbeddingHash", "bottom": "keys",
       "top": "rows", "sparse_embedding_hparam": {
           "embedding_vec_size": FLOATS, "combiner": combiner,
           "max_vocabulary_size_per_gpu": 10}},
      {"name": "flat", "type": "Reshape", "bottom": "rows", "top": "flat",
       "leading_dim": SLOTS * FLOATS},
      {"name": "both", "type": "Concat", "bottom": ["flat", "dense"], "top": "both"},
  ] + list(more) + [
      {"name": "logit", "type": "InnerProduct", "bottom": more[-1]["top"] if more else
       "both", "top": "logit", "fc_param": {"num_output": 1}},
      {"name": "loss", "type": "BinaryCrossEntropyLoss", "bottom": ["logit", "label"],
       "top": "loss"}]
  return {"optimizer": optimizer(kind, update_type), "layers": layers}


class TestCase(parameterized.TestCase):
  """Base of tests of Sessions that train it.

  Attributes:
    folder: string, path of its data.
  """

  @classmethod
  def setUpClass(cls):
    super().setUpClass()
    cls.folder = absltest.get_default_test_tmpdir() + "/" + cls.__name__
    testing.write_parquet(cls.folder + "/train", PLANTED, files=2, rows=50, seed=1)
    testing.write_parquet(cls.folder + "/val", PLANTED, files=1, rows=30, seed=2)

  def session(self, config=None, **solver):
    """Returns a Session of a configuration, which is closed after the test."""
    path = testing.write_json(self.create_tempfile().full_path,
                              config or configuration(self.folder))
    solver = dict({"batchsize": 20, "batchsize_eval": 20, "repeat_dataset": True}, **solver)
    session = hugectr.Session(hugectr.solver_parser_helper(**solver), path)
    self.addCleanup(session.close)
    return session


class Oracle(object):
  """The same model in NumPy: rows [keys, floats], W, b, with optimizer states."""

  def __init__(self, kind, update_type, rows, weight, bias, l2=0.):
    self.l2 = l2  # Lambda of the regularizer of W and b.
    self.kind, self.is_global = kind, update_type == "Global" and kind != "Ftrl"
    self.is_lazy = update_type == "LazyGlobal" and kind != "AdaGrad"
    self.last = np.zeros([len(rows), 1])  # step in which a row last had a gradient
    self.values = {"rows": rows.astype(np.float64), "W": weight.astype(np.float64),
                   "b": bias.astype(np.float64)}
    self.hparam = HPARAMS[kind][1]
    start = self.hparam.get("initial_accu_value", 0.)
    self.states = {k: (np.full_like(v, start), np.zeros_like(v))
                   for k, v in self.values.items()}
    self.step = 0

  def train(self, labels, dense, keys, rate, batch):
    """Does one step; keys are [N, slots] with offsets. Returns the mean loss."""
    self.step += 1
    rows, weight, bias = (self.values[k] for k in ("rows", "W", "b"))
    x = np.concatenate([rows[keys].reshape([len(labels), -1]), dense], axis=1)
    logit = (x @ weight + bias)[:, 0]
    probability = 1 / (1 + np.exp(-logit))
    slope = ((probability - labels) / batch)[:, None]
    gradient = np.zeros_like(rows)
    np.add.at(gradient, keys, (slope @ weight.T)[:, :SLOTS * FLOATS].reshape(
        [len(labels), SLOTS, FLOATS]))
    touched = np.zeros([len(rows), 1], bool)
    touched[keys] = True
    if self.is_lazy:
      self.catch_up(touched, rate)
    self.update("rows", gradient, rate, touched | self.is_global)
    decay = self.l2 / batch
    more = decay / 2 * ((weight ** 2).sum() + (bias ** 2).sum())
    self.update("W", x.T @ slope + decay * weight, rate, True)
    self.update("b", slope.sum(0) + decay * bias, rate, True)
    return more - np.mean(np.log(np.where(labels > 0, probability, 1 - probability)))

  def catch_up(self, touched, lr):
    """Does the missed steps of touched rows: one by one, except for Adam."""
    h = self.hparam
    for key in np.flatnonzero(touched[:, 0]):
      w, m, v = (a[key] for a in (self.values["rows"],) + self.states["rows"])
      missed = int(self.step - 1 - self.last[key, 0])
      if self.kind == "Adam":
        rate = lr * np.sqrt(1 - h["beta2"] ** self.step) / (1 - h["beta1"] ** self.step)
        start = m / (np.sqrt(v) + h["epsilon"])
        for k in range(1, missed + 1):
          w -= rate * (h["beta1"] / h["beta2"] ** .5) ** k * start
        m *= h["beta1"] ** missed
        v *= h["beta2"] ** missed
      else:
        f = h["momentum_factor"]
        for _ in range(missed):
          new = f * m
          w += -f * m + (1 + f) * new if self.kind == "Nesterov" else new
          m[:] = new
      self.last[key] = self.step

  def update(self, name, g, lr, moves):
    w, (m, v), h = self.values[name], self.states[name], self.hparam
    if self.kind == "Adam":
      b1, b2, t = h["beta1"], h["beta2"], self.step
      m2, v2 = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g * g
      rate = lr * np.sqrt(1 - b2 ** t) / (1 - b1 ** t)
      w2 = w - rate * m2 / (np.sqrt(v2) + h["epsilon"])
    elif self.kind == "MomentumSGD":
      m2, v2 = h["momentum_factor"] * m - lr * g, v
      w2 = w + m2
    elif self.kind == "Nesterov":
      f = h["momentum_factor"]
      m2, v2 = f * m - lr * g, v
      w2 = w - f * m + (1 + f) * m2
    elif self.kind == "SGD":
      w2, m2, v2 = w - lr * g, m, v
    elif self.kind == "Ftrl":
      m2 = m + g * g
      v2 = v + g - (np.sqrt(m2) - np.sqrt(m)) / lr * w
      w2 = (np.clip(v2, -h["lambda1"], h["lambda1"]) - v2) / (
          (np.sqrt(m2) + h["beta"]) / lr + h["lambda2"])
    else:
      m2, v2 = m + g * g, v
      w2 = w - lr * g / (np.sqrt(m2) + h["epsilon"])
    self.values[name] = np.where(moves, w2, w)
    self.states[name] = (np.where(moves, m2, m), np.where(moves, v2, v))


def samples(folder):
  """Returns (labels, dense, keys with offsets) of all files in a folder, in order."""
  parts = []
  for name in sorted(os.listdir(folder)):
    if name.endswith(".parquet"):
      columns = arrow.pq.read_table(os.path.join(folder, name)).to_pydict()
      parts.append(np.array(list(columns.values()), np.float64).T)
  rows = np.concatenate(parts)
  keys = rows[:, 1 + DENSE:].astype(np.int64)
  return rows[:, 0], rows[:, 1:1 + DENSE], keys + SIZE * np.arange(SLOTS)


def write_start(localized, prefix):
  """Writes <prefix>dense and <prefix>rows; returns their (rows, W, b)."""
  random = np.random.RandomState(7)
  rows = random.randn(SLOTS * SIZE, FLOATS).astype(np.float32)
  weight = random.randn(SLOTS * FLOATS + DENSE, 1).astype(np.float32)
  bias = random.randn(1).astype(np.float32)
  with open(prefix + "dense", "wb") as f:
    f.write(weight.tobytes() + bias.tobytes())
  with open(prefix + "rows", "wb") as f:
    for key, row in enumerate(rows):
      f.write(np.uint32(key).tobytes())
      if localized:
        f.write(np.int64(key // SIZE).tobytes())
      f.write(row.tobytes())
  return rows, weight, bias


def read_rows(path, localized, arrays=1):
  """Returns records with the fields key, slot (if localized) and row."""
  shape = (FLOATS,) if arrays == 1 else (arrays, FLOATS)
  return np.fromfile(path, np.dtype([("key", "<u4")] + (
      [("slot", "<i8")] if localized else []) + [("row", "<f4", shape)]))
