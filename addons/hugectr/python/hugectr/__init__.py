# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""HugeCTR's Python API, and its Session over a JSON, on stock TensorFlow 1.15.

  import hugectr                       # CreateSolver, Model, Input, DenseLayer, ...
  from hugectr import Session, solver_parser_helper, get_learning_rate_scheduler

Names are imported on first use: importing TensorFlow takes seconds, and `python -m
hugectr check` does not need it.
"""

import importlib

from hugectr import version as _version
from hugectr.api import enums as _enums

__version__ = _version.version()

# The module that defines each name.
_HOMES = {
    "AsyncParam": "hugectr.api.reader",
    "ConfigError": "hugectr.config.errors",
    "CreateETC": "hugectr.api.cache",
    "CreateHMemCache": "hugectr.api.cache",
    "CreateMOS": "hugectr.api.cache",
    "CreateOptimizer": "hugectr.api.optimizer",
    "CreateSolver": "hugectr.api.solver",
    "DataError": "hugectr.data.errors",
    "DataReaderParams": "hugectr.api.reader",
    "DataReaderSparseParam": "hugectr.api.reader",
    "DataSourceParams": "hugectr.api.reader",
    "DenseLayer": "hugectr.api.dense_layer",
    "DenseLayerComputeConfig": "hugectr.api.dense_layer",
    "DenseLayerSwitches": "hugectr.api.dense_layer",
    "EmbeddingCollectionConfig": "hugectr.api.collection",
    "EmbeddingTableConfig": "hugectr.api.collection",
    "GroupDenseLayer": "hugectr.api.dense_layer",
    "HybridEmbeddingParam": "hugectr.api.embedding",
    "Input": "hugectr.api.reader",
    "LearningRateScheduler": "hugectr.training.learning_rate",
    "Model": "hugectr.api.model",
    "ModelOversubscriber": "hugectr.training.oversubscriber",
    "Session": "hugectr.training.session",
    "SolverParser": "hugectr.training.solver",
    "SparseEmbedding": "hugectr.api.embedding",
    "TrainingCallback": "hugectr.api.fitting",
    "get_learning_rate_scheduler": "hugectr.training.learning_rate",
    "solver_parser_helper": "hugectr.training.solver",
}

_HOMES.update(dict.fromkeys(_enums.NAMES + ["DataSourceType_t"], "hugectr.api.enums"))

# Modules that scripts use after `import hugectr` alone.
_MODULES = ("data", "inference", "tools")

# Upstream's names that this package does not have, with the reason.
_MISSING = {"EmbeddingPlanner": "use EmbeddingCollectionConfig, as from version 4.2"}

__all__ = sorted(_HOMES)


def __getattr__(name):
  if name in _MODULES:
    return importlib.import_module("hugectr." + name)
  if name not in _HOMES and name in _enums.MEMBERS:
    return _enums.MEMBERS[name]
  if name not in _HOMES:
    raise AttributeError("module 'hugectr' has no attribute '%s'%s" % (
        name, ": " + _MISSING[name] if name in _MISSING else ""))
  found = getattr(importlib.import_module(_HOMES[name]), name)
  globals()[name] = found
  return found


def __dir__():
  return sorted(list(globals()) + __all__)
