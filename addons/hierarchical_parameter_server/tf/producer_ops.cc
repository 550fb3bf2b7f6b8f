// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tensorflow/core/framework/common_shape_fns.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/shape_inference.h"

namespace hps {
namespace {

using tensorflow::Status;
using tensorflow::shape_inference::InferenceContext;
using tensorflow::shape_inference::ShapeHandle;

REGISTER_OP("HpsOpenProducer")
    .Input("type: string")
    .Input("target: string")
    .Output("producer: int64")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::ScalarShape)
    .Doc(R"doc(
Opens what sends updates of tables to servers.

type: kafka_message_queue or directory.
target: Brokers, or the folder's path.
producer: Its number in this process.
)doc");

REGISTER_OP("HpsSendRows")
    .Input("producer: int64")
    .Input("tag: string")
    .Input("keys: int64")
    .Input("rows: float")
    .SetIsStateful()
    .SetShapeFn([](InferenceContext* c) {
      ShapeHandle shape;
      TF_RETURN_IF_ERROR(c->WithRank(c->input(0), 0, &shape));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(1), 0, &shape));
      TF_RETURN_IF_ERROR(c->WithRank(c->input(2), 1, &shape));
      return c->WithRank(c->input(3), 2, &shape);
    })
    .Doc(R"doc(
Gives rows of a table to a producer, which may keep them until it has more.

tag: hps_et.<model>.<table>.
keys: [n].
rows: [n, width].
)doc");

REGISTER_OP("HpsFlushRows")
    .Input("producer: int64")
    .Input("timeout_ms: int64")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc(R"doc(
Returns when all rows that a producer was given are where servers find them.
)doc");

REGISTER_OP("HpsCloseProducer")
    .Input("producer: int64")
    .SetIsStateful()
    .SetShapeFn(tensorflow::shape_inference::NoOutputs)
    .Doc(R"doc(
Closes a producer.
)doc");

}  // namespace
}  // namespace hps
