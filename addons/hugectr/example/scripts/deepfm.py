# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DeepFM over Parquet files.

  python deepfm.py FOLDER     # FOLDER/train/_file_list.txt and FOLDER/val/_file_list.txt
"""

import argparse

import hugectr

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--max_iter", type=int, default=2000)
parser.add_argument("--slot_size", type=int, default=20)
args = parser.parse_args()

WIDTH = 10
solver = hugectr.CreateSolver(seed=1, max_eval_batches=20, batchsize_eval=500, batchsize=500,
                              lr=0.005, i64_input_key=True)
reader = hugectr.DataReaderParams(
    hugectr.DataReaderType_t.Parquet, [args.folder + "/train/_file_list.txt"],
    eval_source=args.folder + "/val/_file_list.txt", check_type=hugectr.Check_t.Non,
    slot_size_array=[args.slot_size] * 26)
optimizer = hugectr.CreateOptimizer(hugectr.Optimizer_t.Adam, hugectr.Update_t.Local)
model = hugectr.Model(solver, reader, optimizer)
model.add(hugectr.Input(1, "label", 13, "dense",
                        [hugectr.DataReaderSparseParam("data1", 1, True, 26)]))
model.add(hugectr.SparseEmbedding(
    hugectr.Embedding_t.LocalizedSlotSparseEmbeddingHash, 61, WIDTH + 1, "sum",
    "sparse_embedding1", "data1", slot_size_array=[args.slot_size] * 26))


def add(kind, bottoms, tops, **arguments):
  model.add(hugectr.DenseLayer(getattr(hugectr.Layer_t, kind), bottoms, tops, **arguments))


add("Reshape", ["sparse_embedding1"], ["reshape1"], leading_dim=WIDTH + 1)
add("Slice", ["reshape1"], ["slice11", "slice12"], ranges=[(0, WIDTH), (WIDTH, WIDTH + 1)])
add("Reshape", ["slice11"], ["reshape2"], leading_dim=26 * WIDTH)
add("Reshape", ["slice12"], ["reshape3"], leading_dim=26)
add("WeightMultiply", ["dense"], ["weight_multiply1"], weight_dims=[13, WIDTH])
add("WeightMultiply", ["dense"], ["weight_multiply2"], weight_dims=[13, 1])
add("Concat", ["reshape2", "weight_multiply1"], ["concat1"])
add("InnerProduct", ["concat1"], ["fc1"], num_output=64)
add("ReLU", ["fc1"], ["relu1"])
add("Dropout", ["relu1"], ["dropout1"], dropout_rate=0.2)
add("InnerProduct", ["dropout1"], ["fc2"], num_output=1)
add("FmOrder2", ["concat1"], ["fmorder2"], out_dim=WIDTH)
add("ReduceSum", ["fmorder2"], ["reducesum1"], axis=1)
add("Concat", ["reshape3", "weight_multiply2"], ["concat2"])
add("ReduceSum", ["concat2"], ["reducesum2"], axis=1)
add("Add", ["fc2", "reducesum1", "reducesum2"], ["add"])
add("BinaryCrossEntropyLoss", ["add", "label"], ["loss"])
model.compile()
model.summary()
model.fit(max_iter=args.max_iter, display=100, eval_interval=args.max_iter,
          snapshot=1000000)
