# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Wide and deep model with two sparse inputs, over Norm files.

  python wdl.py FOLDER     # 28 slots: two for the wide part, then 26
"""

import argparse

import hugectr

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--max_iter", type=int, default=2000)
args = parser.parse_args()

solver = hugectr.CreateSolver(seed=1, max_eval_batches=20, batchsize_eval=500, batchsize=500,
                              lr=0.005, repeat_dataset=True)
reader = hugectr.DataReaderParams(
    hugectr.DataReaderType_t.Norm, args.folder + "/train/_file_list.txt",
    eval_source=args.folder + "/val/_file_list.txt", check_type=hugectr.Check_t.Sum)
optimizer = hugectr.CreateOptimizer(hugectr.Optimizer_t.Adam, hugectr.Update_t.Global)
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(1, "label", 13, "dense", [
    hugectr.DataReaderSparseParam("wide_data", 1, True, 2),
    hugectr.DataReaderSparseParam("deep_data", 1, False, 26)]))
for name, bottom, width in (("sparse_embedding2", "wide_data", 1),
                            ("sparse_embedding1", "deep_data", 8)):
  model.add(hugectr.SparseEmbedding(
      embedding_type=hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash,
      workspace_size_per_gpu_in_mb=23, embedding_vec_size=width, combiner="sum",
      sparse_embedding_name=name, bottom_name=bottom, optimizer=optimizer))


def add(kind, bottoms, tops, **arguments):
  model.add(hugectr.DenseLayer(getattr(hugectr.Layer_t, kind), bottoms, tops, **arguments))


add("Reshape", ["sparse_embedding1"], ["reshape1"], leading_dim=26 * 8)
add("Reshape", ["sparse_embedding2"], ["reshape2"], leading_dim=2)
add("ReduceSum", ["reshape2"], ["reducesum1"], axis=1)
add("Concat", ["reshape1", "dense"], ["concat1"])
add("InnerProduct", ["concat1"], ["fc1"], num_output=64)
add("ReLU", ["fc1"], ["relu1"])
add("Dropout", ["relu1"], ["dropout1"], dropout_rate=0.2)
add("InnerProduct", ["dropout1"], ["fc2"], num_output=1)
add("Add", ["fc2", "reducesum1"], ["add1"])
add("BinaryCrossEntropyLoss", ["add1", "label"], ["loss"])
model.compile()
model.summary()
model.fit(max_iter=args.max_iter, display=100, eval_interval=args.max_iter,
          snapshot=1000000)
