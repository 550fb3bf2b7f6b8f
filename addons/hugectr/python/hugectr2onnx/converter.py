# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`convert`, which raises an error."""


def convert(onnx_model_path, graph_config, dense_model, convert_embedding=False,
            sparse_models=None, ntp_file=None, graph_name="hugectr"):
  """Raises NotImplementedError; arguments are those of upstream.

  Args:
    onnx_model_path: path of the ONNX file.
    graph_config: path of a JSON of `Model.graph_to_json`.
    dense_model: path of dense parameters.
    convert_embedding: bool.
    sparse_models: list of paths of rows.
    ntp_file: path of BatchNorm's running values.
    graph_name: string.
  """
  del dense_model, convert_embedding, sparse_models, ntp_file, graph_name
  raise NotImplementedError(
      "hugectr2onnx.converter.convert: %s was not written to %s: this package does not "
      "write ONNX. hugectr.inference predicts with the same files, and "
      "hugectr.Session.export_saved_model writes a SavedModel, which TensorFlow serves" %
      (graph_config, onnx_model_path))
