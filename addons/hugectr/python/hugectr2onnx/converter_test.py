# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""hugectr2onnx can be imported, and its error names what to use instead."""

from absl.testing import absltest

import hugectr2onnx
from hugectr2onnx import converter


class ConverterTest(absltest.TestCase):

  def test_convert_is_an_error(self):
    self.assertIs(hugectr2onnx.converter, converter)
    with self.assertRaisesRegex(NotImplementedError, "dcn.json was not written to dcn.onnx: "
                                "this package does not write ONNX.*export_saved_model"):
      converter.convert("dcn.onnx", "dcn.json", dense_model="dcn_dense_10.model",
                        convert_embedding=True, sparse_models=["dcn0_sparse_10.model"],
                        ntp_file=None, graph_name="dcn")
    with self.assertRaises(TypeError):
      converter.convert("dcn.onnx", graph="dcn.json")


if __name__ == "__main__":
  absltest.main()
