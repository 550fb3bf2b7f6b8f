# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Maps a key to its part of a partitioned embedding variable.

The part is `floormod(key, 1000) % n`, whatever partition strategy a caller names. The
key itself is stored unchanged, so a checkpoint can be restored with another number of
parts.
"""

from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops

_NUM_BUCKETS = 1000


def part_of(ids, num_parts):
  """Returns int32 of the shape of `ids`: the part of each id."""
  ids = math_ops.cast(ids, dtypes.int64)
  bucket = math_ops.floormod(ids, _NUM_BUCKETS)
  return math_ops.cast(math_ops.floormod(bucket, num_parts), dtypes.int32)
