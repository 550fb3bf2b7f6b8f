# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is raised for data that cannot be read."""


class DataError(ValueError):
  """A file is missing, damaged or not what the configuration says; the text names it."""
