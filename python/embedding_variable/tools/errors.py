# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the tools say instead of a stack trace."""


class ToolError(Exception):
  """Something about the request or the checkpoint; the message is for the user."""
