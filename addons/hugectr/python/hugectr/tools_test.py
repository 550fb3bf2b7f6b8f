# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests DataGenerator: files that a model can read, and their distributions."""

import os

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np

import hugectr
from hugectr import tools
from hugectr.data import sources

_KIND = hugectr.DataReaderType_t


class ToolsTest(parameterized.TestCase):

  def params(self, kind, folder, **arguments):
    name = "data.bin" if kind == _KIND.Raw else "_file_list.txt"
    found = dict(
        format=kind, label_dim=1, dense_dim=2, num_slot=3, i64_input_key=kind == _KIND.Parquet,
        source=os.path.join(folder, "train", name),
        eval_source=os.path.join(folder, "val", name), slot_size_array=[1000, 5, 50],
        num_files=3, eval_num_files=1, num_samples_per_file=400, num_samples=1000,
        eval_num_samples=300, seed=4)
    found.update(arguments)
    return tools.DataGeneratorParams(**found)

  def samples(self, params, part):
    """Returns the concatenated labels, dense features and Slots."""
    path, rows, _ = params.parts[part]
    data = params.data._replace(clause=dict(params.data.clause, num_samples=rows,
                                            eval_num_samples=rows))
    chunks = list(sources.open_source(path, data, params.key_type, 100).chunks())
    return chunks, sum(len(c.labels) for c in chunks)

  @parameterized.parameters(_KIND.Norm, _KIND.Parquet, _KIND.Raw)
  def test_files_can_be_read(self, kind):
    params = self.params(kind, self.create_tempdir().full_path)
    tools.DataGenerator(params).generate()
    for part, rows in ((0, 1000 if kind == _KIND.Raw else 1200),
                       (1, 300 if kind == _KIND.Raw else 400)):
      chunks, count = self.samples(params, part)
      self.assertEqual(count, rows)
      for k, (low, size) in enumerate(((0, 1000), (1000, 5), (1005, 50))):
        keys = np.concatenate([c.slots[k].keys for c in chunks])
        self.assertBetween(keys.min(), low, low + size)
        self.assertLess(keys.max(), low + size)
        # Small keys are more frequent.
        self.assertLess(np.median(keys) - low, size / 2.)
      labels = np.concatenate([c.labels for c in chunks])
      if kind == _KIND.Raw:
        self.assertCountEqual(np.unique(labels), [0., 1.])
      else:
        self.assertBetween(labels.mean(), .4, .6)

  @parameterized.parameters(_KIND.Norm, _KIND.Parquet)
  def test_several_keys(self, kind):
    params = self.params(kind, self.create_tempdir().full_path, nnz_array=[1, 2, 4])
    tools.DataGenerator(params).generate()
    chunks, _ = self.samples(params, 0)
    lengths = np.concatenate([np.diff(c.slots[2].offsets) for c in chunks])
    self.assertCountEqual(np.unique(lengths), [4] if kind == _KIND.Norm else [1, 2, 3, 4])

  @parameterized.parameters(_KIND.Norm, _KIND.Parquet, _KIND.Raw)
  def test_arguments_are_attributes(self, kind):
    folder = self.create_tempdir().full_path
    given = dict(
        format=kind, label_dim=1, dense_dim=2, num_slot=3, i64_input_key=True,
        source=folder + "/a/list", eval_source=folder + "/b/list",
        slot_size_array=[10, 5, 50], nnz_array=[1, 1, 1], check_type=hugectr.Check_t.Non,
        dist_type=hugectr.Distribution_t.Uniform, power_law_type=hugectr.PowerLaw_t.Long,
        alpha=1.5, num_files=2, eval_num_files=1, num_samples_per_file=40, num_samples=50,
        eval_num_samples=30, float_label_dense=True, num_threads=2)
    params = tools.DataGeneratorParams(**given)
    self.assertEqual({name: getattr(params, name) for name in given}, given)
    tools.DataGenerator(params).generate()
    # A script of upstream's: a reader of what the generator has written.
    reader = hugectr.DataReaderParams(
        params.format, [params.source], eval_source=params.eval_source,
        check_type=params.check_type, num_samples=params.num_samples,
        eval_num_samples=params.eval_num_samples, slot_size_array=params.slot_size_array,
        float_label_dense=params.float_label_dense)
    model = hugectr.Model(
        hugectr.CreateSolver(batchsize=20, batchsize_eval=10, max_eval_batches=2,
                             i64_input_key=params.i64_input_key), reader,
        hugectr.CreateOptimizer())
    self.addCleanup(model.close)
    model.add(hugectr.Input(params.label_dim, "label", params.dense_dim, "dense", [
        hugectr.DataReaderSparseParam("keys", 1, True, params.num_slot)]))
    model.add(hugectr.SparseEmbedding(
        hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, 1, 4, "sum", "rows", "keys"))
    model.add(hugectr.DenseLayer(hugectr.Layer_t.Reshape, ["rows"], ["flat"], leading_dim=12))
    model.add(hugectr.DenseLayer(hugectr.Layer_t.InnerProduct, ["flat"], ["logit"]))
    model.add(hugectr.DenseLayer(hugectr.Layer_t.BinaryCrossEntropyLoss,
                                 ["logit", "label"], ["loss"]))
    model.compile()
    model.fit(max_iter=2, display=0, eval_interval=2, snapshot=0)

  def test_distributions(self):
    random = np.random.RandomState(1)

    def keys(**arguments):
      return tools.DataGenerator(self.params(_KIND.Norm, "a", **arguments))._keys(  # pylint: disable=protected-access
          random, 100000, 1000)

    uniform = keys(dist_type=hugectr.Distribution_t.Uniform)
    self.assertAlmostEqual(uniform.mean(), 499.5, delta=5)
    shares = [np.mean(keys(power_law_type=law) == 0) for law in (
        hugectr.PowerLaw_t.Long, hugectr.PowerLaw_t.Medium, hugectr.PowerLaw_t.Short)]
    self.assertEqual(shares, sorted(shares))
    for share, alpha in zip(shares, (.9, 1.1, 1.3)):
      expected = (2 ** (1 - alpha) - 1) / (1001 ** (1 - alpha) - 1)
      self.assertAlmostEqual(share, expected, delta=.01)

  @parameterized.parameters(
      ({"slot_size_array": [1, 2]}, "slot_size_array: expected 3 numbers.*got 2"),
      ({"nnz_array": [1]}, "nnz_array: expected 3 numbers"),
      ({"alpha": 1.}, "alpha: expected a number above 0 and not 1"),
      ({"num_files": 0}, "at least 1 sample"))
  def test_wrong_arguments(self, arguments, expected):
    with self.assertRaisesRegex(ValueError, expected):
      self.params(_KIND.Norm, "a", **arguments)


if __name__ == "__main__":
  absltest.main()
