# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The one error of these commands."""


class GpuError(Exception):
  """Something that the user has to change; the message says what and how."""
