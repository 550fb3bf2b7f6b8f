# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: adds DeepRec's modules of the stand-ins.

Why: a script imports `tensorflow.python.ops.work_queue`. A module is found through
`sys.modules` and through its parent's attribute.
"""

from embedding_variable.deeprec import dataframe
from embedding_variable.deeprec import notices
from embedding_variable.deeprec import parquet_dataset
from embedding_variable.deeprec import stages
from embedding_variable.deeprec import work_queue
from embedding_variable.deeprec.collective import collective_strategy
from embedding_variable.integration import patching

_DATA = "tensorflow.python.data.experimental.ops."


def install():
  """Adds the modules."""
  patching.add_module("tensorflow.python.ops.work_queue", {"WorkQueue": WorkQueue})
  patching.add_module("tensorflow.python.ops.prefetch", {
      "staged": stages.staged,
      "prefetch_join": stages.prefetch_join,
      "make_prefetch_hook": stages.make_prefetch_hook,
  })
  patching.add_module(
      "tensorflow.python.distribute.group_embedding_collective_strategy",
      {"CollectiveStrategy": collective_strategy.CollectiveStrategy})
  patching.add_module(_DATA + "dataframe", {
      "DataFrame": dataframe.DataFrame,
      "to_sparse": dataframe.to_sparse,
      "unbatch_and_to_sparse": dataframe.unbatch_and_to_sparse,
  })
  patching.add_module(_DATA + "parquet_dataset_ops", {
      "ParquetDataset": ParquetDataset,
      "read_parquet": parquet_dataset.read_parquet,
      "DataFrame": dataframe.DataFrame,
  })
  patching.add_module(_DATA + "parquet_pybind", {
      "parquet_fields": parquet_dataset.parquet_fields,
      "parquet_filenames_and_fields": parquet_dataset.parquet_filenames_and_fields,
  })


class WorkQueue(work_queue.WorkQueue):
  """`work_queue.WorkQueue`, reported at its first use."""

  def __init__(self, *args, **kwargs):
    notices.stands_in("WorkQueue", "embedding_variable.deeprec.work_queue; unfinished "
                      "works are handed out again after a restore")
    super(WorkQueue, self).__init__(*args, **kwargs)


class ParquetDataset(parquet_dataset.ParquetDataset):
  """`parquet_dataset.ParquetDataset`, reported at its first use."""

  def __init__(self, *args, **kwargs):
    notices.stands_in("ParquetDataset", "embedding_variable.deeprec.parquet_dataset, on "
                      "pyarrow")
    super(ParquetDataset, self).__init__(*args, **kwargs)
