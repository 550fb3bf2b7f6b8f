# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""A deep model over slots with several keys, in epochs, over Norm files.

  python multi_hot.py FOLDER
"""

import argparse

import hugectr

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--num_epochs", type=int, default=4)
args = parser.parse_args()

solver = hugectr.CreateSolver(seed=1, max_eval_batches=20, batchsize_eval=500, batchsize=500,
                              lr=0.005, repeat_dataset=False)
reader = hugectr.DataReaderParams(
    hugectr.DataReaderType_t.Norm, args.folder + "/train/_file_list.txt",
    eval_source=args.folder + "/val/_file_list.txt", check_type=hugectr.Check_t.Sum)
model = hugectr.Model(solver, reader, hugectr.CreateOptimizer(
    hugectr.Optimizer_t.Adam, hugectr.Update_t.Local))
model.add(hugectr.Input(1, "label", 4, "dense", [
    # Keys of each of three slots at most, then of a fourth.
    hugectr.DataReaderSparseParam("several", [3, 1, 2], False, 3),
    hugectr.DataReaderSparseParam("more", [3], False, 1)]))
for name, combiner in (("several", "mean"), ("more", "sum")):
  model.add(hugectr.SparseEmbedding(
      hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, 24, 8, combiner,
      name + "_embedding", name))


def add(kind, bottoms, tops, **arguments):
  model.add(hugectr.DenseLayer(getattr(hugectr.Layer_t, kind), bottoms, tops, **arguments))


add("Reshape", ["several_embedding"], ["several1"], leading_dim=3 * 8)
add("Reshape", ["more_embedding"], ["more1"], leading_dim=8)
add("Concat", ["several1", "more1", "dense"], ["concat1"])
add("InnerProduct", ["concat1"], ["fc1"], num_output=32)
add("BatchNorm", ["fc1"], ["bn1"], factor=0.1, eps=1e-5)
add("ReLU", ["bn1"], ["relu1"])
add("InnerProduct", ["relu1"], ["fc2"], num_output=1)
add("BinaryCrossEntropyLoss", ["fc2", "label"], ["loss"])
model.compile()
model.summary()
model.fit(num_epochs=args.num_epochs, display=20, eval_interval=20, snapshot=1000000)
