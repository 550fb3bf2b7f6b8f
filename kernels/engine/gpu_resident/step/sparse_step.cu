// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/gpu/side_stream.h"
#include "kernels/engine/gpu_resident/step/insert_absent.h"
#include "kernels/engine/gpu_resident/step/move_rows.h"
#include "kernels/engine/gpu_resident/step/pool.h"
#include "kernels/engine/gpu_resident/step/row_arena.h"
#include "kernels/engine/gpu_resident/step/sparse_step.h"
#include "kernels/engine/gpu_resident/table/bucket.h"
#include "kernels/engine/gpu_step/group.h"
#include "kernels/engine/gpu_step/sort_long.h"
#include "kernels/engine/gpu_step/step_plan.cuh"
#include "kernels/engine/gpu_step/update.h"
#include "kernels/engine/optimizer/rule_list.h"

namespace ev {
namespace gpu {
namespace {

// Descriptions of batches on their way up. Two take turns: one may still be
// read by the copy engine while the next is written.
class Upload {
 public:
  ~Upload() {
    for (int k = 0; k < 2; ++k) {
      if (done_[k] != nullptr) EV_CUDA_LOG_IF_ERROR(cudaEventDestroy(done_[k]));
      if (host_[k] != nullptr) EV_CUDA_LOG_IF_ERROR(cudaFreeHost(host_[k]));
    }
  }
  Status Create(size_t bytes) {
    for (int k = 0; k < 2; ++k) {
      EV_CUDA_RETURN_IF_ERROR(cudaMallocHost(&host_[k], bytes));
      EV_CUDA_RETURN_IF_ERROR(
          cudaEventCreateWithFlags(&done_[k], cudaEventDisableTiming));
    }
    return Status::OK();
  }
  Status Send(const std::vector<char>& data, void* device,
              cudaStream_t stream) {
    turn_ ^= 1;
    EV_CUDA_RETURN_IF_ERROR(cudaEventSynchronize(done_[turn_]));
    std::memcpy(host_[turn_], data.data(), data.size());
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(device, host_[turn_], data.size(),
                                            cudaMemcpyHostToDevice, stream));
    EV_CUDA_RETURN_IF_ERROR(cudaEventRecord(done_[turn_], stream));
    return Status::OK();
  }

 private:
  void* host_[2] = {nullptr, nullptr};
  cudaEvent_t done_[2] = {nullptr, nullptr};
  int turn_ = 0;
};

int64_t TilesOf(int64_t n, int64_t tile) { return (n + tile - 1) / tile; }

}  // namespace

class SparseStep::Impl {
 public:
  Status Create(const SparseStepOptions& given, StreamView stream);
  Status Reserve(int64_t max_ids, int64_t max_samples);
  Status CheckShape(const StepBatch& batch) const;
  // Describes a batch of another shape than the last.
  Status SetShape(const StepBatch& batch, cudaStream_t stream);
  Status Forward(const StepBatch& batch, bool training, float* pooled,
                 StreamView stream);
  Status Grow(int table, int64_t max_new_rows, StreamView stream);

  int num_tables() const { return static_cast<int>(options.tables.size()); }

  SparseStepOptions options;
  std::unique_ptr<TableSet> set;
  std::vector<RowArena> arenas;
  std::vector<DeviceBuffer> defaults;
  std::vector<StepTable> tables;  // what does not change with the batch
  std::vector<int32_t> pool_order;
  int class_begin[kClasses + 1] = {};  // in pool_order
  int num_processors = 0;

  DeviceBuffer description, scratch;
  DeviceBuffer bases;  // where each table's rows begin
  int max_dim = 0;
  Upload upload;
  SideStream side;
  int64_t max_ids = 0, max_samples = 0;
  StepPlan plan = {};
  std::vector<int64_t> shape;  // of the last batch
  int64_t num_ids = 0;
  int find_blocks = 0, scatter_blocks = 0, num_bins = 0;
  int pool_begin[kClasses + 1] = {};  // blocks
  bool pending = false;               // a Forward waits for its Backward
};

Status SparseStep::Impl::Create(const SparseStepOptions& given,
                                StreamView stream) {
  options = given;
  if (options.slot_init.size() > kMaxSlots) {
    return InvalidArgument("at most " + std::to_string(kMaxSlots) +
                           " optimizer slots, got " +
                           std::to_string(options.slot_init.size()));
  }
  if (options.tables.size() >= kMaxTables) {
    return InvalidArgument("a step takes less than " +
                           std::to_string(kMaxTables) + " tables, got " +
                           std::to_string(options.tables.size()));
  }
  TableSetOptions set_options;
  for (const StepTableOptions& table : options.tables) {
    if (table.dim < 1 || table.dim > (1 << 20)) {
      return InvalidArgument("dim must be in [1, 2^20], got " +
                             std::to_string(table.dim) + ", table '" +
                             table.name + "'");
    }
    if (Selects(table.combiner)) {
      return InvalidArgument("a step takes combiners that add rows, table '" +
                             table.name + "'");
    }
    if (table.default_rows.empty() ||
        table.default_rows.size() % table.dim != 0) {
      return InvalidArgument("default_rows must be rows of " +
                             std::to_string(table.dim) + " floats, got " +
                             std::to_string(table.default_rows.size()) +
                             " floats, table '" + table.name + "'");
    }
    const int64_t most = std::max(table.capacity, table.max_capacity);
    if (most > kMaxRows) {
      return InvalidArgument("capacity and max_capacity must be at most " +
                             std::to_string(kMaxRows) + " rows, got " +
                             std::to_string(most) + ", table '" + table.name +
                             "'");
    }
    set_options.tables.push_back(
        {table.name, table.capacity, table.max_capacity});
  }
  EV_RETURN_IF_ERROR(TableSet::Create(set_options, stream, &set));
  int device = 0;
  EV_CUDA_RETURN_IF_ERROR(cudaGetDevice(&device));
  EV_CUDA_RETURN_IF_ERROR(cudaDeviceGetAttribute(
      &num_processors, cudaDevAttrMultiProcessorCount, device));
  const size_t n = options.tables.size();
  arenas.resize(n);
  defaults.resize(n);
  tables.resize(n);
  EV_RETURN_IF_ERROR(bases.Allocate(n * sizeof(float*), "the step"));
  std::vector<float*> base_pointers;
  // Growth changes no address in them that is used here.
  std::vector<TableView> views(n);
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      views.data(), set->device_tables().views, n * sizeof(TableView),
      cudaMemcpyDeviceToHost, stream.get()));
  EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream.get()));
  for (size_t t = 0; t < n; ++t) {
    const StepTableOptions& table = options.tables[t];
    RowArena& arena = arenas[t];
    const int64_t rows = set->num_slots(static_cast<int>(t));
    if (rows > kMaxRows) {
      return InvalidArgument("capacity " + std::to_string(table.capacity) +
                             " takes " + std::to_string(rows) +
                             " rows, more than " + std::to_string(kMaxRows) +
                             ", table '" + table.name + "'");
    }
    EV_RETURN_IF_ERROR(arena.Allocate(
        table.name, rows, std::max(rows, (table.max_capacity + 31) / 32 * 32),
        table.dim, static_cast<int>(options.slot_init.size())));
    const size_t num_defaults = table.default_rows.size() / table.dim;
    EV_RETURN_IF_ERROR(
        defaults[t].Allocate(num_defaults * arena.slot_stride() * 4,
                             "default rows of table '" + table.name + "'"));
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpy2DAsync(
        defaults[t].data(), arena.slot_stride() * 4, table.default_rows.data(),
        table.dim * 4, table.dim * 4, num_defaults, cudaMemcpyHostToDevice,
        stream.get()));
    StepTable& s = tables[t];
    s = StepTable{};
    s.pieces = bases.as<float*>() + t;
    s.row_keys = views[t].keys;
    s.rows_log2 = 31;
    s.stride = arena.stride();
    s.slot_stride = arena.slot_stride();
    s.defaults = defaults[t].as<float>();
    s.num_defaults = static_cast<int64_t>(num_defaults);
    std::copy(options.slot_init.begin(), options.slot_init.end(), s.slot_init);
    s.dim = table.dim;
    s.combiner = static_cast<int32_t>(table.combiner);
    s.dim_class = ClassOfDim(table.dim);
    max_dim = std::max(max_dim, table.dim);
    base_pointers.push_back(arena.base());
  }
  // Copied before it returns: it is not pinned.
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(bases.data(), base_pointers.data(), n * sizeof(float*),
                      cudaMemcpyHostToDevice, stream.get()));
  EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream.get()));
  for (int c = 0; c < kClasses; ++c) {
    class_begin[c] = static_cast<int>(pool_order.size());
    for (size_t t = 0; t < n; ++t) {
      if (tables[t].dim_class == c) {
        pool_order.push_back(static_cast<int32_t>(t));
      }
    }
  }
  class_begin[kClasses] = static_cast<int>(n);
  const size_t bytes = n * sizeof(StepTable) + 5 * (n + 1) * sizeof(int32_t);
  EV_RETURN_IF_ERROR(description.Allocate(bytes, "the step"));
  EV_RETURN_IF_ERROR(upload.Create(bytes));
  EV_RETURN_IF_ERROR(side.Create());
  plan.num_tables = static_cast<int>(n);
  plan.views = set->device_tables().views;
  plan.tables = description.as<StepTable>();
  const int32_t* tiles = reinterpret_cast<const int32_t*>(plan.tables + n);
  plan.find_tiles = tiles;
  plan.scatter_tiles = tiles + (n + 1);
  plan.bins = tiles + 2 * (n + 1);
  plan.pool_tiles = tiles + 3 * (n + 1);
  plan.pool_order = tiles + 4 * (n + 1);
  return Status::OK();
}

Status SparseStep::Impl::Reserve(int64_t ids, int64_t samples) {
  const int64_t limit = std::numeric_limits<int32_t>::max();
  if (ids < 0 || ids > limit || samples < 0 || samples > limit) {
    return InvalidArgument("a step takes up to " + std::to_string(limit) +
                           " ids and samples, got " + std::to_string(ids) +
                           " and " + std::to_string(samples));
  }
  if (ids <= max_ids && samples <= max_samples) return Status::OK();
  ids = std::max(ids, max_ids);
  samples = std::max(samples, max_samples);
  max_ids = max_samples = 0;
  const int64_t longs = ids / (kSmallCount + 1) + kClasses;
  const int64_t bins = ids / kBinIds + num_tables();
  char* base = nullptr;
  for (int pass = 0; pass < 2; ++pass) {
    Carver carve(base);
    plan.rows = carve.Take<uint32_t>(ids);
    plan.absent = carve.Take<uint2>(ids);
    plan.samples = carve.Take<uint32_t>(ids);
    plan.factors = carve.Take<float>(samples);
    plan.pairs = carve.Take<uint2>(ids);
    plan.order = carve.Take<uint32_t>(ids);
    plan.sorted = carve.Take<uint32_t>(ids);
    plan.sorted_weights = carve.Take<float>(ids);
    plan.small = carve.Take<SmallKey>(ids);
    plan.longs = carve.Take<LongKey>(longs);
    plan.huge = carve.Take<uint32_t>(ids / kWarpSort + 1);
    plan.bin_ends = carve.Take<uint32_t>(bins);
    plan.heavy = carve.Take<uint32_t>(ids / kHeavyBin + 1);
    plan.counts = carve.Take<StepCounts>(1);  // one fill, with bin_counts
    plan.bin_counts = carve.Take<uint32_t>(bins);
    if (pass == 0) {
      EV_RETURN_IF_ERROR(scratch.Allocate(carve.bytes(), "a step's scratch"));
      base = scratch.as<char>();
    }
  }
  EV_CUDA_RETURN_IF_ERROR(cudaDeviceSynchronize());
  max_ids = ids;
  max_samples = samples;
  shape.clear();
  pending = false;
  return Status::OK();
}

Status SparseStep::Impl::CheckShape(const StepBatch& batch) const {
  const size_t n = options.tables.size();
  if (batch.num_ids.size() != n || batch.num_samples.size() != n) {
    return InvalidArgument("num_ids and num_samples must be given for " +
                           std::to_string(n) + " tables, got " +
                           std::to_string(batch.num_ids.size()) + " and " +
                           std::to_string(batch.num_samples.size()));
  }
  int64_t ids = 0, samples = 0, pooled = 0;
  for (size_t t = 0; t < n; ++t) {
    const int64_t i = batch.num_ids[t], s = batch.num_samples[t];
    const int64_t dim = options.tables[t].dim;
    if (i < 0 || s < 0 || i > max_ids || s > max_samples ||
        (batch.splits == nullptr && i != s)) {
      return InvalidArgument(
          "a batch without splits has as many ids as samples, and none is "
          "larger than reserved; got " +
          std::to_string(i) + " ids and " + std::to_string(s) +
          " samples, table '" + options.tables[t].name + "'");
    }
    if (s != 0 && dim % 4 == 0 && pooled % 4 != 0) {
      return InvalidArgument(
          "pooled rows of a dim that 4 divides must begin at a multiple of 4 "
          "floats, got " +
          std::to_string(pooled) + " floats of the tables before table '" +
          options.tables[t].name + "'");
    }
    ids += i;
    samples += s;
    pooled += s * dim;
  }
  if (ids > max_ids || samples > max_samples) {
    return InvalidArgument("reserved for " + std::to_string(max_ids) +
                           " ids and " + std::to_string(max_samples) +
                           " samples, got " + std::to_string(ids) + " and " +
                           std::to_string(samples));
  }
  return Status::OK();
}

Status SparseStep::Impl::SetShape(const StepBatch& batch, cudaStream_t stream) {
  const size_t n = options.tables.size();
  std::vector<int64_t> now(batch.num_ids.begin(), batch.num_ids.end());
  now.insert(now.end(), batch.num_samples.begin(), batch.num_samples.end());
  if (now == shape) return Status::OK();
  shape.clear();
  std::vector<char> data(description.size_bytes());
  std::vector<StepTable> step_tables = tables;
  std::vector<int32_t> tiles(5 * (n + 1));
  int64_t ids = 0, samples = 0, pooled = 0;
  int64_t class_ids[kClasses] = {};
  find_blocks = scatter_blocks = num_bins = 0;
  for (size_t t = 0; t < n; ++t) {
    StepTable& s = step_tables[t];
    s.id_begin = ids;
    s.num_ids = batch.num_ids[t];
    s.sample_begin = samples;
    s.num_samples = batch.num_samples[t];
    s.pooled_begin = pooled;
    tiles[t] = find_blocks;
    tiles[n + 1 + t] = scatter_blocks;
    tiles[2 * (n + 1) + t] = num_bins;
    const int64_t bins = std::min(TilesOf(s.num_ids, kBinIds), kMaxBins);
    s.bin_begin = static_cast<uint32_t>(num_bins);
    s.num_bins = static_cast<uint32_t>(bins);
    num_bins += static_cast<int>(bins);
    ids += s.num_ids;
    samples += s.num_samples;
    pooled += s.num_samples * s.dim;
    class_ids[s.dim_class] += s.num_ids;
    find_blocks += static_cast<int>(TilesOf(s.num_ids, kStepBlock));
    scatter_blocks += static_cast<int>(TilesOf(s.num_ids, kScatterTile));
  }
  tiles[n] = find_blocks;
  tiles[2 * n + 1] = scatter_blocks;
  tiles[3 * n + 2] = num_bins;
  int64_t blocks = 0, first_id = 0, first_long = 0;
  for (int c = 0; c < kClasses; ++c) {
    pool_begin[c] = static_cast<int>(blocks);
    for (int k = class_begin[c]; k < class_begin[c + 1]; ++k) {
      tiles[3 * (n + 1) + k] = static_cast<int32_t>(blocks);
      tiles[4 * (n + 1) + k] = pool_order[k];
      blocks += TilesOf(step_tables[pool_order[k]].num_samples, PoolTile());
    }
    plan.id_base[c] = first_id;
    plan.class_ids[c] = class_ids[c];
    plan.long_base[c] = first_long;
    first_id += class_ids[c];
    first_long += class_ids[c] / (kSmallCount + 1) + 1;
  }
  pool_begin[kClasses] = static_cast<int>(blocks);
  num_ids = ids;
  std::memcpy(data.data(), step_tables.data(), n * sizeof(StepTable));
  std::memcpy(data.data() + n * sizeof(StepTable), tiles.data(),
              tiles.size() * sizeof(int32_t));
  EV_RETURN_IF_ERROR(upload.Send(data, description.data(), stream));
  shape = std::move(now);
  return Status::OK();
}

Status SparseStep::Impl::Forward(const StepBatch& batch, bool training,
                                 float* pooled, StreamView stream) {
  EV_RETURN_IF_ERROR(CheckShape(batch));
  pending = false;
  EV_RETURN_IF_ERROR(SetShape(batch, stream.get()));
  plan.ids = batch.ids;
  plan.splits = batch.splits;
  plan.weights = batch.weights;
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemsetAsync(plan.counts, 0,
                      reinterpret_cast<char*>(plan.bin_counts + num_bins) -
                          reinterpret_cast<char*>(plan.counts),
                      stream.get()));
  if (num_ids != 0 && plan.splits != nullptr) {
    EV_RETURN_IF_ERROR(LaunchFindRows(plan, find_blocks, training, stream));
  }
  for (int c = 0; c < kClasses; ++c) {
    const int blocks = pool_begin[c + 1] - pool_begin[c];
    if (blocks == 0) continue;
    EV_RETURN_IF_ERROR(LaunchPool(plan, c, class_begin[c], class_begin[c + 1],
                                  pool_begin[c], blocks, training, pooled,
                                  stream));
  }
  pending = training;
  return Status::OK();
}

Status SparseStep::Impl::Grow(int t, int64_t max_new_rows, StreamView stream) {
  Growth growth;
  EV_RETURN_IF_ERROR(set->PlanGrowth(t, max_new_rows, &growth));
  if (pending) {
    return FailedPrecondition(
        "a table may not grow between Forward with training and its Backward, "
        "table '" +
        options.tables[t].name + "'");
  }
  RowArena& arena = arenas[t];
  const int64_t rows = arena.num_rows(), bytes = arena.bytes();
  EV_RETURN_IF_ERROR(arena.Grow(growth.first_slot + growth.num_slots));
  const Status status = set->GrowSync(t, growth.num_slots, nullptr, stream);
  if (!status.ok()) {
    arena.Shrink(rows, bytes);
    return status;
  }
  return LaunchMoveRows(set->device_tables().views + t, growth, arena.base(),
                        arena.stride(), num_processors, stream);
}

SparseStep::SparseStep(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SparseStep::~SparseStep() {}

Status SparseStep::Create(const SparseStepOptions& options, StreamView stream,
                          std::unique_ptr<SparseStep>* step) {
  std::unique_ptr<Impl> impl(new Impl);
  EV_RETURN_IF_ERROR(impl->Create(options, stream));
  step->reset(new SparseStep(std::move(impl)));
  return Status::OK();
}

Status SparseStep::ReserveSync(int64_t max_ids, int64_t max_samples) {
  return impl_->Reserve(max_ids, max_samples);
}

Status SparseStep::Forward(const StepBatch& batch, bool training, float* pooled,
                           StreamView stream) {
  return impl_->Forward(batch, training, pooled, stream);
}

Status SparseStep::Backward(const float* grads, const std::string& rule,
                            Span<const float> hyper, StreamView stream) {
  Impl& impl = *impl_;
  if (!impl.pending) {
    return FailedPrecondition(
        "Backward needs a Forward with training before it, table '" +
        impl.options.tables[0].name + "'");
  }
  Status status;
  const Status found = VisitRule(rule, hyper, [&](const auto& r) {
    using Rule = typename std::decay<decltype(r)>::type;
    if (Rule::kNumSlots != static_cast<int>(impl.options.slot_init.size())) {
      status = InvalidArgument(std::string("rule ") + Rule::kName + " has " +
                               std::to_string(Rule::kNumSlots) +
                               " slots, the rows have " +
                               std::to_string(impl.options.slot_init.size()) +
                               ", table '" + impl.options.tables[0].name + "'");
      return;
    }
    if constexpr (!HasStepKernels<Rule>::value) {
      status =
          InvalidArgument(std::string("rule ") + Rule::kName +
                          " has no kernels in a GPU-resident step, table '" +
                          impl.options.tables[0].name + "'");
    } else {
      if (impl.num_ids == 0) return;
      status = LaunchInsertAbsent(impl.plan, impl.set->device_tables(),
                                  impl.num_processors, stream);
      if (!status.ok()) return;
      status = LaunchGroup(impl.plan, impl.scatter_blocks, impl.num_bins,
                           impl.num_processors, stream);
      if (!status.ok()) return;
      status = impl.side.Fork(stream.get());
      if (!status.ok()) return;
      status = LaunchSortLong(impl.plan, impl.num_processors, impl.side.get());
      for (int c = 0; c < kClasses && status.ok(); ++c) {
        if (impl.class_begin[c] == impl.class_begin[c + 1]) continue;
        status = LaunchUpdate<Rule>(impl.plan, c, grads, r, impl.num_processors,
                                    stream, impl.side.get());
      }
      if (status.ok()) {
        status = LaunchHuge<Rule>(impl.plan, impl.max_dim, grads, r,
                                  impl.num_processors, impl.side.get());
      }
      const Status joined = impl.side.Join(stream.get());
      if (status.ok()) status = joined;
    }
  });
  EV_RETURN_IF_ERROR(found);
  EV_RETURN_IF_ERROR(status);
  impl.pending = false;
  return Status::OK();
}

Status SparseStep::GrowSync(int table, int64_t max_new_rows,
                            StreamView stream) {
  return impl_->Grow(table, max_new_rows, stream);
}

TableSet* SparseStep::tables() const { return impl_->set.get(); }
RowBlock SparseStep::rows(int table) const {
  RowBlock block;
  block.base = impl_->arenas[table].base();
  block.stride = impl_->arenas[table].stride();
  return block;
}
float* SparseStep::mutable_rows(int table) const {
  return impl_->arenas[table].base();
}
int SparseStep::slot_stride(int table) const {
  return impl_->arenas[table].slot_stride();
}
int64_t SparseStep::row_bytes() const {
  int64_t bytes = 0;
  for (const RowArena& arena : impl_->arenas) bytes += arena.bytes();
  return bytes;
}
int64_t SparseStep::scratch_bytes() const {
  return static_cast<int64_t>(impl_->scratch.size_bytes());
}

}  // namespace gpu
}  // namespace ev
