# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's version in SOK's form."""

import re

from embedding_variable.tf_names import tf


def tf_version():
  """Returns TensorFlow's version as a list of three integers, [1, 15, 5]."""
  return [int(re.match(r"\d+", part).group())
          for part in tf.__version__.split(".")[:3]]
