// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/testing/host_device_rows.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kernels/engine/base/hash.h"
#include "kernels/engine/base/random_rounding.h"
#include "kernels/engine/base/row_shape.h"
#include "kernels/engine/base/typed_columns.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/combine/pooling_gradient.h"
#include "kernels/engine/optimizer/row_rule.h"
#include "kernels/engine/policy/eviction.h"
#include "kernels/engine/rows/gpu_row_home.h"
#include "kernels/engine/testing/device_shortage.h"
#include "kernels/engine/testing/host_device_counters.h"
#include "kernels/engine/testing/host_device_distinct.h"
#include "kernels/engine/testing/host_device_gradients.h"
#include "kernels/engine/testing/host_device_memory.h"
#include "kernels/engine/testing/host_device_places.h"
#include "kernels/engine/testing/host_device_step.h"

namespace ev {
namespace testing {
namespace {

std::atomic<int64_t> limit{-1};
std::atomic<int64_t> live{0};
std::atomic<bool> no_steps{false};
std::atomic<bool> no_keys{false};
std::atomic<bool> next_counters_fail{false};

class HostDeviceRows : public GpuRowHome, public HostStepRows, public RowTiers {
 private:
  // A call in progress. Aborts the process if a call that must run alone
  // overlaps with another call.
  class Call {
   public:
    explicit Call(HostDeviceRows* rows, bool alone = false) : rows_(rows) {
      const int before = rows_->calls_.fetch_add(alone ? kAlone : 1);
      Check(alone ? before == 0 : before < kAlone,
            "a call that is to be made alone meets others", before);
      alone_ = alone;
    }
    ~Call() { rows_->calls_.fetch_sub(alone_ ? kAlone : 1); }

   private:
    static constexpr int kAlone = 1 << 20;
    HostDeviceRows* const rows_;
    bool alone_ = false;
  };

  struct Row;
  // Marks the rows that a call writes. Aborts the process if another call is
  // writing one of them.
  class Writing {
   public:
    Writing(HostDeviceRows* rows, Span<const RowHandle> handles)
        : rows_(rows), handles_(handles) {
      std::lock_guard<std::mutex> lock(rows_->mu_);
      for (RowHandle handle : handles_) {
        if (handle >= kFirstReservedHandle) continue;
        Row* row = rows_->At(handle);
        Check(!row->is_being_written, "two write a row at once", handle);
        row->is_being_written = true;
      }
    }
    ~Writing() {
      std::lock_guard<std::mutex> lock(rows_->mu_);
      for (RowHandle handle : handles_) {
        if (handle >= kFirstReservedHandle) continue;
        rows_->At(handle)->is_being_written = false;
      }
    }

   private:
    HostDeviceRows* const rows_;
    const Span<const RowHandle> handles_;
  };

 public:
  explicit HostDeviceRows(const GpuRowHomeOptions& options)
      : shape_(options.dim, {}, 1, options.value_type,
               options.value_type != FloatType::kFloat32),
        defaults_(options.default_rows.size()),
        counters_(options.keeps_counters ? new HostCounters : nullptr) {
    for (int64_t r = 0; r < num_defaults(); ++r) {
      WriteNumbers(options.default_rows.data() + r * dim(), dim(),
                   ColumnOf(shape_, defaults_.data() + r * dim(), 0));
    }
    if (options.gpu_bytes == 0) return;
    places_.reset(new HostPlaces(options.gpu_bytes));
    places_->SetRowBytes(shape_.floats() * sizeof(float));
  }
  ~HostDeviceRows() override { Clear(); }

  static Status Make(const GpuRowHomeOptions& options,
                     std::unique_ptr<GpuRowHome>* rows) {
    rows->reset(new HostDeviceRows(options));
    return Status::OK();
  }

  Status NewRow(RowHandle handle, int64_t default_row) override {
    const Call call(this);
    Check(handle < kFirstReservedHandle, "a new row's handle is reserved",
          handle);
    Check(default_row >= 0 && default_row < num_defaults(),
          "there is no such default row", default_row);
    std::lock_guard<std::mutex> lock(mu_);
    Check(rows_.count(handle) == 0, "a row is made twice", handle);
    if (limit >= 0 && live >= limit) {
      return ResourceExhausted("another row needs memory of the device, " +
                               std::to_string(limit) + " rows are all it has");
    }
    EV_RETURN_IF_ERROR(AllocateOnDevice("another row"));
    queue_.push_back(handle);
    try {
      if (places_ != nullptr) places_->Add(handle);
      rows_[handle].default_row = default_row;
    } catch (const std::bad_alloc&) {
      queue_.pop_back();
      throw;
    }
    ++live;
    return Status::OK();
  }

  Status NewKeyedRow(int64_t key, RowHandle handle,
                     int64_t default_row) override {
    if (no_keys) return ResourceExhausted("no memory for another key");
    EV_RETURN_IF_ERROR(AllocateOnDevice("another key"));
    EV_RETURN_IF_ERROR(NewRow(handle, default_row));
    const Call call(this);
    std::lock_guard<std::mutex> lock(mu_);
    new_keys_.emplace_back(key, handle);
    return Status::OK();
  }

  Status Flush() override {
    const Call call(this);
    return StartTransfer();
  }

  Status Read(Span<const RowHandle> handles, int column, float* out) override {
    const Call call(this);
    EV_RETURN_IF_ERROR(StartTransfer());
    CheckColumn(column);
    const int64_t width = shape_.width(column);
    std::lock_guard<std::mutex> lock(mu_);
    for (size_t i = 0; i < handles.size(); ++i) {
      float* to = out + i * width;
      if (handles[i] >= kFirstReservedHandle) {
        std::fill_n(to, width, std::numeric_limits<float>::quiet_NaN());
      } else {
        ReadNumbers(ColumnOf(shape_, RowOf(handles[i]), column), width, to);
      }
    }
    return Status::OK();
  }

  Status StartStep(Span<const GpuStepTable> tables, const DeviceStream* stream,
                   std::shared_ptr<GpuStep>* step) override {
    if (no_steps) return ResourceExhausted("no memory for a step");
    EV_RETURN_IF_ERROR(AllocateOnDevice("a step"));
    std::vector<HostStepTable> all;
    for (const GpuStepTable& table : tables) {
      auto* const rows = static_cast<HostDeviceRows*>(table.table);
      // The caller keeps the table locks until the step has looked up the ids.
      rows->FillQueued();
      all.push_back({rows, rows->dim(), rows->known_, rows->counters_});
    }
    *step = MakeHostDeviceStep(tables, stream, std::move(all));
    return Status::OK();
  }

  // Returns the address at which the CPU can access floats [n]: themselves if
  // there is no stream; else floats in GPU memory, after waiting for the
  // stream. Aborts the process if memory and stream are not of one device.
  template <typename T>
  static T* Find(T* floats, int64_t n, const DeviceStream* stream) {
    if (n == 0) return floats;
    T* const reached = Reach(floats);
    Check((reached != nullptr) == (stream != nullptr),
          "memory and stream are not of one device", n);
    if (stream == nullptr) return floats;
    HostStream::Wait(*stream);
    return reached;
  }

  void Pool(const HostPooling& pooling, MutableFloats out) override {
    const Call call(this);
    FillQueued();
    Check(!Selects(pooling.combiner), "the combiner selects", 0);
    out = MutableFloats(
        Find(out.data(), pooling.num_samples() * dim(), pooling.stream),
        out.type());
    std::lock_guard<std::mutex> lock(mu_);
    std::vector<const float*> rows;
    for (RowHandle row : pooling.rows) rows.push_back(RowOf(row));
    for (int32_t u : pooling.inverse) {
      Check(u >= 0 && u < static_cast<int64_t>(rows.size()),
            "there is no such distinct id", u);
      if (places_ != nullptr) places_->Read(pooling.rows[u]);
    }
    if (places_ != nullptr) places_->Use(pooling.rows);
    PoolingBatch batch;
    batch.rows = rows.data();
    batch.inverse = pooling.inverse.data();
    batch.offsets = pooling.offsets.data();
    batch.dim = dim();
    batch.row_type = shape_.value_type();
    batch.combiner = pooling.combiner;
    PoolSamples(batch, 0, pooling.num_samples(), out);
  }

  Status Update(const HostPooledUpdate& update) override {
    const Call call(this);
    EV_RETURN_IF_ERROR(StartTransfer());
    Check((update.put_grads == nullptr) == (update.stream != nullptr),
          "gradients come twice or never", update.num_samples);
    const Writing writing(this, update.rows);
    if (places_ != nullptr) {
      std::lock_guard<std::mutex> lock(mu_);
      places_->Update(update.rows);
    }
    Occurrences occurrences;
    Span<const int32_t> ends = update.ends, samples = update.samples;
    Check(ends.size() == update.rows.size() &&
              (ends.empty() ||
               ends[ends.size() - 1] == static_cast<int64_t>(samples.size())),
          "occurrences are not those of the rows", ends.size());
    for (int32_t sample : samples) {
      Check(sample >= 0 && sample < update.num_samples,
            "there is no such sample", sample);
    }
    occurrences.ends = ends.data();
    occurrences.samples = samples.data();
    const int64_t num_rows = update.rows.size();
    std::vector<float> sums(num_rows * dim());
    const ConstFloats grads =
        update.put_grads != nullptr
            ? static_cast<const HostDeviceGradients*>(update.put_grads)->all()
            : ConstFloats(Find(update.grads.data(), update.num_samples * dim(),
                               update.stream),
                          update.grads.type());
    SumOccurrences(occurrences,
                   update.factors.empty() ? nullptr : update.factors.data(),
                   grads, dim(), 0, num_rows, sums.data());
    std::unique_ptr<const RowRule> rule;
    EV_RETURN_IF_ERROR(MakeRowRule(update.rule, update.hyper, &rule));
    std::vector<uint64_t> salts;
    for (size_t u = 0; update.salt != nullptr && u < update.rows.size(); ++u) {
      salts.push_back(SaltOf(update.rows[u], *update.salt));
    }
    return ApplyMarked(*rule, update.rows, update.slot_columns, sums.data(),
                       update.salt == nullptr ? nullptr : salts.data());
  }

  Status BringGradients(ConstFloats grads, int64_t num_samples,
                        const DeviceStream& stream, void* out) override {
    const int64_t n = num_samples * dim() * FloatBytes(grads.type());
    std::copy_n(Find(grads.data(), n, &stream), n, static_cast<char*>(out));
    return Status::OK();
  }

  Status StartGradients(ConstFloats grads, int64_t num_samples,
                        std::unique_ptr<DeviceGradients>* put) override {
    Check(Reach(grads.data()) == nullptr,
          "gradients that are there are to be put", num_samples);
    EV_RETURN_IF_ERROR(AllocateOnDevice("gradients"));
    put->reset(new HostDeviceGradients(grads.type(), dim(), num_samples));
    return Status::OK();
  }

  Status SquaredNorms(Span<const RowHandle> handles, double* out) override {
    const Call call(this);
    EV_RETURN_IF_ERROR(StartTransfer());
    std::lock_guard<std::mutex> lock(mu_);
    for (size_t i = 0; i < handles.size(); ++i) {
      std::vector<float> value(dim());
      ReadNumbers(ColumnOf(shape_, RowOf(handles[i]), 0), dim(), value.data());
      out[i] = SumOfSquares(value.data(), dim());
    }
    return Status::OK();
  }

  Status Write(Span<const RowHandle> handles, int column,
               const float* in) override {
    const Call call(this);
    EV_RETURN_IF_ERROR(StartTransfer());
    CheckColumn(column);
    for (RowHandle handle : handles) {
      Check(handle < kFirstReservedHandle, "what is written is no row", handle);
    }
    const int64_t width = shape_.width(column);
    const Writing writing(this, handles);
    std::lock_guard<std::mutex> lock(mu_);
    for (size_t i = 0; i < handles.size(); ++i) {
      WriteNumbers(in + i * width, width,
                   ColumnOf(shape_, At(handles[i])->data(), column));
    }
    return Status::OK();
  }

  Status Apply(const RowRule& rule, Span<const RowHandle> handles,
               Span<const int> slot_columns, const float* grads,
               const uint64_t* salts) override {
    const Call call(this);
    EV_RETURN_IF_ERROR(StartTransfer());
    const Writing writing(this, handles);
    return ApplyMarked(rule, handles, slot_columns, grads, salts);
  }
  int64_t overflows() const override { return overflows_; }

  Status ApplyMarked(const RowRule& rule, Span<const RowHandle> handles,
                     Span<const int> slot_columns, const float* grads,
                     const uint64_t* salts) {
    Check(static_cast<int>(slot_columns.size()) == rule.num_slots(),
          "a rule got another number of slots", slot_columns.size());
    std::vector<int64_t> offsets;
    for (int column : slot_columns) {
      CheckColumn(1 + column);
      offsets.push_back(shape_.offset(1 + column));
    }
    std::lock_guard<std::mutex> lock(mu_);
    for (size_t i = 0; i < handles.size(); ++i) {
      if (handles[i] >= kFirstReservedHandle) continue;
      float* row = At(handles[i])->data();
      int64_t overflows = 0;
      RowBlock block;
      block.rows = &row;
      block.grads = grads + i * dim();
      block.num_rows = 1;
      block.dim = dim();
      block.slot_offsets = offsets.data();
      block.value_type = shape_.value_type();
      if (salts != nullptr) block.salts = salts + i;
      block.overflows = &overflows;
      rule.Apply(block);
      overflows_ += overflows;
    }
    return Status::OK();
  }

  Status Relayout(Span<const SlotShape> slots) override {
    const Call call(this, /*alone=*/true);
    EV_RETURN_IF_ERROR(StartTransfer());
    const size_t before = shape_.num_slots();
    const int64_t old_floats = shape_.floats();
    Check(slots.size() >= before, "slots are taken away", slots.size());
    shape_ = shape_.With(slots);
    if (places_ != nullptr) {
      places_->SetRowBytes(shape_.floats() * sizeof(float));
    }
    for (auto& row : rows_) {
      Row& of = row.second;
      const uint64_t hash =
          shape_.has_hash() ? *HashOf(of.data(), old_floats) : 0;
      of.floats.resize(shape_.floats());
      shape_.FillSlots(before, of.data());
      if (shape_.has_hash()) *HashOf(of.data(), shape_.floats()) = hash;
    }
    return Status::OK();
  }

  bool keeps_counters() const override { return counters_ != nullptr; }
  bool has_counters() const override {
    return counters_ != nullptr && counters_->has_any();
  }
  Status TakeCounters(const TakeRowCounters& take) override {
    const Call call(this);
    if (next_counters_fail.exchange(false))
      return Internal("pending counters are lost");
    if (counters_ != nullptr) counters_->TakeAll(take);
    return Status::OK();
  }

  void ForgetKeys(Span<const int64_t> keys) override {
    const Call call(this, /*alone=*/true);
    FillQueued();
    known_->Erase(keys);
  }

  void Forget(Span<const RowHandle> handles) override {
    const Call call(this, /*alone=*/true);
    FillQueued();
    for (RowHandle handle : handles) {
      known_->CheckHasNoKey(handle);
      if (counters_ != nullptr) counters_->CheckHasNone(handle);
      Check(rows_.erase(handle) == 1, "what is forgotten is no row", handle);
    }
    if (places_ != nullptr) places_->Forget(handles);
    live -= static_cast<int64_t>(handles.size());
  }

  void Clear() override {
    const Call call(this, /*alone=*/true);
    live -= static_cast<int64_t>(rows_.size());
    rows_.clear();
    queue_.clear();
    new_keys_.clear();
    known_->Clear();
    if (places_ != nullptr) places_->Clear();
    if (counters_ != nullptr) counters_->Clear();
  }

  RowTiers* tiers() override { return places_ != nullptr ? this : nullptr; }
  Status Prefetch(Span<const RowHandle> handles) override {
    std::lock_guard<std::mutex> lock(mu_);
    places_->Use(handles);
    return Status::OK();
  }
  Status ReadWorth(RowHandle first, Span<uint32_t> worth) override {
    std::lock_guard<std::mutex> lock(mu_);
    for (size_t i = 0; i < worth.size(); ++i) {
      worth[i] = places_->LastUse(static_cast<RowHandle>(first + i));
    }
    return Status::OK();
  }
  int TierOf(RowHandle handle) const override {
    std::lock_guard<std::mutex> lock(mu_);
    return places_->IsOnDevice(handle) ? 0 : 1;
  }
  TierStats tier_stats() const override {
    std::lock_guard<std::mutex> lock(mu_);
    return places_->stats(shape_.offset(1) * sizeof(float));
  }

  int64_t bytes() const override {
    std::lock_guard<std::mutex> lock(mu_);
    return rows_.size() * shape_.floats() * sizeof(float);
  }

 private:
  struct Row {
    int64_t default_row = 0;
    std::vector<float> floats;  // empty while the row is queued
    bool is_being_written = false;

    float* data() { return floats.data(); }
  };

  // Returns the row of a handle. REQUIRES: mu_ is held.
  const float* RowOf(RowHandle handle) {
    if (handle < kFirstReservedHandle) return At(handle)->data();
    const int64_t r = handle - kFirstReservedHandle;
    Check(r < num_defaults(), "there is no such default row", r);
    return defaults_.data() + r * dim();
  }

  // REQUIRES: mu_ is held, or the call runs alone.
  Row* At(RowHandle handle) {
    const auto found = rows_.find(handle);
    Check(found != rows_.end(), "there is no such row", handle);
    Check(!found->second.floats.empty(), "the row was not written yet", handle);
    return &found->second;
  }

  void CheckColumn(int column) const {
    Check(column >= 0 && column <= static_cast<int>(shape_.num_slots()),
          "there is no such column", column);
  }

  // Like FillQueued, for a call that copies through buffers on the device.
  Status StartTransfer() {
    EV_RETURN_IF_ERROR(AllocateOnDevice("a transfer"));
    FillQueued();
    return Status::OK();
  }

  void FillQueued() {
    std::lock_guard<std::mutex> lock(mu_);
    for (RowHandle handle : queue_) {
      Row* row = &rows_[handle];
      const float* from = defaults_.data() + row->default_row * dim();
      row->floats.assign(from, from + shape_.offset(1));
      row->floats.resize(shape_.floats());
      shape_.FillSlots(0, row->data());
    }
    queue_.clear();
    for (const auto& key : new_keys_) {
      known_->Put(key.first, key.second);
      if (!shape_.has_hash()) continue;
      *HashOf(At(key.second)->data(), shape_.floats()) = MixKey(key.first);
    }
    new_keys_.clear();
  }

  // Returns the salt of a row, by its key's hash.
  uint64_t SaltOf(RowHandle handle, uint64_t update_salt) {
    if (handle >= kFirstReservedHandle) return 0;
    std::lock_guard<std::mutex> lock(mu_);
    return SaltOfMixed(update_salt,
                       *HashOf(At(handle)->data(), shape_.floats()));
  }

  int64_t dim() const { return shape_.dim(); }
  int64_t num_defaults() const { return defaults_.size() / dim(); }

  RowShape shape_;               // changed only by calls that run alone
  std::vector<float> defaults_;  // [R, dim]: values, and perhaps padding
  const std::shared_ptr<HostKnownKeys> known_{new HostKnownKeys};
  const std::shared_ptr<HostCounters> counters_;  // null if none is kept
  std::unique_ptr<HostPlaces> places_;  // null if all rows are on the device
  std::atomic<int> calls_{0};
  std::atomic<int64_t> overflows_{0};
  mutable std::mutex mu_;
  std::unordered_map<RowHandle, Row> rows_;
  std::vector<RowHandle> queue_;
  std::vector<std::pair<int64_t, RowHandle>> new_keys_;
};

const bool kRegistered = RegisterGpuRowHome(&HostDeviceRows::Make);

}  // namespace

void LimitHostDeviceRows(int64_t rows) {
  (void)kRegistered;
  limit = rows;
}

void RefuseHostDeviceSteps(bool refuse) { no_steps = refuse; }
void RefuseHostDeviceKeys(bool refuse) { no_keys = refuse; }
void FailNextHostDeviceCounters() { next_counters_fail = true; }

int64_t LiveHostDeviceRows() { return live; }

}  // namespace testing
}  // namespace ev
