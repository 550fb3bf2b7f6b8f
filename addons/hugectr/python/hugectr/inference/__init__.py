# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Predictions of a trained model, whose rows the inference parameter server holds.

  from hugectr.inference import InferenceParams, InferenceModel

  model = InferenceModel("graph.json", InferenceParams(
      model_name="dcn", max_batchsize=1024, hit_rate_threshold=1.0,
      dense_model_file="dcn_dense_1000.model", sparse_model_files=["dcn0_sparse_1000.model"],
      i64_input_key=False))
  predictions = model.predict(10, "val/_file_list.txt", hugectr.DataReaderType_t.Norm,
                              hugectr.Check_t.Sum)

This folder alone imports the package hierarchical_parameter_server, which is in a wheel
of its own; `InferenceModel`, `CreateInferenceSession` and `HPS` need it.
"""

from hugectr.inference.lookup import HPS
from hugectr.inference.model import CreateInferenceSession
from hugectr.inference.model import InferenceModel
from hugectr.inference.model import InferenceSession
from hugectr.inference.params import InferenceParams
from hugectr.inference.params import ParameterServerConfig
from hugectr.inference.params import PersistentDatabaseParams
from hugectr.inference.params import UpdateSourceParams
from hugectr.inference.params import VolatileDatabaseParams

__all__ = ["CreateInferenceSession", "HPS", "InferenceModel", "InferenceParams",
           "InferenceSession", "ParameterServerConfig", "PersistentDatabaseParams",
           "UpdateSourceParams", "VolatileDatabaseParams"]
