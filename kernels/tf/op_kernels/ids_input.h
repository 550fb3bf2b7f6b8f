// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reads one table's ids from a kernel's inputs. Errors name the variable.

#ifndef KERNELS_TF_OP_KERNELS_IDS_INPUT_H_
#define KERNELS_TF_OP_KERNELS_IDS_INPUT_H_

#include <string>

#include "kernels/engine/base/batch_limits.h"
#include "kernels/engine/ids/table_ids.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace embedding_variable {

// Reads input `ids`, a vector of int64 or int32, and input `batch_size`, a
// scalar.
inline tensorflow::Status GetIds(tensorflow::OpKernelContext* context,
                                 const std::string& variable, int ids,
                                 int batch_size, ev::IdsInput* in) {
  const tensorflow::Tensor& given = context->input(ids);
  TF_RETURN_IF_ERROR(CheckVector(given, variable, "ids"));
  in->num_ids = given.dim_size(0);
  if (given.dtype() == tensorflow::DT_INT64) {
    in->ids64 = Data<int64_t>(given);
  } else {
    in->ids32 = Data<int32_t>(given);
  }
  const tensorflow::Tensor& batch = context->input(batch_size);
  if (batch.dims() != 0) {
    return BadInput(variable, "the batch size: expected a scalar, got shape ",
                    batch.shape().DebugString());
  }
  in->batch_size = batch.scalar<tensorflow::int64>()();
  if (ev::IsBatchSize(in->batch_size)) return tensorflow::Status();
  return BadInput(variable, "a batch of ", in->batch_size,
                  " samples; the batch size, which is the first element of the "
                  "ids' dense_shape: expected a number in [0, ",
                  ev::kMaxBatch, "]");
}

// Reads input `rows`, the samples' row splits [B + 1] or the ids' indices [N,
// 2], and input `weights`, [N]; negative: no weights. Call it after GetIds.
inline tensorflow::Status GetSamples(tensorflow::OpKernelContext* context,
                                     const std::string& variable, int rows,
                                     int weights, ev::IdsInput* in) {
  const tensorflow::Tensor& given = context->input(rows);
  if (given.dims() == 1) {
    if (given.dim_size(0) != in->batch_size + 1) {
      return BadInput(variable, "a batch of ", in->batch_size, " needs ",
                      in->batch_size + 1, " row splits, got ",
                      given.dim_size(0));
    }
    in->row_splits = Data<int64_t>(given);
  } else {
    TF_RETURN_IF_ERROR(
        CheckMatrix(given, in->num_ids, 2, variable, "the indices of the ids"));
    in->coo_indices = Data<int64_t>(given);
  }
  if (weights < 0) return tensorflow::Status();
  const tensorflow::Tensor& factors = context->input(weights);
  TF_RETURN_IF_ERROR(
      CheckVectorOf(factors, in->num_ids, variable, "the weights"));
  in->weights = Data<float>(factors);
  return tensorflow::Status();
}

}  // namespace embedding_variable

#endif  // KERNELS_TF_OP_KERNELS_IDS_INPUT_H_
