# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""HugeCTR's Session over a JSON configuration, on stock TensorFlow 1.15.

  from hugectr import Session, solver_parser_helper, get_learning_rate_scheduler

Names are imported on first use: importing TensorFlow takes seconds, and `python -m
hugectr check` does not need it.
"""

import importlib

from hugectr import version as _version

__version__ = _version.version()

# The module that defines each name.
_HOMES = {
    "ConfigError": "hugectr.config.errors",
    "DataError": "hugectr.data.errors",
    "LearningRateScheduler": "hugectr.training.learning_rate",
    "ModelOversubscriber": "hugectr.training.oversubscriber",
    "Session": "hugectr.training.session",
    "SolverParser": "hugectr.training.solver",
    "get_learning_rate_scheduler": "hugectr.training.learning_rate",
    "solver_parser_helper": "hugectr.training.solver",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
  if name not in _HOMES:
    raise AttributeError("module 'hugectr' has no attribute '%s'" % name)
  found = getattr(importlib.import_module(_HOMES[name]), name)
  globals()[name] = found
  return found


def __dir__():
  return sorted(list(globals()) + __all__)
