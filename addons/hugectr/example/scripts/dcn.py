# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Deep and cross network over Norm files.

  python dcn.py FOLDER     # FOLDER/train/_file_list.txt and FOLDER/val/_file_list.txt
"""

import argparse

import hugectr
from mpi4py import MPI  # pylint: disable=unused-import

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--max_iter", type=int, default=2000)
args = parser.parse_args()

solver = hugectr.CreateSolver(
    seed=1, max_eval_batches=20, batchsize_eval=500, batchsize=500, lr=0.005, vvgpu=[[0]],
    repeat_dataset=True)
reader = hugectr.DataReaderParams(
    data_reader_type=hugectr.DataReaderType_t.Norm,
    source=[args.folder + "/train/_file_list.txt"],
    eval_source=args.folder + "/val/_file_list.txt", check_type=hugectr.Check_t.Sum)
optimizer = hugectr.CreateOptimizer(
    optimizer_type=hugectr.Optimizer_t.Adam, update_type=hugectr.Update_t.Local)
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(
    label_dim=1, label_name="label", dense_dim=13, dense_name="dense",
    data_reader_sparse_param_array=[hugectr.DataReaderSparseParam("data1", 1, True, 26)]))
model.add(hugectr.SparseEmbedding(
    embedding_type=hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash,
    workspace_size_per_gpu_in_mb=24, embedding_vec_size=8, combiner="sum",
    sparse_embedding_name="sparse_embedding1", bottom_name="data1", optimizer=optimizer))


def add(kind, bottoms, tops, **arguments):
  model.add(hugectr.DenseLayer(layer_type=getattr(hugectr.Layer_t, kind),
                               bottom_names=bottoms, top_names=tops, **arguments))


add("Reshape", ["sparse_embedding1"], ["reshape1"], leading_dim=26 * 8)
add("Concat", ["reshape1", "dense"], ["concat1"])
add("MultiCross", ["concat1"], ["multicross1"], num_layers=2)
add("InnerProduct", ["concat1"], ["fc1"], num_output=64)
add("ReLU", ["fc1"], ["relu1"])
add("Dropout", ["relu1"], ["dropout1"], dropout_rate=0.2)
add("Concat", ["dropout1", "multicross1"], ["concat2"])
add("InnerProduct", ["concat2"], ["fc2"], num_output=1)
add("BinaryCrossEntropyLoss", ["fc2", "label"], ["loss"])
model.compile()
model.summary()
model.graph_to_json(graph_config_file=args.folder + "/dcn.json")
model.fit(max_iter=args.max_iter, display=100, eval_interval=args.max_iter,
          snapshot=1000000, snapshot_prefix=args.folder + "/dcn")
