# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests lookups of a Session in mixed precision."""

from unittest import mock

from absl.testing import absltest
from absl.testing import parameterized
import tensorflow as tf

from hugectr import small_model as model
from hugectr.training import graph
from hugectr.training import ranks
from hugectr.training import tables

_SCALER = 128


def _read(path):
  with open(path, "rb") as f:
    return f.read()


class MixedPrecisionTest(model.TestCase):

  def _trained(self, *configuration):
    """Returns the session after some steps, and the bytes of its model's files."""
    with mock.patch.object(ranks, "has_gpu", return_value=True):
      session = self.session(model.configuration(self.folder, *configuration),
                             use_mixed_precision=True, scaler=_SCALER)
    session.start_data_reading()
    for _ in range(6):
      session.train()
    prefix = self.create_tempdir().full_path + "/x"
    session.download_params_to_files(prefix, 1)
    return session, [_read(prefix + name) for name in ("0_sparse_1.model", "_dense_1.model")]

  @parameterized.parameters(("SGD",), ("Adam",), ("AdaGrad", "Local", True),
                            ("MomentumSGD",))
  def test_same_bits_as_division_before_the_sums(self, *configuration):
    session, found = self._trained(*configuration)
    lookups = [op for op in session._session.graph.get_operations()
               if op.type == "EvLookupSparse"]
    self.assertEqual([op.outputs[0].dtype for op in lookups], [tf.float16] * 2)

    # Float32 lookups, whose gradients are float32 and divided, sample by sample.
    lookup = tables.sok.lookup_sparse
    rounded = tf.custom_gradient(lambda x: (
        tf.cast(x, tf.float16), lambda dx: tf.cast(dx, tf.float32) / _SCALER))

    def float32_lookup(*args, output_dtype, **kwargs):
      self.assertEqual(output_dtype, tf.float16)
      return [rounded(x) for x in lookup(*args, **kwargs)]

    def dense_divided(self, found):
      dense = set(self.parameters.trained)
      return [(g / _SCALER if v in dense else g, v) for g, v in found]

    with mock.patch.object(tables.sok, "lookup_sparse", float32_lookup), \
        mock.patch.object(graph.Graph, "_unscaled", dense_divided):
      _, expected = self._trained(*configuration)
    self.assertEqual(found, expected)


if __name__ == "__main__":
  absltest.main()
