# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The error that the tools print instead of a stack trace."""


class ToolError(Exception):
  """A problem with the request or the checkpoint; the message is for the user."""
