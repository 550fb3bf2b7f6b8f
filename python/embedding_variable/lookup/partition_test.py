# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0

from absl.testing import absltest
from absl.testing import parameterized
import numpy as np
import tensorflow as tf

from embedding_variable.lookup import partition


class PartitionTest(parameterized.TestCase):

  @parameterized.product(num_parts=(1, 3, 7, 1000), dtype=(np.int32, np.int64))
  def test_bucket_then_part(self, num_parts, dtype):
    info = np.iinfo(dtype)
    ids = np.array([0, 1, -1, 999, 1000, -1000, -1001, info.min, info.max], dtype)
    with tf.Graph().as_default(), tf.Session() as session:
      parts = session.run(partition.part_of(tf.constant(ids), num_parts))
    self.assertEqual(parts.dtype, np.int32)
    # Python's remainder is never negative.
    self.assertEqual(parts.tolist(), [int(i) % 1000 % num_parts for i in ids])


if __name__ == "__main__":
  absltest.main()
