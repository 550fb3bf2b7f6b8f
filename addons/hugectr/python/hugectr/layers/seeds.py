# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Seeds of random ops, derived from names.

Together with the graph's seed (the solver's), they determine what an op draws.
Otherwise the result would depend on the number of ops created before.
"""

import zlib


def of(*names):
  """Returns an int in [0, 2^31): the seed for these names."""
  return zlib.crc32("\n".join(names).encode("utf-8")) >> 1
