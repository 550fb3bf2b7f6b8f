# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""CreateETC and CreateMOS: tables larger than the memory that trains on them."""

import collections
import ctypes
import numbers
import os

from hugectr.api import enums
from hugectr.api import printing
from hugectr.config import errors
from hugectr.training import sparse_files
from hugectr.training import tables

_ETC = "hugectr.CreateETC"
_HMEM = "hugectr.CreateHMemCache"
_MOS = "hugectr.CreateMOS"

HMemCacheConfig = collections.namedtuple("HMemCacheConfig", ["num_blocks"])


class EtcParams(object):
  """The arguments of CreateETC or CreateMOS.

  Attributes:
    where: string, the call, for errors.
    types: list of "Staged" or "Cached", one per embedding; one entry applies to all.
    loaded: list of folders of rows to start with, one per embedding; None: folders of
      `saved` that exist.
    saved: list of folders that get the rows, one per embedding.
    folders: list of folders for rows on an SSD, one per process, or one for all.
    blocks: list of ints, one per embedding or one for all.
  """

  def __init__(self, where, types, loaded, saved, folders, blocks):
    self.where, self.types, self.loaded, self.saved = where, types, loaded, saved
    self.folders, self.blocks = folders, blocks

  def check(self, names):
    """Raises ConfigError unless there is one path per embedding."""
    for what, values, least in (("ps_types", self.types, 1),
                                ("sparse_models", self.saved, len(names)),
                                ("trained_sparse_models", self.loaded, len(names)),
                                ("hmem_cache_configs", self.blocks, 1)):
      if values is not None and len(values) not in (least, len(names)):
        raise errors.ConfigError("%s: %s: expected %d values, one per embedding (%s), got %d" %
                                 (self.where, what, len(names), ", ".join(names),
                                  len(values)))

  def beyond(self, names, rank, ranks):
    """Returns {name of an embedding: tables.BeyondMemory}; others are in one memory.

    Args:
      names: list of the embeddings' names, as in `check`.
      rank, ranks: ints.
    """
    if len(self.folders) not in (0, 1, ranks):
      raise errors.ConfigError("%s: local_paths: expected 1 path, or %d, one per process, got "
                               "%d" % (self.where, ranks, len(self.folders)))
    found = {}
    for k, name in enumerate(names):
      kind = self.types[k if len(self.types) > 1 else 0]
      if kind == "Staged" and not _has_gpu():
        printing.once("%s: Staged: this machine has no GPU, so all rows of '%s' are in host "
                      "memory" % (self.where, name), rank)
      elif kind == "Staged":
        found[name] = tables.BeyondMemory("HBM_DRAM", None)
      else:
        folder = self.folders[rank if len(self.folders) > 1 else 0]
        found[name] = tables.BeyondMemory(
            "DRAM_SSDHASH", folder, self.blocks[k if len(self.blocks) > 1 else 0])
    return found

  def to_load(self, names):
    """Returns {name of an embedding: folder of rows to start with}."""
    if self.loaded is not None:
      return dict(zip(names, self.loaded))
    return {name: path for name, path in zip(names, self.saved)
            if os.path.exists(os.path.join(sparse_files.current(path), "key"))}


def _has_gpu():
  try:
    ctypes.CDLL("libcuda.so.1")
    return True
  except OSError:
    return False


def _paths(where, name, value):
  paths = [value] if isinstance(value, str) else list(value)
  if not all(isinstance(p, str) and p for p in paths):
    raise TypeError("%s: %s: expected a list of paths, got %r" % (where, name, value))
  return paths


def CreateHMemCache(  # pylint: disable=invalid-name
    num_blocks, target_hit_rate, max_num_evict):
  """Returns the size of a Cached table's part in host memory.

  Args:
    num_blocks: int of at least 1; memory holds num_blocks times the rows of the
      embedding's workspace.
    target_hit_rate: number, without effect: the rows that are used most stay in memory.
    max_num_evict: int, without effect.

  Raises:
    ValueError: num_blocks is invalid.
  """
  if isinstance(num_blocks, bool) or not isinstance(num_blocks, numbers.Integral) or (
      num_blocks < 1):
    raise ValueError("%s: num_blocks: expected an integer of at least 1, got %r" %
                     (_HMEM, num_blocks))
  printing.without_effect(_HMEM, {"target_hit_rate": (target_hit_rate, None),
                                  "max_num_evict": (max_num_evict, None)})
  return HMemCacheConfig(int(num_blocks))


def CreateETC(  # pylint: disable=invalid-name
    ps_types, sparse_models=(), local_paths=(), hmem_cache_configs=()):
  """Returns the settings of an embedding training cache, for `Model`.

  The faster memory has the rows of an embedding's workspace that are used most.

  Args:
    ps_types: list of members of TrainPSType_t, one per embedding, or one for all.
      Staged: other rows are in host memory, and the fast ones in GPU memory; without a
      GPU all are in host memory. Cached: other rows are in files, and the fast ones in
      host memory.
    sparse_models: list of folders, one per embedding, to which
      `Model.save_params_to_files` writes the rows. Those that exist are loaded by
      `Model.compile`.
    local_paths: list of folders for the files of Cached tables: one, or one per process.
    hmem_cache_configs: list of results of CreateHMemCache, one per embedding, or one for
      all; empty: one block.

  Raises:
    TypeError, ValueError: an argument is invalid.
  """
  types = [ps_types] if isinstance(ps_types, enums.TrainPSType_t) else list(ps_types)
  types = [enums.check(_ETC, "ps_types", t, enums.TrainPSType_t) for t in types]
  if not types:
    raise ValueError("%s: ps_types is empty; expected a hugectr.TrainPSType_t per embedding" %
                     _ETC)
  folders = _paths(_ETC, "local_paths", local_paths)
  if "Cached" in types and not folders:
    raise ValueError("%s: local_paths is empty; Cached tables need a folder for their files" %
                     _ETC)
  saved = _paths(_ETC, "sparse_models", sparse_models)
  if not saved:
    raise ValueError("%s: sparse_models is empty; expected a folder per embedding, which "
                     "gets its rows" % _ETC)
  for config in hmem_cache_configs:
    if not isinstance(config, HMemCacheConfig):
      raise TypeError("%s: hmem_cache_configs: expected what CreateHMemCache returns, got %r" %
                      (_ETC, config))
  blocks = [c.num_blocks for c in hmem_cache_configs] or [1]
  return EtcParams(_ETC, types, None, saved, folders, blocks)


def CreateMOS(  # pylint: disable=invalid-name
    train_from_scratch, use_host_memory_ps=True, trained_sparse_models=(),
    dest_sparse_models=()):
  """Returns the settings of a model oversubscriber, as CreateETC in versions 3.1 and 3.2.

  Args:
    train_from_scratch: bool. False: `Model.compile` loads trained_sparse_models.
    use_host_memory_ps: bool. True: as Staged; False: as Cached, with files in the folders
      "<dest_sparse_model>.rows".
    trained_sparse_models: list of folders of rows, one per embedding.
    dest_sparse_models: list of folders, one per embedding, that
      `Model.save_params_to_files` writes.

  Raises:
    TypeError, ValueError: an argument is invalid.
  """
  loaded = _paths(_MOS, "trained_sparse_models", trained_sparse_models)
  saved = _paths(_MOS, "dest_sparse_models", dest_sparse_models)
  if not saved:
    raise ValueError("%s: dest_sparse_models is empty; expected a folder per embedding" % _MOS)
  if not train_from_scratch and not loaded:
    raise ValueError("%s: trained_sparse_models is empty, which train_from_scratch=False "
                     "needs" % _MOS)
  return EtcParams(_MOS, ["Staged" if use_host_memory_ps else "Cached"],
                   [] if train_from_scratch else loaded, saved, [saved[0] + ".rows"], [1])
