# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Opens the files of a configuration's format."""

import os

from hugectr.data import kept
from hugectr.data import norm
from hugectr.data import parquet
from hugectr.data import raw


def open_source(path, data, key_type, batch_size, shuffle_seed=None, for_training=True):
  """Returns the source of a file list or file.

  Its `chunks()` yields all samples once; its `reader(layouts, repeat, rank, ranks)`
  returns a reader of batches from the beginning.

  Args:
    path: string.
    data: config's Data.
    key_type: "I32" or "I64".
    batch_size: int, samples per batch of all ranks; the block size of a Raw file.
    shuffle_seed: int, seed of the order of a Raw file's blocks; None: the file's order.
    for_training: bool, selects which of the configuration's two numbers of samples a
      Raw file has.

  Raises:
    DataError: files are missing or invalid; `chunks` and `reader` raise it too.
  """
  threads = max(1, min(data.num_workers, os.cpu_count() or 1))
  if data.format == "Parquet":
    return parquet.Source(path, data, key_type, batch_size, threads)
  if data.format == "Norm":
    return norm.Source(path, data, key_type, batch_size, threads)
  samples = data.clause["num_samples" if for_training else "eval_num_samples"]
  return raw.Source(path, data, samples, batch_size, shuffle_seed, threads)


def opener(data, key_type, batch_size, repeat, layouts, rank, ranks, shuffle_seed=None,
           for_training=True):
  """Returns a function (path) -> a reader of batches from the beginning.

  With `cache_eval_data`, that many batches of a Raw evaluation file are cached in
  memory for later readers of the function.

  Args:
    data, key_type, batch_size, shuffle_seed, for_training: as in `open_source`.
    repeat: bool, whether the data starts again at its end.
    layouts: list of batches.InputLayout.
    rank: int.
    ranks: int.
  """

  def open_reader(path):
    return open_source(path, data, key_type, batch_size, shuffle_seed, for_training).reader(
        layouts, repeat, rank, ranks)

  most = data.clause.get("cache_eval_data", 0)
  if data.format != "Raw" or for_training or not most:
    return open_reader
  return kept.KeptBatches(open_reader, most, data.clause["eval_num_samples"], batch_size,
                          repeat).open
