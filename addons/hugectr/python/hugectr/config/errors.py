# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Errors of configurations."""


class ConfigError(ValueError):
  """A configuration is wrong. The text has one line per mistake, each with its path.

  Attributes:
    mistakes: list of strings.
  """

  def __init__(self, mistakes):
    if isinstance(mistakes, str):
      mistakes = [mistakes]
    self.mistakes = list(mistakes)
    super(ConfigError, self).__init__("\n".join(self.mistakes))
