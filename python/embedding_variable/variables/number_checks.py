# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks of numbers in options. True and False are not numbers."""

import numbers


def is_int(value, least=None):
  """Returns whether `value` is an integer of at least `least` (if given)."""
  return (isinstance(value, numbers.Integral) and not isinstance(value, bool) and
          (least is None or value >= least))


def is_number(value):
  """Returns whether `value` is a number and not NaN."""
  return (isinstance(value, numbers.Real) and not isinstance(value, bool) and
          value == value)
