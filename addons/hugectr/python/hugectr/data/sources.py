# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Opens the files of a configuration's format."""

import os

from hugectr.data import kept
from hugectr.data import norm
from hugectr.data import parquet
from hugectr.data import raw


def open_source(path, data, key_type, batch_size, shuffle_seed=None, for_training=True):
  """Returns the source of a file list or file: its `chunks()` are the samples once, its
  `reader(layouts, repeat, rank, ranks)` is a reader of batches from the beginning.

  Args:
    path: string.
    data: config's Data.
    key_type: "I32" or "I64".
    batch_size: int, samples of a batch of all ranks, the blocks of a Raw file.
    shuffle_seed: int, of the order of a Raw file's blocks; None: the file's order.
    for_training: bool, which of the two numbers of samples a Raw file has.

  Raises:
    DataError: files are missing or are something else; `chunks` and `reader` raise it too.
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

  With `cache_eval_data` the first so many batches of a Raw file to evaluate are kept in
  memory, and are given again to readers that the function returns later.

  Args:
    data, key_type, batch_size, shuffle_seed, for_training: as of `open_source`.
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
