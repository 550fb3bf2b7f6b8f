# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Small models of the Python API for tests, over generated files."""

import os

import hugectr
from hugectr import testing

SLOTS, SIZE, DENSE = 4, 10, 3


def write_norm(folder, rows=400, label_dim=1):
  """Writes Norm files with a planted signal for training and evaluation."""
  planted = testing.Planted([SIZE] * SLOTS, DENSE, label_dim=label_dim)
  for name, files, seed in (("train", 2, 1), ("val", 1, 2)):
    testing.write_data(os.path.join(folder, name, "_file_list.txt"), planted, files,
                       rows // files, seed, "Norm", label_dim=label_dim, check="Sum")


def solver(**arguments):
  found = dict(batchsize=50, batchsize_eval=40, max_eval_batches=5, lr=0.01, seed=3)
  found.update(arguments)
  return hugectr.CreateSolver(**found)


def reader(folder, **arguments):
  found = dict(data_reader_type=hugectr.DataReaderType_t.Norm,
               source=os.path.join(folder, "train", "_file_list.txt"),
               eval_source=os.path.join(folder, "val", "_file_list.txt"),
               check_type=hugectr.Check_t.Sum, num_workers=2)
  found.update(arguments)
  return hugectr.DataReaderParams(**found)


def add_inputs(model, **arguments):
  """Adds an Input, an embedding and a Concat with the dense features, "both"."""
  sparse = hugectr.DataReaderSparseParam("keys", 1, True, SLOTS)
  model.add(hugectr.Input(
      label_dim=1, label_name="label", dense_dim=DENSE, dense_name="dense",
      data_reader_sparse_param_array=[sparse]))
  found = dict(embedding_type=hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash,
               workspace_size_per_gpu_in_mb=1, embedding_vec_size=4, combiner="sum",
               sparse_embedding_name="rows", bottom_name="keys")
  found.update(arguments)
  model.add(hugectr.SparseEmbedding(**found))
  model.add(hugectr.DenseLayer(hugectr.Layer_t.Reshape, ["rows"], ["flat"],
                               leading_dim=SLOTS * 4))
  model.add(hugectr.DenseLayer(hugectr.Layer_t.Concat, ["flat", "dense"], ["both"]))


def add_dcn(model):
  """Adds a deep and cross network over "both"."""
  layer = hugectr.Layer_t
  for kind, bottoms, top, arguments in (
      (layer.MultiCross, ["both"], "cross", {"num_layers": 2}),
      (layer.InnerProduct, ["both"], "fc1", {"num_output": 16}),
      (layer.ReLU, ["fc1"], "relu1", {}),
      (layer.Dropout, ["relu1"], "drop1", {"dropout_rate": 0.2}),
      (layer.Concat, ["drop1", "cross"], "last", {}),
      (layer.InnerProduct, ["last"], "logit", {"num_output": 1}),
      (layer.BinaryCrossEntropyLoss, ["logit", "label"], "loss", {})):
    model.add(hugectr.DenseLayer(kind, bottoms, [top], **arguments))


def dcn(folder, optimizer=None, reader_arguments=(), **arguments):
  """Returns a model that is not compiled."""
  model = hugectr.Model(
      solver(**arguments), reader(folder, **dict(reader_arguments)),
      optimizer or hugectr.CreateOptimizer(update_type=hugectr.Update_t.Local))
  add_inputs(model)
  add_dcn(model)
  return model
