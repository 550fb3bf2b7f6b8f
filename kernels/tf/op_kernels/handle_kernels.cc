// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// EvHandle, EvInitialize, EvIsInitialized, EvShape, EvStats, EvPolicyStats,
// EvOverflows, EvTierStats, EvMoveStats, EvEvict.

#include "kernels/engine/policy/cache_strategy.h"
#include "kernels/tf/bridge/compat.h"
#include "kernels/tf/bridge/gpu_tensors.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/status.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "kernels/tf/op_kernels/kernel_checks.h"
#include "kernels/tf/resources/ev_resource.h"

namespace embedding_variable {
namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Status;
using tensorflow::Tensor;
using tensorflow::TensorShape;

const char* KeyTypeName(const ev::TableOptions& options) {
  return options.int32_keys ? "int32" : "int64";
}

// Reads attributes of an op and keeps the first error.
class Attributes {
 public:
  explicit Attributes(OpKernelConstruction* context) : context_(context) {}

  template <typename T>
  T Get(const char* name) {
    T value{};
    status_.Update(context_->GetAttr(name, &value));
    return value;
  }
  tensorflow::int64 Int(const char* name) {
    return Get<tensorflow::int64>(name);
  }
  const Status& status() const { return status_; }

 private:
  OpKernelConstruction* const context_;
  Status status_;
};

// Reads the options of a table; has a line for each attribute of EvHandle.
Status ReadOptions(OpKernelConstruction* context, ev::TableOptions* options) {
  Attributes from(context);
  const auto shape = from.Get<tensorflow::PartialTensorShape>("shape");
  const auto storage = from.Get<std::string>("storage");
  options->path = from.Get<std::string>("storage_path");
  options->memory_bytes = from.Int("memory_bytes");
  options->second_memory_bytes = from.Int("second_memory_bytes");
  options->record_frequency = from.Get<bool>("record_frequency");
  options->record_version = from.Get<bool>("record_version");
  options->versions_are_times = from.Get<bool>("versions_are_times");
  options->int32_keys =
      from.Get<tensorflow::DataType>("key_dtype") == tensorflow::DT_INT32;
  options->value_type =
      FloatTypeOf(from.Get<tensorflow::DataType>("value_dtype"));
  options->rounds_to_nearest =
      from.Get<std::string>("value_rounding") == "nearest";
  options->rounding_seed = from.Int("value_seed");
  ev::AdmissionOptions& admission = options->admission;
  const auto filter = from.Get<std::string>("filter");
  admission.threshold = from.Int("filter_freq");
  admission.no_permission = from.Get<float>("no_permission");
  admission.max_keys = from.Int("max_element_size");
  admission.false_positive = from.Get<float>("false_positive_probability");
  admission.counter_bits = from.Get<tensorflow::int32>("counter_bits");
  options->capacity.max_rows = from.Int("max_rows");
  options->capacity.max_bytes = from.Int("max_bytes");
  const auto strategy = from.Get<std::string>("cache_strategy");
  TF_RETURN_IF_ERROR(from.status());

  if (shape.dims() != 2 || shape.dim_size(1) < 1) {
    return tensorflow::errors::InvalidArgument(
        "op '", context->def().name(),
        "': expected the shape [-1, dim] with dim >= 1, got ",
        shape.DebugString());
  }
  options->dim = shape.dim_size(1);
  if (!ev::FindRowStorage(storage, &options->storage)) {
    return tensorflow::errors::InvalidArgument(
        "op '", context->def().name(), "': unknown storage '", storage, "'");
  }
  if (filter == "counter") {
    admission.filter = ev::AdmissionOptions::Filter::kCounter;
  } else if (filter == "bloom") {
    admission.filter = ev::AdmissionOptions::Filter::kBloom;
  }
  if (!ev::FindCacheStrategy(strategy, &options->capacity.strategy)) {
    return tensorflow::errors::InvalidArgument(
        "embedding variable: unknown cache_strategy '", strategy, "'");
  }
  options->tier_strategy = options->capacity.strategy;
  options->counts_on_gpu = IsOnGpu(*context);
  *options = options->Completed();
  return Status();
}

class HandleOp : public OpKernel {
 public:
  explicit HandleOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, ReadOptions(context, &options_));
  }

  void Compute(OpKernelContext* context) override {
    tensorflow::mutex_lock lock(mutex_);
    if (!has_handle_) OP_REQUIRES_OK(context, MakeHandle(context));
    // On every run, since tf.Session.reset() removes containers.
    EvResource* found = nullptr;
    OP_REQUIRES_OK(context,
                   context->resource_manager()->LookupOrCreate<EvResource>(
                       container_.container(), container_.name(), &found,
                       [this](EvResource** resource) {
                         *resource = new EvResource(options_);
                         return Status();
                       }));
    EvResourcePtr resource(found);
    const ev::TableOptions& got = resource->table()->options();
    OP_REQUIRES(
        context,
        got.storage == options_.storage && got.dim == options_.dim &&
            got.record_frequency == options_.record_frequency &&
            got.record_version == options_.record_version &&
            got.int32_keys == options_.int32_keys &&
            got.value_type == options_.value_type &&
            got.rounds_to_nearest == options_.rounds_to_nearest &&
            got.rounding_seed == options_.rounding_seed &&
            got.versions_are_times == options_.versions_are_times &&
            got.admission == options_.admission &&
            got.capacity == options_.capacity && got.path == options_.path &&
            got.memory_bytes == options_.memory_bytes &&
            got.second_memory_bytes == options_.second_memory_bytes,
        BadInput(
            resource->name(), "two handles of this name differ: storage ",
            ev::RowStorageName(got.storage), " and ",
            ev::RowStorageName(options_.storage), ", dim ", got.dim, " and ",
            options_.dim, ", record_frequency ", got.record_frequency, " and ",
            options_.record_frequency, ", record_version ", got.record_version,
            " and ", options_.record_version, ", key_dtype ", KeyTypeName(got),
            " and ", KeyTypeName(options_), ", value_dtype ",
            ev::FloatTypeName(got.value_type), " and ",
            ev::FloatTypeName(options_.value_type), ", versions_are_times ",
            got.versions_are_times, " and ", options_.versions_are_times,
            ", or their filters, capacities, roundings, paths or storage "
            "sizes do"));
    context->set_output(0, handle_);
  }

  // A hash lookup, not worth a separate thread.
  bool IsExpensive() override { return false; }

 private:
  Status MakeHandle(OpKernelContext* context)
      EV_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    TF_RETURN_IF_ERROR(container_.Init(context->resource_manager(), def(),
                                       /*use_node_name_as_default=*/true));
    options_.name = container_.name();
    TF_RETURN_IF_ERROR(context->allocate_temp(
        tensorflow::DT_RESOURCE, TensorShape({}), &handle_, InCpuMemory()));
    handle_.scalar<tensorflow::ResourceHandle>()() =
        tensorflow::MakeResourceHandle<EvResource>(
            context, container_.container(), container_.name());
    has_handle_ = true;
    return Status();
  }

  tensorflow::mutex mutex_;
  bool has_handle_ EV_GUARDED_BY(mutex_) = false;
  tensorflow::ContainerInfo container_ EV_GUARDED_BY(mutex_);
  ev::TableOptions options_;
  Tensor handle_ EV_GUARDED_BY(mutex_);
};

class InitializeOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetResource(context, 0, &resource));
    const Tensor& rows = context->input(1);
    OP_REQUIRES(
        context,
        rows.dims() == 2 && rows.dim_size(0) >= 1 &&
            rows.dim_size(1) == resource->dim(),
        BadInput(resource->name(), "the default rows: expected shape [R,",
                 resource->dim(), "] with R >= 1, got ",
                 rows.shape().DebugString()));
    OP_REQUIRES_OK(context, ToTf(resource->table()->Initialize(
                                SpanOf<float>(rows), rows.dim_size(0))));
    if (resource->table()->options().storage != ev::RowStorage::kAuto) return;
    std::string why;
    if (resource->table()->storage(&why) == ev::RowStorage::kHbm) {
      LOG(INFO) << "embedding variable '" << resource->name()
                << "': rows are in GPU memory";
    } else {
      LOG(INFO) << "embedding variable '" << resource->name()
                << "': rows are in CPU memory: " << why;
    }
  }
};

class IsInitializedOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetResource(context, 0, &resource));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, TensorShape({}), &output));
    output->scalar<bool>()() = resource->table()->initialized();
  }

  bool IsExpensive() override { return false; }
};

class ShapeOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetResource(context, 0, &resource));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, TensorShape({2}), &output));
    auto shape = output->vec<tensorflow::int64>();
    shape(0) = resource->table()->size();
    shape(1) = resource->dim();
  }

  bool IsExpensive() override { return false; }
};

class StatsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetResource(context, 0, &resource));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, TensorShape({4}), &output));
    const ev::TableStats stats = resource->table()->stats();
    auto out = output->vec<tensorflow::int64>();
    out(0) = stats.rows;
    out(1) = stats.index_bytes;
    out(2) = stats.row_bytes;
    out(3) = stats.inserted_rows;
  }
};

class PolicyStatsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetResource(context, 0, &resource));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, TensorShape({3}), &output));
    const ev::TableStats stats = resource->table()->stats();
    auto out = output->vec<tensorflow::int64>();
    out(0) = stats.filtered_keys;
    out(1) = stats.filter_bytes;
    out(2) = stats.evicted_rows;
  }
};

class OverflowsOp : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetResource(context, 0, &resource));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, TensorShape({}), &output));
    output->scalar<tensorflow::int64>()() =
        resource->table()->stats().overflows;
  }
};

class TierStatsOp : public OpKernel {
 public:
  explicit TierStatsOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("pairs", &pairs_));
  }

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetResource(context, 0, &resource));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(
                                0, TensorShape({kEach * pairs_}), &output));
    auto out = output->vec<tensorflow::int64>();
    for (int k = 0; k < pairs_; ++k) {
      ev::TierStats stats;
      if (k == 0) stats = resource->table()->tier_stats();
      if (k == 1) stats = resource->table()->tier_stats_below();
      out(kEach * k) = stats.memory_rows;
      out(kEach * k + 1) = stats.stored_rows;
      out(kEach * k + 2) = stats.stored_bytes;
      out(kEach * k + 3) = stats.hits;
      out(kEach * k + 4) = stats.misses;
      out(kEach * k + 5) = stats.written_bytes;
    }
  }

 private:
  static constexpr int kEach = 6;
  int pairs_ = 1;
};

class MoveStatsOp : public OpKernel {
 public:
  explicit MoveStatsOp(OpKernelConstruction* context) : OpKernel(context) {}

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetResource(context, 0, &resource));
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, TensorShape({3}), &output));
    const ev::TierStats stats = resource->table()->tier_stats();
    auto out = output->vec<tensorflow::int64>();
    out(0) = stats.moved_up;
    out(1) = stats.moved_down;
    out(2) = stats.link_bytes;
  }
};

class EvictOp : public OpKernel {
 public:
  explicit EvictOp(OpKernelConstruction* context) : OpKernel(context) {
    OP_REQUIRES_OK(context, context->GetAttr("steps_to_live", &steps_to_live_));
    OP_REQUIRES_OK(context,
                   context->GetAttr("l2_weight_threshold", &threshold_));
  }

  void Compute(OpKernelContext* context) override {
    EvResourcePtr resource;
    OP_REQUIRES_OK(context, GetInitialized(context, 0, &resource));
    const Tensor& step = context->input(1);
    OP_REQUIRES(context, step.dims() == 0,
                BadInput(resource->name(), "the step: expected a scalar, got ",
                         "shape ", step.shape().DebugString()));
    int64_t stale = 0, weak = 0;
    if (steps_to_live_ > 0) {
      OP_REQUIRES_OK(context, ToTf(resource->table()->EvictStale(
                                  step.scalar<tensorflow::int64>()(),
                                  steps_to_live_, &stale)));
    }
    if (threshold_ > 0.0f) {
      OP_REQUIRES_OK(context,
                     ToTf(resource->table()->EvictWeak(threshold_, &weak)));
    }
    Tensor* output = nullptr;
    OP_REQUIRES_OK(context,
                   context->allocate_output(0, TensorShape({}), &output));
    output->scalar<tensorflow::int64>()() = stale + weak;
  }

 private:
  tensorflow::int64 steps_to_live_ = 0;
  float threshold_ = -1.0f;
};

const RegisterKernel<PolicyStatsOp> kPolicyStats("EvPolicyStats",
                                                 {"resource", "stats"});
const RegisterKernel<OverflowsOp> kOverflows("EvOverflows",
                                             {"resource", "overflows"});
const RegisterKernel<TierStatsOp> kTierStats("EvTierStats",
                                             {"resource", "stats"});
const RegisterKernel<MoveStatsOp> kMoveStats("EvMoveStats",
                                             {"resource", "stats"});
const RegisterKernel<EvictOp> kEvict("EvEvict",
                                     {"resource", "step", "evicted"});
const RegisterKernel<HandleOp> kHandle("EvHandle", {"resource"});
const RegisterKernel<InitializeOp> kInitialize("EvInitialize",
                                               {"resource", "default_rows"});
const RegisterKernel<IsInitializedOp> kIsInitialized("EvIsInitialized",
                                                     {"resource",
                                                      "is_initialized"});
const RegisterKernel<ShapeOp> kShape("EvShape", {"resource", "shape"});
const RegisterKernel<StatsOp> kStats("EvStats", {"resource", "stats"});

}  // namespace
}  // namespace embedding_variable
