# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""What an option accepts as a number: True and False are none."""

import numbers


def is_int(value, least=None):
  """Whether this is an integer, and not below `least` if that is given."""
  return (isinstance(value, numbers.Integral) and not isinstance(value, bool) and
          (least is None or value >= least))


def is_number(value):
  """Whether this is a number, and not NaN."""
  return (isinstance(value, numbers.Real) and not isinstance(value, bool) and
          value == value)
