# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The storages: where a table's rows may be.

This is Python's one table of them. A user's `StorageOption` asks for a storage by a
DeepRec `StorageType`; the op `EvHandle` takes it by its name; a variable answers with a
`StorageType` again. Optimizers and lookups ask this table what is true of a storage.
"""

import collections

from embedding_variable.variables import config_pb2

_Type = config_pb2.StorageType

# One storage.
#   name: string, the attribute `storage` of `EvHandle`.
#   reported: number of `config_pb2.StorageType`, or "auto": what
#     `EmbeddingVariable.storage_type` says.
#   asked_by: tuple of what `StorageOption.storage_type` may be to get it.
#   bounded_memory: string, the memory that holds the rows that are used most, as errors
#     call it, and whose bytes are `storage_size[0]`; None: all rows are in one memory.
#   has_files: bool, whether the other rows are in files, below `storage_path`.
#   may_use_gpu: bool, whether rows may be in the memory of a GPU.
Storage = collections.namedtuple("Storage", [
    "name", "reported", "asked_by", "bounded_memory", "has_files", "may_use_gpu"
])

# Rows in CPU memory.
DRAM = Storage(
    "dram", _Type.DRAM, (None, _Type.DEFAULT, _Type.DRAM),
    bounded_memory=None, has_files=False, may_use_gpu=False)

# Rows in the memory of the process's GPU.
HBM = Storage(
    "hbm", _Type.HBM, (_Type.HBM,),
    bounded_memory=None, has_files=False, may_use_gpu=True)

# As HBM if the process can use a GPU when the table is initialised, else as DRAM.
AUTO = Storage(
    "auto", "auto", ("auto",),
    bounded_memory=None, has_files=False, may_use_gpu=True)

# The rows that are used most in CPU memory, the others in a file. DeepRec's SSDHASH is
# the same.
DRAM_SSD = Storage(
    "dram_ssd", _Type.DRAM_SSDHASH, (_Type.SSDHASH, _Type.DRAM_SSDHASH),
    bounded_memory="memory", has_files=True, may_use_gpu=False)

# The rows that are used most in GPU memory, the others in CPU memory.
HBM_DRAM = Storage(
    "hbm_dram", _Type.HBM_DRAM, (_Type.HBM_DRAM,),
    bounded_memory="GPU memory", has_files=False, may_use_gpu=True)

TABLE = (DRAM, HBM, AUTO, DRAM_SSD, HBM_DRAM)

# Storage types that need a `storage_path`; DeepRec's with LevelDB are not here, but a
# missing path is the first thing that is wrong with them.
NEED_PATH = frozenset(
    [t for s in TABLE if s.has_files for t in s.asked_by] +
    [_Type.LEVELDB, _Type.DRAM_LEVELDB])

_BY_TYPE = {t: s for s in TABLE for t in s.asked_by}
_BY_NAME = {s.name: s for s in TABLE}
_BY_REPORTED = {s.reported: s for s in TABLE}


def of_type(storage_type):
  """Returns the `Storage` that a `StorageOption.storage_type` asks for; None: not here."""
  return _BY_TYPE.get(storage_type)


def of_name(name):
  """Returns the `Storage` that the op `EvHandle` calls by this name."""
  return _BY_NAME[name]


def of_variable(variable):
  """Returns the `Storage` of an embedding variable."""
  return _BY_REPORTED[variable.storage_type]
