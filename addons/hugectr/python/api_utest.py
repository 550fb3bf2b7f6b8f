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

# Argument with which this program trains alone.
_ALONE = "--alone"

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
      hugectr.DataReaderSparseParam("k%d" % k, 1, True, 1) for k in range(_SLOTS)]))
  collection = hugectr.EmbeddingCollectionConfig()
  collection.embedding_lookup(
      [hugectr.EmbeddingTableConfig(name, small_model.SIZE, _FLOATS) for name in _TABLES],
      ["k%d" % k for k in range(_SLOTS)], "rows", ["sum"] * _SLOTS)
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
    self.barrier(hvd)
    out = folder + "/ranks"
    (loss, metrics), shape = train(folder, out, [list(range(hvd.size()))])
    self.assertEqual(shape, (20, 8))
    if hvd.rank() != 0:
      return
    # Without the launcher's variables.
    environment = {k: v for k, v in os.environ.items()
                   if not k.startswith(("HOROVOD_", "OMPI_", "PMI"))}
    environment["PYTHONPATH"] = os.pathsep.join(sys.path)
    found = subprocess.run([sys.executable, os.path.abspath(__file__), _ALONE, folder],
                           stdout=subprocess.PIPE, env=environment, check=True)
    alone_loss, *alone_metrics = [float(v) for v in
                                  found.stdout.decode().splitlines()[-1].split()]
    self.assertAlmostEqual(loss, alone_loss, places=4)
    np.testing.assert_allclose(metrics, alone_metrics, atol=1e-3)
    for name in ["m_dense_1.model"] + ["embedding_collection_0/%s%d" % (what, k) for what in
                                       ("key", "weight") for k in range(_SLOTS)]:
      kind = np.int64 if "key" in name else np.float32
      np.testing.assert_allclose(
          np.fromfile(out + "/" + name, kind), np.fromfile(folder + "/alone/" + name, kind),
          rtol=1e-3, atol=1e-4)
    shutil.rmtree(folder)

  def barrier(self, hvd):
    import tensorflow as tf  # pylint: disable=g-import-not-at-top
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
      session.run(hvd.allreduce(tf.zeros([1])))


if __name__ == "__main__":
  if sys.argv[1:2] == [_ALONE]:
    (_loss, _metrics), _ = train(sys.argv[2], sys.argv[2] + "/alone", [[0]])
    print(_loss, *_metrics)
  else:
    absltest.main()
