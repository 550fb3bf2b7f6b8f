# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Multi-gate mixture of experts with two weighted labels, over Parquet files.

  python mmoe.py FOLDER
"""

import argparse

import hugectr

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--max_iter", type=int, default=2000)
parser.add_argument("--slot_size", type=int, default=20)
args = parser.parse_args()

EXPERTS, WIDTH = 3, 16
LABELS = ["50k", "married"]
solver = hugectr.CreateSolver(seed=1, max_eval_batches=20, batchsize_eval=500, batchsize=500,
                              lr=0.005, i64_input_key=True)
reader = hugectr.DataReaderParams(
    hugectr.DataReaderType_t.Parquet, args.folder + "/train/_file_list.txt",
    eval_source=args.folder + "/val/_file_list.txt", check_type=hugectr.Check_t.Non,
    slot_size_array=[args.slot_size] * 8)
model = hugectr.Model(solver, reader, hugectr.CreateOptimizer(
    hugectr.Optimizer_t.Adam, hugectr.Update_t.Local))
model.add(hugectr.Input(
    label_dims=[1, 1], label_names=LABELS, dense_dim=0, dense_name="dense",
    data_reader_sparse_param_array=[hugectr.DataReaderSparseParam("data", 1, True, 8)]))
model.add(hugectr.SparseEmbedding(
    hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, 24, 8, "sum", "embedding",
    "data"))


def add(kind, bottoms, tops, **arguments):
  model.add(hugectr.DenseLayer(getattr(hugectr.Layer_t, kind), bottoms, tops, **arguments))


add("Reshape", ["embedding"], ["shared"], leading_dim=8 * 8)
for k in range(EXPERTS):
  add("InnerProduct", ["shared"], ["expert%d_fc" % k], num_output=WIDTH)
  add("ReLU", ["expert%d_fc" % k], ["expert%d" % k])
experts = ["expert%d" % k for k in range(EXPERTS)]
add("Concat", experts, ["experts"])
for label in LABELS:
  add("InnerProduct", ["shared"], [label + "_gate_fc"], num_output=EXPERTS)
  add("Softmax", [label + "_gate_fc"], [label + "_gate"])
  add("Scale", [label + "_gate"], [label + "_gates"], axis=0, factor=WIDTH)
  add("ElementwiseMultiply", ["experts", label + "_gates"], [label + "_weighted"])
  add("Reshape", [label + "_weighted"], [label + "_3d"], leading_dim=WIDTH,
      time_step=EXPERTS)
  add("ReduceSum", [label + "_3d"], [label + "_sum"], axis=1)
  add("Reshape", [label + "_sum"], [label + "_tower"], leading_dim=WIDTH)
  add("InnerProduct", [label + "_tower"], [label + "_logit"], num_output=1)
for label in LABELS:
  add("BinaryCrossEntropyLoss", [label + "_logit", label], [label + "_loss"])
model.compile(loss_names=LABELS, loss_weights=[0.5, 0.5])
model.summary()
model.fit(max_iter=args.max_iter, display=100, eval_interval=args.max_iter,
          snapshot=1000000)
