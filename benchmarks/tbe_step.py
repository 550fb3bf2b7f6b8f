# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures the sparse step of dlrm_ranks.py with FBGEMM's TBE, whose tables have no keys.

  python3.12 -m venv tbe
  tbe/bin/pip install torch==2.11.0 fbgemm-gpu==1.6.0 absl-py numpy
  tbe/bin/python benchmarks/tbe_step.py --part=0.1

Pooled lookup of all tables, one id per sample, and Adagrad with gradients of ones. All rows
are in GPU memory; with --part that part of them is, as a cache of rows in managed memory.
Prints the median of the second half of the steps in milliseconds. Needs an NVIDIA GPU.
"""

import time

from absl import app
from absl import flags
from fbgemm_gpu import split_embedding_configs
from fbgemm_gpu import split_table_batched_embeddings_ops_common as common
from fbgemm_gpu import split_table_batched_embeddings_ops_training as training
import numpy as np
import torch

import defaults
import ids as id_lib

FLAGS = flags.FLAGS

flags.DEFINE_integer("tables", 10, "Number of tables.")
flags.DEFINE_integer("batch", 65536, "Samples per step.")
flags.DEFINE_integer("dim", 128, "Floats per row.")
flags.DEFINE_integer("rows", 2 * 1000 * 1000, "Rows of a table.")
flags.DEFINE_enum("distribution", "zipf", list(defaults.DISTRIBUTIONS),
                  "Distribution of the ids over a table's rows.")
flags.DEFINE_float("part", 0., "Part of the rows in the cache; 0: no cache.")
flags.DEFINE_integer("num_batches", 32, "Batches of ids that the steps rotate through.")
flags.DEFINE_integer("steps", 72, "Steps, half of them measured.")


def main(unused_argv):
  workload = defaults.Workload(FLAGS.distribution, 1, FLAGS.dim, tables=FLAGS.tables,
                               batch=FLAGS.batch, rows=FLAGS.rows)
  batches = [torch.from_numpy(batch.reshape(-1)).cuda() for batch in id_lib.batches(
      workload, FLAGS.num_batches, 1, defaults.ZIPF_EXPONENT)]
  offsets = torch.arange(FLAGS.tables * FLAGS.batch + 1, dtype=torch.int64, device="cuda")
  location = (common.EmbeddingLocation.MANAGED_CACHING if FLAGS.part else
              common.EmbeddingLocation.DEVICE)
  spec = (FLAGS.rows, FLAGS.dim, location, training.ComputeDevice.CUDA)
  tables = training.SplitTableBatchedEmbeddingBagsCodegen(
      [spec] * FLAGS.tables, learning_rate=defaults.LEARNING_RATE,
      optimizer=split_embedding_configs.EmbOptimType.EXACT_ADAGRAD,
      cache_load_factor=FLAGS.part or .2, pooling_mode=common.PoolingMode.SUM)
  grads = torch.ones(FLAGS.batch, FLAGS.tables * FLAGS.dim, device="cuda")
  times = []
  for n in range(FLAGS.steps):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    tables(batches[n % FLAGS.num_batches], offsets).backward(grads)
    torch.cuda.synchronize()
    times.append(1e3 * (time.perf_counter() - begin))
  print("TBE, %s, part %g: median %.2f ms" % (
      FLAGS.distribution, FLAGS.part, np.median(times[FLAGS.steps // 2:])))


if __name__ == "__main__":
  app.run(main)
