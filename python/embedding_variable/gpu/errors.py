# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The error raised by these commands."""


class GpuError(Exception):
  """A problem that the user must fix; the message has the cause and the remedy."""
