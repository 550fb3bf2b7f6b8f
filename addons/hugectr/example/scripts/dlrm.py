# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DLRM over Parquet files: a table per slot, or an embedding collection.

  python dlrm.py FOLDER [--collection]
"""

import argparse

import hugectr

parser = argparse.ArgumentParser()
parser.add_argument("folder")
parser.add_argument("--max_iter", type=int, default=2000)
parser.add_argument("--slot_size", type=int, default=20)
parser.add_argument("--collection", action="store_true")
args = parser.parse_args()

WIDTH = 8
sizes = [args.slot_size] * 26
solver = hugectr.CreateSolver(
    seed=1, max_eval_batches=20, batchsize_eval=500, batchsize=500, lr=0.1,
    warmup_steps=50, decay_start=400, decay_steps=100, decay_power=2.0, end_lr=0.01,
    i64_input_key=True, use_embedding_collection=args.collection)
reader = hugectr.DataReaderParams(
    data_reader_type=hugectr.DataReaderType_t.Parquet,
    source=[args.folder + "/train/_file_list.txt"],
    eval_source=args.folder + "/val/_file_list.txt", check_type=hugectr.Check_t.Non,
    slot_size_array=sizes)
optimizer = hugectr.CreateOptimizer(hugectr.Optimizer_t.AdaGrad, hugectr.Update_t.Local,
                                    epsilon=1e-5)
model = hugectr.Model(solver, reader, optimizer)


def add(kind, bottoms, tops, **arguments):
  model.add(hugectr.DenseLayer(getattr(hugectr.Layer_t, kind), bottoms, tops, **arguments))


if args.collection:
  model.add(hugectr.Input(
      label_dim=1, label_name="label", dense_dim=13, dense_name="dense",
      data_reader_sparse_param_array=[
          hugectr.DataReaderSparseParam("data%d" % k, 1, True, 1) for k in range(26)]))
  names = ["table%d" % k for k in range(26)]
  collection = hugectr.EmbeddingCollectionConfig()
  collection.embedding_lookup(
      table_config=[hugectr.EmbeddingTableConfig(name, size, WIDTH)
                    for name, size in zip(names, sizes)],
      bottom_name=["data%d" % k for k in range(26)], top_name="concat_embedding",
      combiner=["sum"] * 26)
  collection.shard(shard_matrix=[names], shard_strategy=[("mp", names)])
  model.add(collection)
  add("Reshape", ["concat_embedding"], ["sparse_embedding1"], time_step=26,
      leading_dim=WIDTH)
else:
  model.add(hugectr.Input(
      label_dim=1, label_name="label", dense_dim=13, dense_name="dense",
      data_reader_sparse_param_array=[
          hugectr.DataReaderSparseParam("data1", 1, True, 26)]))
  model.add(hugectr.SparseEmbedding(
      hugectr.Embedding_t.LocalizedSlotSparseEmbeddingOneHot, 24, WIDTH, "sum",
      "sparse_embedding1", "data1", slot_size_array=sizes))
add("MLP", ["dense"], ["mlp1"], num_outputs=[32, WIDTH])
add("Interaction", ["mlp1", "sparse_embedding1"], ["interaction1"])
add("MLP", ["interaction1"], ["mlp2"], num_outputs=[64, 32, 1],
    activations=[hugectr.Activation_t.Relu, hugectr.Activation_t.Relu,
                 hugectr.Activation_t.Non])
add("BinaryCrossEntropyLoss", ["mlp2", "label"], ["loss"])
model.compile()
model.summary()
model.fit(max_iter=args.max_iter, display=100, eval_interval=args.max_iter,
          snapshot=1000000)
