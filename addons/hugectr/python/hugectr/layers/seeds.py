# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Seeds of random ops, by the names of what they are for.

Together with the graph's seed, the solver's, they decide what an op draws. Without one it
would depend on how many ops were made before.
"""

import zlib


def of(*names):
  """Returns an int in [0, 2^31): the seed of a thing."""
  return zlib.crc32("\n".join(names).encode("utf-8")) >> 1
