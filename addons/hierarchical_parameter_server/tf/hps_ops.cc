// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/bridge/compat.h"
#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace hps {
namespace {

using tensorflow::Status;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

REGISTER_OP("HpsInit")
    .Input("ps_config_file: string")
    .Input("num_replicas: int32")
    .Output("status: string")
    .Attr("global_batch_size: int = 1")
    .SetIsStateful()
    .EV_KEEPS_CODES_OF_ERRORS
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle scalar;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 0, &scalar));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 0, &scalar));
      c->set_output(0, c->Scalar());
      return Status();
    })
    .Doc(R"doc(
Starts the parameter server of this process, unless it runs.

ps_config_file: Path of the JSON configuration. The environment variable
  HPS_PS_CONFIG_FILE goes before it. Empty: the configuration that runs.
num_replicas: Replicas that share the batch.
status: "OK".
global_batch_size: Samples of a batch over all replicas.
)doc");

REGISTER_OP("HpsLookup")
    .Input("ids: Tids")
    .Input("init_status: string")
    .Output("rows: dtype")
    .Attr("model_name: string")
    .Attr("table_id: int >= 0")
    .Attr("emb_vec_size: int >= 1")
    .Attr("Tids: {int32, int64}")
    .Attr("dtype: {float} = DT_FLOAT")
    .SetIsStateful()
    .EV_KEEPS_CODES_OF_ERRORS
    .SetShapeFn([](InferenceContext* c) {
      tensorflow::int64 width = 0;
      TF_RETURN_IF_ERROR(c->GetAttr("emb_vec_size", &width));
      ShapeHandle rows;
      TF_RETURN_IF_ERROR(c->Concatenate(c->input(0), c->Vector(width), &rows));
      c->set_output(0, rows);
      return Status();
    })
    .Doc(R"doc(
Rows of a table; an id that is not there has the table's default value.

ids: Keys, of any shape and with any duplicates.
init_status: Output of HpsInit, which then runs before.
rows: ids.shape + [emb_vec_size].
model_name: A model of the configuration.
table_id: Position in the model's list of tables.
emb_vec_size: The table's width.
)doc");

REGISTER_OP("HpsDistinct")
    .Input("ids: Tids")
    .Output("distinct: Tids")
    .Output("positions: int32")
    .Attr("Tids: {int32, int64}")
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle ids;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 1, &ids));
      c->set_output(0, c->Vector(InferenceContext::kUnknownDim));
      c->set_output(1, ids);
      return Status();
    })
    .Doc(R"doc(
Distinct ids, in the order of their first occurrences.

ids: [n].
distinct: [number of distinct ids].
positions: [n]; distinct[positions[i]] is ids[i].
)doc");

REGISTER_OP("HpsCommand")
    .Input("command: string")
    .Input("argument: string")
    .Output("answer: string")
    .SetIsStateful()
    .EV_KEEPS_CODES_OF_ERRORS
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc(R"doc(
A command for the parameter server of this process.

command: metrics, notes, stop, add_models, reload_model, remove_model, loaded_rows,
  check.
argument: A path or a model's name, where the command takes one.
answer: JSON or nothing.
)doc");

REGISTER_OP("HpsPushRows")
    .Input("tag: string")
    .Input("keys: int64")
    .Input("rows: float")
    .SetIsStateful()
    .EV_KEEPS_CODES_OF_ERRORS
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle shape;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 0, &shape));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 1, &shape));
      return c->WithRank(c->input(2), 2, &shape);
    })
    .Doc(R"doc(
Stores rows in a table of the running server.

tag: hps_et.<model>.<table>.
keys: [n].
rows: [n, width].
)doc");

}  // namespace
}  // namespace hps
