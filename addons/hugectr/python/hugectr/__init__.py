# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""HugeCTR's Session over a JSON configuration, on stock TensorFlow 1.15.

  from hugectr import Session, solver_parser_helper, get_learning_rate_scheduler
"""

from hugectr.config.errors import ConfigError
from hugectr.data.errors import DataError
from hugectr.training.learning_rate import LearningRateScheduler
from hugectr.training.learning_rate import get_learning_rate_scheduler
from hugectr.training.session import Session
from hugectr.training.solver import SolverParser
from hugectr.training.solver import solver_parser_helper

__all__ = [
    "ConfigError",
    "DataError",
    "LearningRateScheduler",
    "Session",
    "SolverParser",
    "get_learning_rate_scheduler",
    "solver_parser_helper",
]
