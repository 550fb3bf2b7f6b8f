# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests lookups and optimizers of embedding collections against NumPy."""

import json
import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow.compat.v1 as tf

import hugectr
from hugectr.api import small_scripts
from hugectr.commands import checking
from hugectr.commands import picture
from hugectr.config import model as models
from hugectr.data import batches
from hugectr.data import writing

# Keys of a sample at most, in each of the inputs k0, k1 and k2.
_HOTNESS = (2, 3, 1)
_KEYS, _FLOATS, _DENSE, _SAMPLES, _BATCH = 12, 2, 2, 40, 20
_RATE, _BETA, _EPSILON = .5, .8, 1e-3

# Input, table and combiner of each lookup. Two lookups share a table.
_LOOKUPS = (("k0", "t0", "sum"), ("k1", "t1", "concat"), ("k2", "t2", "concat"),
            ("k0b", "t1", "average"))


class _Data(object):
  """Samples with 0 to _HOTNESS keys in each of four slots; the last repeats the first."""

  def __init__(self, random):
    self.labels = random.randint(0, 2, [_SAMPLES, 1]).astype(np.float32)
    self.dense = random.randn(_SAMPLES, _DENSE).astype(np.float32)
    # Repeated keys of a sample are likely.
    self.keys = [[list(random.randint(0, _KEYS, random.randint(0, n + 1)))
                  for _ in range(_SAMPLES)] for n in _HOTNESS]
    self.keys.append(self.keys[0])

  def write(self, path):
    slots = []
    for keys in self.keys:
      offsets = np.cumsum([0] + [len(k) for k in keys])
      slots.append(batches.Slot(np.array(sum(keys, []), np.int64), offsets))
    names = ["k0", "k1", "k2", "k0b"]
    inputs = [models.SparseInput(n, False, k, 1, None, None) for k, n in enumerate(names)]
    data = models.Data("data", "Norm", path, None, "label", 1, "dense", _DENSE, inputs, None,
                       1, {"check": "Sum", "sparse": [{"top": n} for n in names]})
    writing.write(path, data, "I32", [batches.Chunk(self.labels, self.dense, slots)], _SAMPLES)


class _Oracle(object):
  """The model in NumPy: a linear layer over the lookups and the dense features."""

  def __init__(self, data, kind, random):
    self._data, self._kind = data, kind
    self.tables = {t: random.randn(_KEYS, _FLOATS) for t in ("t0", "t1", "t2")}
    self._v = {t: np.zeros_like(rows) for t, rows in self.tables.items()}
    width = _FLOATS * (1 + _HOTNESS[1] + _HOTNESS[2] + 1) + _DENSE
    self.weight, self.bias = random.randn(width, 1), random.randn(1)

  def pieces(self, sample):
    """Yields (first float, table, key, factor) of each row in a sample's lookups."""
    at = 0
    for slot, (_, table, combiner) in zip((0, 1, 2, 3), _LOOKUPS):
      keys = self._data.keys[slot][sample]
      for k, key in enumerate(keys):
        if combiner == "concat":
          yield at + k * _FLOATS, table, key, 1.
        else:
          yield at, table, key, 1. / len(keys) if combiner == "average" else 1.
      at += _FLOATS * (_HOTNESS[slot] if combiner == "concat" else 1)

  def rows(self, samples):
    """Returns the lookups of samples side by side, [samples, floats]."""
    found = np.zeros([len(samples), len(self.weight) - _DENSE])
    for n, sample in enumerate(samples):
      for at, table, key, factor in self.pieces(sample):
        found[n, at:at + _FLOATS] += factor * self.tables[table][key]
    return found

  def train(self, samples):
    """Does a step; returns the loss."""
    x = np.concatenate([self.rows(samples), self._data.dense[samples]], 1)
    labels = self._data.labels[samples]
    probability = 1 / (1 + np.exp(-(x @ self.weight + self.bias)))
    slope = (probability - labels) / len(samples)
    gradients = {t: np.zeros_like(rows) for t, rows in self.tables.items()}
    touched = {t: np.zeros([_KEYS, 1], bool) for t in self.tables}
    for n, sample in enumerate(samples):
      for at, table, key, factor in self.pieces(sample):
        gradients[table][key] += factor * slope[n] * self.weight[at:at + _FLOATS, 0]
        touched[table][key] = True
    for table, gradient in gradients.items():
      self._update(table, gradient, touched[table])
    self.weight = self.weight - _RATE * (x.T @ slope)
    self.bias = self.bias - _RATE * slope.sum(0)
    return -np.mean(np.log(np.where(labels > 0, probability, 1 - probability)))

  def _update(self, table, gradient, touched):
    rows, v = self.tables[table], self._v[table]
    if self._kind == "SGD":
      self.tables[table] = rows - _RATE * gradient
      return
    new = _BETA * v + (1 - _BETA) * gradient ** 2
    self._v[table] = np.where(touched, new, v)
    self.tables[table] = np.where(
        touched, rows - _RATE * gradient / (np.sqrt(new) + _EPSILON), rows)

  def write(self, folder):
    """Writes the tables as `embedding_dump` does, and the dense parameters."""
    tables = os.path.join(folder, "embedding_collection_0")
    os.makedirs(tables)
    for t, rows in enumerate(self.tables.values()):
      np.arange(_KEYS).tofile("%s/key%d" % (tables, t))
      rows.astype(np.float32).tofile("%s/weight%d" % (tables, t))
    with open(tables + "/meta_data", "w") as f:
      json.dump({"tables": [{"name": n, "ev_size": _FLOATS} for n in self.tables]}, f)
    with open(folder + "/dense", "wb") as f:
      for values in (self.weight, self.bias):
        f.write(values.astype(np.float32).tobytes())


class CollectionTest(parameterized.TestCase):

  def setUp(self):
    super().setUp()
    self.folder = self.create_tempdir().full_path
    self.random = np.random.RandomState(5)
    self.data = _Data(self.random)
    self.data.write(self.folder + "/list.txt")

  def start(self, hotness=_HOTNESS, slots=1, **solver):
    """Returns a model with its Input."""
    path = self.folder + "/list.txt"
    model = hugectr.Model(
        small_scripts.solver(batchsize=_BATCH, batchsize_eval=_SAMPLES, lr=_RATE,
                             use_embedding_collection=True, **solver),
        small_scripts.reader(self.folder, source=path, eval_source=path),
        hugectr.CreateOptimizer(hugectr.Optimizer_t.SGD, hugectr.Update_t.Local))
    self.addCleanup(model.close)
    counts = list(hotness) + [hotness[0]]
    model.add(hugectr.Input(1, "label", _DENSE, "dense", [
        hugectr.DataReaderSparseParam(n, c, False, slots)
        for n, c in zip(("k0", "k1", "k2", "k0b"), counts)]))
    return model

  def tables(self, optimizer=None):
    return {name: hugectr.EmbeddingTableConfig(name, -1, _FLOATS, optimizer)
            for name in ("t0", "t1", "t2")}

  def add_end(self, model):
    model.add(hugectr.DenseLayer(hugectr.Layer_t.Concat, ["rows", "dense"], ["both"]))
    model.add(hugectr.DenseLayer(hugectr.Layer_t.InnerProduct, ["both"], ["logit"],
                                 num_output=1))
    model.add(hugectr.DenseLayer(hugectr.Layer_t.BinaryCrossEntropyLoss, ["logit", "label"],
                                 ["loss"]))

  def compiled(self, is_list, optimizer=None, hotness=_HOTNESS):
    """Returns the model of _LOOKUPS, whose "rows" are the lookups side by side."""
    model, tables = self.start(hotness), self.tables(optimizer)
    collection = hugectr.EmbeddingCollectionConfig()
    if is_list:
      bottoms, names, combiners = zip(*_LOOKUPS)
      collection.embedding_lookup([tables[n] for n in names], list(bottoms), "rows",
                                  list(combiners))
      model.add(collection)
    else:
      for k, (bottom, name, combiner) in enumerate(_LOOKUPS):
        collection.embedding_lookup(tables[name], bottom, "rows%d" % k, combiner)
      model.add(collection)
      for k, width in enumerate((1,) + hotness[1:] + (1,)):
        model.add(hugectr.DenseLayer(hugectr.Layer_t.Reshape, ["rows%d" % k], ["flat%d" % k],
                                     leading_dim=width * _FLOATS))
      model.add(hugectr.DenseLayer(hugectr.Layer_t.Concat, ["flat%d" % k for k in range(4)],
                                   ["rows"]))
    self.add_end(model)
    model.compile()
    return model

  def load(self, model, oracle):
    oracle.write(self.folder + "/start")
    model.embedding_load(self.folder + "/start")
    model.load_dense_weights(self.folder + "/start/dense")
    model.start_data_reading()

  def rows(self, model):
    """Returns {name: rows} of a model, from a dump."""
    model.embedding_dump(self.folder + "/end")
    found = self.folder + "/end/embedding_collection_0"
    for k in range(3):
      np.testing.assert_array_equal(np.fromfile("%s/key%d" % (found, k), np.int64),
                                    np.arange(_KEYS))
    return {"t%d" % k: np.fromfile("%s/weight%d" % (found, k), np.float32).reshape(
        [-1, _FLOATS]) for k in range(3)}

  @parameterized.parameters(("SGD", True), ("SGD", False), ("RMSProp", True))
  def test_training_equals_numpy(self, kind, is_list):
    optimizer = None if kind == "SGD" else hugectr.CreateOptimizer(
        hugectr.Optimizer_t.RMSProp, beta=_BETA, epsilon=_EPSILON)
    oracle = _Oracle(self.data, kind, self.random)
    model = self.compiled(is_list, optimizer)
    self.load(model, oracle)
    model.eval()
    np.testing.assert_allclose(
        model.check_out_tensor("rows", hugectr.Tensor_t.Evaluate),
        oracle.rows(range(_SAMPLES)), rtol=1e-5, atol=1e-6)
    for step in range(6):
      model.train()
      first = step % 2 * _BATCH
      expected = oracle.train(np.arange(first, first + _BATCH))
      self.assertAlmostEqual(model.get_current_loss(), expected, delta=1e-4 * expected)
    for name, rows in self.rows(model).items():
      np.testing.assert_allclose(rows, oracle.tables[name], rtol=1e-3, atol=1e-5)

  def test_both_fronts_train_to_the_same_bits(self):
    model = self.compiled(True, hugectr.CreateOptimizer(hugectr.Optimizer_t.RMSProp))
    path = self.folder + "/graph.json"
    model.graph_to_json(path)
    config, _ = models.read(path)
    for printed in (checking.text(config), picture.svg(config)):
      self.assertIn("rows/t1 [batch, 1, %d]" % (_FLOATS * _HOTNESS[1]), printed)
    model.start_data_reading()
    with hugectr.Session(hugectr.SolverParser(path), path) as session:
      session.start_data_reading()
      for _ in range(4):
        model.train()
        session.train()
        self.assertEqual(session.get_current_loss(), model.get_current_loss())
      session.export_saved_model(self.folder + "/export")
    feeds = {"dense": np.zeros([1, _DENSE])}
    for name, count in (("k0", 2), ("k1", 3), ("k2", 0), ("k0b", 1)):
      feeds[name + "_keys"] = list(range(count))
      feeds[name + "_splits"] = [[0, count]]
    with tf.Session(graph=tf.Graph()) as session:
      loaded = tf.saved_model.loader.load(session, ["serve"], self.folder + "/export")
      signature = loaded.signature_def["serving_default"]
      inputs = {signature.inputs[name].name: value for name, value in feeds.items()}
      output = signature.outputs["predictions"].name
      self.assertEqual(session.run(output, inputs).shape, (1, 1))
      inputs[signature.inputs["k1_keys"].name] = [1, 2, 3, 4]
      inputs[signature.inputs["k1_splits"].name] = [[0, 4]]
      with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "embedding t1: combiner "
                                  "concat: expected at most 3 keys of a sample in k1"):
        session.run(output, inputs)

  def test_states_of_rmsprop_are_files(self):
    optimizer = hugectr.CreateOptimizer(hugectr.Optimizer_t.RMSProp)
    model = self.compiled(True, optimizer)
    model.fit(max_iter=4, display=0, eval_interval=0, snapshot=0)
    prefix = self.folder + "/m"
    model.save_params_to_files(prefix)
    again = self.compiled(True, optimizer)
    again.load_dense_weights(prefix + "_dense_0.model")
    again.load_sparse_weights([prefix + "%d_sparse_0.model" % k for k in range(3)])
    again.load_sparse_optimizer_states(
        [prefix + "%d_opt_sparse_0.model" % k for k in range(3)])
    self.assertEqual(sorted(os.listdir(prefix + "1_opt_sparse_0.model")),
                     ["key", "slot_id", "v"])
    for m in (model, again):
      m.fit(max_iter=2, display=0, eval_interval=0, snapshot=0)
    self.assertEqual(again.get_current_loss(), model.get_current_loss())

  def test_rmsprop_is_for_rows_only(self):
    optimizer = hugectr.CreateOptimizer(hugectr.Optimizer_t.RMSProp)
    with self.assertRaisesRegex(hugectr.ConfigError, "opt_params: RMSProp updates rows of "
                                "embeddings only.*give RMSProp to EmbeddingTableConfig"):
      hugectr.Model(small_scripts.solver(), small_scripts.reader(
          self.folder, source="a", eval_source="a"), optimizer)
    model = self.compiled(True, optimizer)
    path = self.folder + "/graph.json"
    model.graph_to_json(path)
    with open(path) as f:
      graph = json.load(f)
    found = [c["optimizer"]["rmsprop_hparam"] for c in graph["layers"] if "optimizer" in c]
    self.assertEqual([(h["beta"], h["learning_rate"]) for h in found], [(.9, _RATE)] * 3)
    graph["optimizer"] = {"type": "RMSProp", "rmsprop_hparam": {"learning_rate": .1}}
    with open(path, "w") as f:
      json.dump(graph, f)
    with self.assertRaisesRegex(hugectr.ConfigError, "optimizer.type: RMSProp updates rows"):
      hugectr.Session(hugectr.SolverParser(path), path)
    wrong = hugectr.CreateOptimizer(hugectr.Optimizer_t.RMSProp, beta=1.)
    collection = hugectr.EmbeddingCollectionConfig()
    collection.embedding_lookup(self.tables(wrong)["t0"], "k0", "rows", "sum")
    with self.assertRaisesRegex(hugectr.ConfigError, r"'t0'.*beta: expected .*got 1\.0"):
      self.start().add(collection)

  def test_a_sample_with_too_many_keys_names_the_lookup(self):
    model = self.compiled(True, hotness=(2, 1, 1))
    model.start_data_reading()
    sample = next(n for n, k in enumerate(self.data.keys[1]) if len(k) == 3)
    with self.assertRaisesRegex(
        hugectr.DataError, "embedding 't1' with the top 'rows/t1': combiner concat: expected at "
        "most 1 keys of a sample in 'k1', its nnz_per_slot, got 3 in sample %d" % sample):
      model.train()
    with self.assertRaisesRegex(hugectr.DataError, "got 3 in sample %d" % sample):
      model.eval()

  def test_concat_needs_one_slot(self):
    collection = hugectr.EmbeddingCollectionConfig()
    collection.embedding_lookup(self.tables()["t0"], "k0", "x", "concat")
    with self.assertRaisesRegex(hugectr.ConfigError, "top 'x': combiner concat needs a sparse "
                                "input with one slot and nnz_per_slot, got 'k0' with 2 slots"):
      self.start(slots=2).add(collection)
    collection = hugectr.EmbeddingCollectionConfig()
    collection.embedding_lookup([self.tables()["t0"]] * 2, ["k0", "kx"], "x", ["concat"] * 2)
    with self.assertRaisesRegex(hugectr.ConfigError, "there is no sparse input 'kx'"):
      self.start().add(collection)
    with self.assertRaisesRegex(hugectr.ConfigError, "'x': combiner: expected \"sum\" or"):
      hugectr.SparseEmbedding(hugectr.Embedding_t.LocalizedSlotSparseEmbeddingHash, 1, 4,
                              "concat", "x", "k0")

  def test_concat_agrees_with_any_combiner_of_a_table(self):
    table = self.tables()["t0"]
    collection = hugectr.EmbeddingCollectionConfig()
    for bottom, combiner in (("k0", "concat"), ("k1", "sum")):
      collection.embedding_lookup(table, bottom, "x" + bottom, combiner)
    with self.assertRaisesRegex(hugectr.ConfigError, "combiner sum, expected the same, got "
                                "average"):
      collection.embedding_lookup(table, "k2", "y", "average")
    model = self.start()
    model.add(collection)
    path = self.folder + "/graph.json"
    model.graph_to_json(path)
    with open(path) as f:
      layers = json.load(f)["layers"]
    layers.append(dict(layers[-1], name="other", bottom="k2", top="z"))
    layers[-1]["sparse_embedding_hparam"] = dict(
        layers[-1]["sparse_embedding_hparam"], combiner="mean")
    with self.assertRaisesRegex(hugectr.ConfigError, "'t0' has the combiner sum, expected the "
                                "same, got mean"):
      models.check_layers(layers, "it")


if __name__ == "__main__":
  absltest.main()
