// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Kernels of HpsInit, HpsLookup, HpsCommand and HpsPushRows. They run on the
// CPU even if placed on a GPU. HpsLookup's rows are then in GPU memory, and in
// the kernel labelled ids_on_gpu its ids too.

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/device_cache.h"
#include "addons/hierarchical_parameter_server/cache/make_device_cache.h"
#include "addons/hierarchical_parameter_server/server/api.h"
#include "addons/hierarchical_parameter_server/tf/kept_outputs.h"
#include "kernels/tf/bridge/compat.h"
#include "kernels/tf/bridge/gpu_tensors.h"
#include "kernels/tf/bridge/pool_parallel.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "tensorflow/core/common_runtime/device.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/platform/logging.h"

namespace hps {
namespace {

using embedding_variable::PoolParallel;
using embedding_variable::SpanOf;
using embedding_variable::ToTf;
using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::Tensor;
using tensorflow::TensorShape;
namespace errors = tensorflow::errors;

Status ScalarText(OpKernelContext* context, int input, std::string* text) {
  const Tensor& tensor = context->input(input);
  if (tensor.NumElements() != 1) {
    return errors::InvalidArgument("op '", context->op_kernel().name(),
                                   "': expected one string as input ", input,
                                   ", got ", tensor.shape().DebugString());
  }
  *text = std::string(tensor.flat<embedding_variable::TfString>()(0));
  return Status();
}

Status SetText(OpKernelContext* context, const std::string& text) {
  Tensor* output = nullptr;
  TF_RETURN_IF_ERROR(context->allocate_output(0, TensorShape({}), &output));
  output->scalar<embedding_variable::TfString>()() = text;
  return Status();
}

class InitOp : public OpKernel {
 public:
  explicit InitOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context,
                   context->GetAttr("global_batch_size", &global_batch_size_));
  }
  void Compute(OpKernelContext* context) override {
    std::string path;
    OP_REQUIRES_OK(context, ScalarText(context, 0, &path));
    const Tensor& replicas = context->input(1);
    OP_REQUIRES(context, replicas.NumElements() == 1,
                errors::InvalidArgument(
                    "op '", name(), "': expected one number of replicas, got ",
                    replicas.shape().DebugString()));
    PoolParallel parallel(context);
    std::vector<std::string> notes;
    OP_REQUIRES_OK(context, ToTf(starter_.Start(path, global_batch_size_,
                                                replicas.flat<int>()(0),
                                                &parallel, &notes)));
    for (const std::string& note : notes) {
      LOG(WARNING) << "hierarchical_parameter_server: " << note;
    }
    started_.store(true, std::memory_order_relaxed);
    OP_REQUIRES_OK(context, SetText(context, "OK"));
  }

  // The first run reads files; later ones compare two strings, which is not
  // worth a thread.
  bool IsExpensive() override {
    return !started_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<bool> started_{false};
  tensorflow::int64 global_batch_size_ = 1;
  Starter starter_;
};

struct LayerAttrs {
  explicit LayerAttrs(OpKernelConstruction* context) {
    context->SetStatus(context->GetAttr("model_name", &model));
    if (!context->status().ok()) return;
    context->SetStatus(context->GetAttr("table_id", &table_id));
    if (!context->status().ok()) return;
    context->SetStatus(context->GetAttr("emb_vec_size", &width));
  }
  std::string model;
  tensorflow::int64 table_id = 0, width = 1;
};

// Returns whether this library writes rows to GPU memory itself: it has GPU
// code and finds a GPU. Otherwise TensorFlow copies them.
bool HasDeviceWay() {
  static const bool has = [] {
    std::shared_ptr<DeviceCache> cache;
    const ev::Status status = MakeDeviceCache(&cache);
    if (!status.ok()) {
      LOG(WARNING) << "hierarchical_parameter_server: " << status.message()
                   << "; rows are looked up in host memory, and TensorFlow "
                      "copies them to its GPU";
    }
    return status.ok();
  }();
  return has;
}

// Writes the server's log lines to TensorFlow's log.
void LogLines() {
  for (const std::string& line : TakeLogLines()) {
    LOG(WARNING) << "hierarchical_parameter_server: " << line;
  }
}

// The server uses one GPU, a process's first; rows for other replicas are
// copied.
bool IsFirstGpu(OpKernelContext* context) {
  return static_cast<tensorflow::Device*>(context->device())
             ->parsed_name()
             .id == 0;
}

template <bool kIdsOnGpu>
class LookupOp : public OpKernel {
 public:
  explicit LookupOp(OpKernelConstruction* context)
      : LookupOp(context, LayerAttrs(context)) {}

  void Compute(OpKernelContext* context) override {
    const Tensor& ids = context->input(0);
    const bool long_keys = ids.dtype() == tensorflow::DT_INT64;
    OP_REQUIRES_OK(context, Named(table_.Check(ids.NumElements(), long_keys)));
    TensorShape shape = ids.shape();
    OP_REQUIRES(context, shape.dims() < TensorShape::MaxDimensions(),
                errors::InvalidArgument(
                    "op '", name(),
                    "': ids have too many dimensions: ", shape.DebugString()));
    shape.AddDim(width_);
    if (on_gpu_) {
      OP_REQUIRES_OK(context, LookUpOnGpu(context, shape));
      return;
    }
    float* rows = nullptr;
    OP_REQUIRES_OK(context, AllocateKeptOutput(context, 0, shape, &rows));
    OP_REQUIRES_OK(context, LookUp(context, ids, rows));
  }

 private:
  // Looks up into CPU memory.
  Status LookUp(OpKernelContext* context, const Tensor& ids, float* rows) {
    PoolParallel parallel(context);
    return Named(ids.dtype() == tensorflow::DT_INT64
                     ? table_.Lookup(SpanOf<int64_t>(ids), rows, &parallel)
                     : table_.Lookup(SpanOf<int32_t>(ids), rows, &parallel));
  }

  Status LookUpOnGpu(OpKernelContext* context, const TensorShape& shape) {
    const Tensor& ids = context->input(0);
    Tensor* rows = nullptr;
    TF_RETURN_IF_ERROR(context->allocate_output(0, shape, &rows));
    if (!IsFirstGpu(context) || !HasDeviceWay()) {
      return LookUpAndCopy(context, ids, rows);
    }
    ev::DeviceStream stream;
    TF_RETURN_IF_ERROR(embedding_variable::GetDeviceStream(context, &stream));
    CacheBatch batch;
    batch.ids = ids.tensor_data().data();
    batch.count = ids.NumElements();
    batch.long_ids = ids.dtype() == tensorflow::DT_INT64;
    batch.ids_on_device = kIdsOnGpu;
    batch.rows = rows->flat<float>().data();
    batch.rows_on_device = true;
    batch.stream = &stream;
    PoolParallel parallel(context);
    return Named(table_.LookupOnDevice(batch, &parallel));
  }

  Status LookUpAndCopy(OpKernelContext* context, const Tensor& ids,
                       Tensor* rows) {
    tensorflow::AllocatorAttributes pinned = embedding_variable::InCpuMemory();
    pinned.set_gpu_compatible(true);
    Tensor host_ids = ids;
    if (kIdsOnGpu) {
      TF_RETURN_IF_ERROR(
          context->allocate_temp(ids.dtype(), ids.shape(), &host_ids, pinned));
      TF_RETURN_IF_ERROR(
          embedding_variable::CopyFromGpu(context, {{&ids, &host_ids}}));
    }
    Tensor host_rows;
    TF_RETURN_IF_ERROR(context->allocate_temp(
        tensorflow::DT_FLOAT, rows->shape(), &host_rows, pinned));
    TF_RETURN_IF_ERROR(
        LookUp(context, host_ids, host_rows.flat<float>().data()));
    return embedding_variable::CopyToGpu(context, {{&host_rows, rows}});
  }

  LookupOp(OpKernelConstruction* context, const LayerAttrs& attrs)
      : OpKernel(context),
        on_gpu_(embedding_variable::IsOnGpu(*context)),
        width_(attrs.width),
        table_(attrs.model, attrs.table_id, attrs.width) {}

  Status Named(const ev::Status& status) const {
    LogLines();
    if (status.ok()) return Status();
    return ToTf(
        ev::Status(status.code(), "op '" + name() + "': " + status.message()));
  }

  const bool on_gpu_;
  const tensorflow::int64 width_;
  LayerTable table_;
};

class CommandOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    std::string command, argument, answer;
    OP_REQUIRES_OK(context, ScalarText(context, 0, &command));
    OP_REQUIRES_OK(context, ScalarText(context, 1, &argument));
    PoolParallel parallel(context);
    OP_REQUIRES_OK(context,
                   ToTf(RunCommand(command, argument, &parallel, &answer)));
    OP_REQUIRES_OK(context, SetText(context, answer));
  }
};

class PushRowsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;
  void Compute(OpKernelContext* context) override {
    std::string tag;
    OP_REQUIRES_OK(context, ScalarText(context, 0, &tag));
    const Tensor& keys = context->input(1);
    const Tensor& rows = context->input(2);
    OP_REQUIRES(
        context,
        keys.dims() == 1 && rows.dims() == 2 &&
            rows.dim_size(0) == keys.dim_size(0),
        errors::InvalidArgument(
            "table ", tag,
            ": expected keys of [n] and rows of [n, width], "
            "got ",
            keys.shape().DebugString(), " and ", rows.shape().DebugString()));
    OP_REQUIRES_OK(context,
                   ToTf(PushRows(tag, rows.dim_size(1), SpanOf<int64_t>(keys),
                                 rows.flat<float>().data())));
  }
};

const embedding_variable::RegisterKernel<InitOp> init(
    "HpsInit", {"ps_config_file", "num_replicas", "status"});
const embedding_variable::RegisterKernel<LookupOp<false>> lookup(
    "HpsLookup", {"ids", "init_status"});
const embedding_variable::RegisterKernel<LookupOp<true>> lookup_ids_on_gpu(
    "HpsLookup", {"init_status"}, "ids_on_gpu");
const embedding_variable::RegisterKernel<CommandOp> command(
    "HpsCommand", {"command", "argument", "answer"});
const embedding_variable::RegisterKernel<PushRowsOp> push("HpsPushRows",
                                                          {"tag", "keys",
                                                           "rows"});

}  // namespace
}  // namespace hps
