# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Deep interest network over Parquet files: attention of a candidate over a history.

  python din.py FOLDER     # slots: user; HISTORY items, then the candidate
"""

import argparse

import hugectr

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--max_iter", type=int, default=2000)
parser.add_argument("--users", type=int, default=20)
parser.add_argument("--items", type=int, default=20)
args = parser.parse_args()

WIDTH, HISTORY = 8, 5
solver = hugectr.CreateSolver(seed=1, max_eval_batches=20, batchsize_eval=500, batchsize=500,
                              lr=0.005, i64_input_key=True)
reader = hugectr.DataReaderParams(
    hugectr.DataReaderType_t.Parquet, args.folder + "/train/_file_list.txt",
    eval_source=args.folder + "/val/_file_list.txt", check_type=hugectr.Check_t.Non,
    # Items of the history have the candidate's keys.
    slot_size_array=[args.users] + [0] * HISTORY + [args.items])
model = hugectr.Model(solver, reader, hugectr.CreateOptimizer(
    hugectr.Optimizer_t.Adam, hugectr.Update_t.LazyGlobal))
model.add(hugectr.Input(1, "label", 0, "dense", [
    hugectr.DataReaderSparseParam("user", 1, True, 1),
    hugectr.DataReaderSparseParam("items", 1, True, HISTORY + 1)]))
for bottom, name in (("user", "user_embedding"), ("items", "item_embedding")):
  model.add(hugectr.SparseEmbedding(
      hugectr.Embedding_t.DistributedSlotSparseEmbeddingHash, 28, WIDTH, "sum", name, bottom))


def add(kind, bottoms, tops, **arguments):
  model.add(hugectr.DenseLayer(getattr(hugectr.Layer_t, kind), bottoms, tops, **arguments))


add("Reshape", ["user_embedding"], ["user1"], leading_dim=WIDTH)
add("FusedReshapeConcat", ["item_embedding"], ["history", "item"])
# One row for each item of the history.
add("Scale", ["item"], ["item_repeated"], axis=1, factor=HISTORY)
add("Sub", ["item_repeated", "history"], ["difference"])
add("ElementwiseMultiply", ["item_repeated", "history"], ["product"])
add("Concat", ["item_repeated", "history", "difference", "product"], ["attention_input"])
add("InnerProduct", ["attention_input"], ["attention_fc1"], num_output=16)
add("PReLU_Dice", ["attention_fc1"], ["attention_dice1"], elu_alpha=0.2, eps=1e-8)
add("InnerProduct", ["attention_dice1"], ["attention_fc2"], num_output=1)
add("Reshape", ["attention_fc2"], ["scores"], leading_dim=HISTORY)
add("Softmax", ["scores"], ["weights"])
add("Scale", ["weights"], ["weights_repeated"], axis=0, factor=WIDTH)
add("Reshape", ["history"], ["history_flat"], leading_dim=HISTORY * WIDTH)
add("ElementwiseMultiply", ["weights_repeated", "history_flat"], ["weighted"])
add("Reshape", ["weighted"], ["weighted_3d"], leading_dim=WIDTH, time_step=HISTORY)
add("ReduceSum", ["weighted_3d"], ["interest_3d"], axis=1)
add("Reshape", ["interest_3d"], ["interest"], leading_dim=WIDTH)
add("Concat", ["user1", "interest", "item"], ["all"])
add("InnerProduct", ["all"], ["fc1"], num_output=32)
add("PReLU_Dice", ["fc1"], ["dice1"], elu_alpha=0.2, eps=1e-8)
add("InnerProduct", ["dice1"], ["fc2"], num_output=1)
add("BinaryCrossEntropyLoss", ["fc2", "label"], ["loss"])
model.compile()
model.summary()
model.graph_to_json(args.folder + "/din.json")
model.fit(max_iter=args.max_iter, display=100, eval_interval=args.max_iter,
          snapshot=1000000)
