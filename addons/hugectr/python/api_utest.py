# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that ranks train a Model of the Python API like one process does."""

import os
import shutil
import subprocess
import sys
import tempfile

# Python adds the program's real folder to the path first, but the package in that
# folder of the source tree lacks the compiled reader.
sys.path[:] = [p for p in sys.path
               if p != os.path.dirname(os.path.realpath(__file__))]

# pylint: disable=wrong-import-position
from absl.testing import absltest
import numpy as np

import hugectr
from hugectr import small_model
from hugectr import testing

# Arguments with which this program trains alone, without and with a cache.
_ALONE, _CACHED = "--alone", "--cached"

_SLOTS, _FLOATS = small_model.SLOTS, 4
_TABLES = ["t%d" % k for k in range(_SLOTS)]


def train(folder, out, vvgpu):
  """Trains a model with a collection; writes its loss, tables and dense parameters."""
  solver = hugectr.CreateSolver(
      seed=1, batchsize=20, batchsize_eval=20, max_eval_batches=2, lr=.1, vvgpu=vvgpu,
      metrics_spec={hugectr.MetricsType.AUC: 1., hugectr.MetricsType.AverageLoss: 0.})
  reader = hugectr.DataReaderParams(
      hugectr.DataReaderType_t.Parquet, folder + "/train/_file_list.txt",
      eval_source=folder + "/val/_file_list.txt", check_type=hugectr.Check_t.Non,
      slot_size_array=[small_model.SIZE] * _SLOTS)
  model = hugectr.Model(solver, reader, hugectr.CreateOptimizer(
      hugectr.Optimizer_t.Adam, hugectr.Update_t.Local))
  model.add(hugectr.Input(1, "label", small_model.DENSE, "dense", [
      hugectr.DataReaderSparseParam("k%d" % k, 2, False, 1) for k in range(_SLOTS)]))
  collection = hugectr.EmbeddingCollectionConfig()
  # Updates of small gradients would depend on the order of sums with a smaller epsilon.
  rows_only = hugectr.CreateOptimizer(hugectr.Optimizer_t.RMSProp, epsilon=1e-2)
  collection.embedding_lookup(
      [hugectr.EmbeddingTableConfig(name, small_model.SIZE, _FLOATS,
                                    rows_only if name == _TABLES[1] else None)
       for name in _TABLES],
      ["k%d" % k for k in range(_SLOTS)], "rows", ["concat"] * 2 + ["sum"] * (_SLOTS - 2))
  # The last rank has the first table; the others are spread.
  collection.shard([_TABLES[1:], _TABLES], [("mp", _TABLES[:1]), ("dp", _TABLES[1:])])
  model.add(collection)
  layer = hugectr.Layer_t
  model.add(hugectr.DenseLayer(layer.Concat, ["rows", "dense"], ["both"]))
  model.add(hugectr.DenseLayer(layer.MLP, ["both"], ["mlp"], num_outputs=[8]))
  model.add(hugectr.DenseLayer(layer.InnerProduct, ["mlp"], ["logit"], num_output=1))
  model.add(hugectr.DenseLayer(layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"]))
  model.compile()
  # Rows begin with values that depend on their place in a table.
  model.embedding_load(folder + "/tables")
  model.fit(max_iter=10, display=5, eval_interval=10, snapshot=0)
  for _ in range(2):
    model.eval()
  metrics = model.get_eval_metrics()
  model.embedding_dump(out)
  model.save_params_to_files(out + "/m", 1)
  found = model.get_current_loss(), [value for _, value in metrics]
  shape = model.check_out_tensor("mlp", hugectr.Tensor_t.Evaluate).shape
  model.close()
  return found, shape


def train_parts(folder, out, vvgpu):
  """Trains a table with two lookups by an embedding training cache.

  Writes the rows of both incremental models, and returns the loss.
  """
  solver = hugectr.CreateSolver(seed=1, batchsize=20, batchsize_eval=20, lr=.1, vvgpu=vvgpu,
                                repeat_dataset=False)
  parts = [folder + "/" + part + "/_file_list.txt" for part in ("train", "val")]
  reader = hugectr.DataReaderParams(
      hugectr.DataReaderType_t.Parquet, parts, keyset=[folder + "/keys"] * 2,
      eval_source=parts[1], check_type=hugectr.Check_t.Non,
      slot_size_array=[small_model.SIZE] * _SLOTS)
  os.makedirs(out, exist_ok=True)
  model = hugectr.Model(
      solver, reader, hugectr.CreateOptimizer(
          hugectr.Optimizer_t.AdaGrad, hugectr.Update_t.Local),
      hugectr.CreateETC([hugectr.TrainPSType_t.Cached], [out + "/a", out + "/b"],
                        ["%s/ssd%d" % (out, r) for r in range(len(vvgpu[0]))]))
  model.add(hugectr.Input(1, "label", small_model.DENSE, "dense", [
      hugectr.DataReaderSparseParam("k%d" % k, 1, True, 1) for k in range(_SLOTS)]))
  a, b = (hugectr.EmbeddingTableConfig(name, -1, _FLOATS) for name in "ab")
  collection = hugectr.EmbeddingCollectionConfig()
  collection.embedding_lookup([a, b, a], ["k%d" % k for k in range(_SLOTS)], "rows",
                              ["sum"] * _SLOTS)
  model.add(collection)
  layer = hugectr.Layer_t
  model.add(hugectr.DenseLayer(layer.InnerProduct, ["rows"], ["logit"], num_output=1))
  model.add(hugectr.DenseLayer(layer.BinaryCrossEntropyLoss, ["logit", "label"], ["loss"]))
  model.compile()
  # Rows begin with values that depend on their place in a table.
  model.load_sparse_weights([folder + "/a", folder + "/b"])
  for k in range(2):
    model.set_source(parts[k:k + 1], keyset=[folder + "/keys"])
    model.fit(num_epochs=1, display=0, eval_interval=0, snapshot=0)
    for name, (keys, rows) in zip("ab", model.get_incremental_model()):
      np.save("%s/%s%d_keys_%d.npy" % (out, name, k, len(vvgpu[0])), keys)
      np.save("%s/%s%d_rows_%d.npy" % (out, name, k, len(vvgpu[0])), rows)
  loss = model.get_current_loss()
  model.close()
  return loss


def write_rows(folder):
  """Writes the keyset, and the rows that training with a cache begins with."""
  size = small_model.SIZE
  random = np.random.RandomState(4)
  np.arange(_SLOTS * size, dtype=np.uint32).tofile(folder + "/keys")
  for name, slots in (("a", (0, 2)), ("b", (1,))):
    os.makedirs(folder + "/" + name)
    keys = np.concatenate([np.arange(s * size, (s + 1) * size) for s in slots])
    keys.astype(np.int64).tofile("%s/%s/key" % (folder, name))
    np.zeros_like(keys).astype(np.int64).tofile("%s/%s/slot_id" % (folder, name))
    random.randn(len(keys), _FLOATS).astype(np.float32).tofile(
        "%s/%s/emb_vector" % (folder, name))


def write_tables(folder):
  """Writes the tables that training begins with."""
  place = folder + "/tables/embedding_collection_0"
  os.makedirs(place)
  testing.write_json(place + "/meta_data", {
      "tables": [{"name": name, "ev_size": _FLOATS} for name in _TABLES]})
  random = np.random.RandomState(3)
  for k in range(_SLOTS):
    keys = np.arange(k * small_model.SIZE, (k + 1) * small_model.SIZE, dtype=np.int64)
    keys.tofile("%s/key%d" % (place, k))
    random.randn(len(keys), _FLOATS).astype(np.float32).tofile("%s/weight%d" % (place, k))


class ApiUtest(absltest.TestCase):

  def test_ranks_train_as_one_process_does(self):
    import horovod.tensorflow as hvd  # pylint: disable=g-import-not-at-top
    hvd.init()
    folder = os.path.join(tempfile.gettempdir(), "api_utest_%d" % os.getppid())
    if hvd.rank() == 0:
      shutil.rmtree(folder, ignore_errors=True)
      os.makedirs(folder)
      testing.write_parquet(folder + "/train", small_model.PLANTED, 2, 50, seed=1)
      testing.write_parquet(folder + "/val", small_model.PLANTED, 1, 40, seed=2)
      write_tables(folder)
      write_rows(folder)
    self.barrier(hvd)
    out = folder + "/ranks"
    (loss, metrics), shape = train(folder, out, [list(range(hvd.size()))])
    self.assertEqual(shape, (20, 8))
    cached_loss = train_parts(folder, out, [list(range(hvd.size()))])
    if hvd.rank() != 0:
      return
    alone_loss, *alone_metrics = self.alone(_ALONE, folder)
    self.assertAlmostEqual(cached_loss, self.alone(_CACHED, folder)[0], places=4)
    for name in ("a0", "a1", "b0", "b1"):
      for what, tolerance in (("keys", 0), ("rows", 1e-4)):
        found, expected = (
            np.load("%s/%s_%s_%d.npy" % (place, name, what, ranks))
            for place, ranks in ((out, hvd.size()), (folder + "/alone", 1)))
        self.assertNotEmpty(expected)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    self.assertAlmostEqual(loss, alone_loss, places=4)
    np.testing.assert_allclose(metrics, alone_metrics, atol=1e-3)
    for name in ["m_dense_1.model"] + ["embedding_collection_0/%s%d" % (what, k) for what in
                                       ("key", "weight") for k in range(_SLOTS)]:
      kind = np.int64 if "key" in name else np.float32
      np.testing.assert_allclose(
          np.fromfile(out + "/" + name, kind), np.fromfile(folder + "/alone/" + name, kind),
          rtol=1e-3, atol=1e-4)
    shutil.rmtree(folder)

  def alone(self, argument, folder):
    """Returns the numbers that one process prints."""
    # Without the launcher's variables.
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(("HOROVOD_", "OMPI_", "PMI"))}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    found = subprocess.run([sys.executable, os.path.abspath(__file__), argument, folder],
                           stdout=subprocess.PIPE, env=environment, check=True)
    return [float(v) for v in found.stdout.decode().splitlines()[-1].split()]

  def barrier(self, hvd):
    import tensorflow as tf  # pylint: disable=g-import-not-at-top
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      session.run(hvd.allreduce(tf.zeros([1])))


if __name__ == "__main__":
  if sys.argv[1:2] == [_CACHED]:
    print(train_parts(sys.argv[2], sys.argv[2] + "/alone", [[0]]))
  elif sys.argv[1:2] == [_ALONE]:
    (_loss, _metrics), _ = train(sys.argv[2], sys.argv[2] + "/alone", [[0]])
    print(_loss, *_metrics)
  else:
    absltest.main()
