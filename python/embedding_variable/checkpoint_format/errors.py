# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The error whose message is for the user; programs print it without a stack trace."""


class CheckpointError(ValueError):
  """A problem with the request or the checkpoint."""
