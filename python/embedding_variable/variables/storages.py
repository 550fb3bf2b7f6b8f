# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The storages: kinds of memory and files that hold a table's rows.

The only table of storages in Python. `StorageOption` selects a storage by a DeepRec
`StorageType`, the op `EvHandle` by its name, and `EmbeddingVariable.storage_type`
reports a `StorageType`. Optimizers and lookups read the properties of a storage from
this table.
"""

import collections

from embedding_variable.variables import config_pb2

_Type = config_pb2.StorageType

# One storage.
#   name: string, the attribute `storage` of `EvHandle`.
#   reported: number of `config_pb2.StorageType`, or "auto": the value of
#     `EmbeddingVariable.storage_type`.
#   selected_by: tuple of the values of `StorageOption.storage_type` that select it.
#   bounded_memories: tuple of strings, names in errors of the memories whose bytes are
#     `storage_size[0]`, `storage_size[1]`, the fastest first; (): all rows are in one
#     memory.
#   has_files: bool, whether the other rows are in files below `storage_path`.
#   may_use_gpu: bool, whether rows may be in GPU memory.
#   counts_hits: bool, whether the op `EvTierStats` counts hits and misses.
#   charts: names of the charts of rows in each memory, the fastest first; () if all rows
#     are in one memory.
Storage = collections.namedtuple("Storage", [
    "name", "reported", "selected_by", "bounded_memories", "has_files", "may_use_gpu",
    "counts_hits", "charts"
])

# All rows in CPU memory.
DRAM = Storage(
    "dram", _Type.DRAM, (None, _Type.DEFAULT, _Type.DRAM, _Type.PMEM_MEMKIND,
                         _Type.PMEM_LIBPMEM, _Type.DRAM_PMEM),
    bounded_memories=(), has_files=False, may_use_gpu=False, counts_hits=False,
    charts=())

# All rows in the memory of the process's GPU.
HBM = Storage(
    "hbm", _Type.HBM, (_Type.HBM,),
    bounded_memories=(), has_files=False, may_use_gpu=True, counts_hits=True, charts=())

# Like HBM if the process can use a GPU when the table is initialised, else like DRAM.
AUTO = Storage(
    "auto", "auto", ("auto",),
    bounded_memories=(), has_files=False, may_use_gpu=True, counts_hits=False, charts=())

# The most used rows in CPU memory, the others in a file. DeepRec's SSDHASH is the same.
DRAM_SSD = Storage(
    "dram_ssd", _Type.DRAM_SSDHASH,
    (_Type.SSDHASH, _Type.DRAM_SSDHASH, _Type.LEVELDB, _Type.DRAM_LEVELDB,
     _Type.DRAM_PMEM_SSDHASH),
    bounded_memories=("memory",), has_files=True, may_use_gpu=False, counts_hits=True,
    charts=("rows_in_memory", "rows_on_ssd"))

# The most used rows in GPU memory, the others in CPU memory.
HBM_DRAM = Storage(
    "hbm_dram", _Type.HBM_DRAM, (_Type.HBM_DRAM,),
    bounded_memories=("GPU memory",), has_files=False, may_use_gpu=True,
    counts_hits=True, charts=("rows_in_gpu_memory", "rows_in_cpu_memory"))

# The most used rows in GPU memory, the next ones in CPU memory, the others in a file.
HBM_DRAM_SSD = Storage(
    "hbm_dram_ssd", _Type.HBM_DRAM_SSDHASH, (_Type.HBM_DRAM_SSDHASH,),
    bounded_memories=("GPU memory", "CPU memory"), has_files=True, may_use_gpu=True,
    counts_hits=True,
    charts=("rows_in_gpu_memory", "rows_in_cpu_memory", "rows_on_ssd"))

TABLE = (DRAM, HBM, AUTO, DRAM_SSD, HBM_DRAM, HBM_DRAM_SSD)

# Storage types that need a `storage_path`.
NEED_PATH = frozenset(t for s in TABLE if s.has_files for t in s.selected_by)

# DeepRec's types that another storage answers, and where their rows are.
STANDS_IN = {
    _Type.PMEM_MEMKIND: "CPU memory",
    _Type.PMEM_LIBPMEM: "CPU memory",
    _Type.DRAM_PMEM: "CPU memory",
    _Type.LEVELDB: "CPU memory and a file, as with DRAM_SSDHASH",
    _Type.DRAM_LEVELDB: "CPU memory and a file, as with DRAM_SSDHASH",
    _Type.DRAM_PMEM_SSDHASH: "CPU memory and a file, as with DRAM_SSDHASH",
}

_BY_TYPE = {t: s for s in TABLE for t in s.selected_by}
_BY_NAME = {s.name: s for s in TABLE}
_BY_REPORTED = {s.reported: s for s in TABLE}


def of_type(storage_type):
  """Returns the `Storage` for a `StorageOption.storage_type`."""
  return _BY_TYPE[storage_type]


def of_name(name):
  """Returns the `Storage` with this name in the op `EvHandle`."""
  return _BY_NAME[name]


def of_variable(variable):
  """Returns the `Storage` of an embedding variable."""
  return _BY_REPORTED[variable.storage_type]


def pairs_of_tiers(storage):
  """Returns the number of pairs of adjacent memories, see `handle_ops.tier_stats`."""
  return max(1, len(storage.charts) - 1)
