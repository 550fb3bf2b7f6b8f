# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""What is raised for a configuration that cannot be trained."""


class ConfigError(ValueError):
  """A configuration is wrong; the text is one line per mistake, each with its path.

  Attributes:
    mistakes: list of strings.
  """

  def __init__(self, mistakes):
    if isinstance(mistakes, str):
      mistakes = [mistakes]
    self.mistakes = list(mistakes)
    super(ConfigError, self).__init__("\n".join(self.mistakes))
