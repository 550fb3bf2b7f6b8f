// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/cache/testing/host_device_cache.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/cache_size.h"
#include "addons/hierarchical_parameter_server/cache/key_changes.h"
#include "addons/hierarchical_parameter_server/cache/make_device_cache.h"
#include "kernels/engine/testing/host_device_memory.h"

namespace hps {
namespace {

std::atomic<int64_t> live_bytes{0}, most_bytes{-1};
std::atomic<bool> is_gone{false};

int64_t SizeOf(const CacheTableOptions& options) {
  return CacheBytes(options.capacity, options.evicts, options.format.width(),
                    options.max_keys);
}

class HostTable : public CacheTable,
                  public std::enable_shared_from_this<HostTable> {
 public:
  explicit HostTable(const CacheTableOptions& options)
      : options_(options),
        slots_(CacheSlots(options.capacity, options.evicts)) {}
  ~HostTable() override { Drop(); }

  const CacheTableOptions& options() const override { return options_; }
  bool holds_rows() const override { return slots_ > 0; }
  ev::Status Lookup(const CacheBatch& batch,
                    std::unique_ptr<CacheLookup>* lookup) override;
  ev::Status Insert(ev::Span<const int64_t> keys, const float* rows,
                    int64_t seen) override {
    std::lock_guard<std::mutex> lock(mu_);
    for (size_t i = 0; i < keys.size(); ++i) {
      Store(keys[i], rows + i * options_.format.width(), seen);
    }
    EndStores();
    return ev::Status::OK();
  }
  int64_t changes() const override { return changes_.count(); }

  ev::Status Refresh(ev::Span<const int64_t> keys, const float* rows) override {
    std::lock_guard<std::mutex> lock(mu_);
    changes_.Add(keys);
    touched_.Add(keys);
    for (const int64_t i : LastOfEach(keys)) {
      const auto found = rows_.find(keys[i]);
      if (found == rows_.end()) continue;
      const float* const row = rows + i * options_.format.width();
      found->second.row.assign(row, row + options_.format.width());
      ++statistics_.refreshed;
    }
    return ev::Status::OK();
  }
  ev::Status Erase(ev::Span<const int64_t> keys) override {
    std::lock_guard<std::mutex> lock(mu_);
    changes_.Add(keys);
    touched_.Add(keys);
    for (const int64_t key : keys) Remove(key);
    return ev::Status::OK();
  }
  ev::Status Clear() override {
    std::lock_guard<std::mutex> lock(mu_);
    changes_.AddAll();
    touched_.AddAll();
    rows_.clear();
    used_.clear();
    return ev::Status::OK();
  }
  ev::Status Review(std::unique_ptr<CacheReview>* review) override;
  void Drop() override {
    std::lock_guard<std::mutex> lock(mu_);
    if (slots_ > 0) live_bytes -= SizeOf(options_);
    slots_ = 0;
    rows_.clear();
    used_.clear();
  }
  ev::Status Statistics(CacheStatistics* statistics) override {
    std::lock_guard<std::mutex> lock(mu_);
    *statistics = statistics_;
    statistics->rows = static_cast<int64_t>(rows_.size());
    statistics->device_bytes = slots_ > 0 ? SizeOf(options_) : 0;
    return ev::Status::OK();
  }

  // For HostLookup.
  std::mutex mu_;
  const std::vector<float>* Find(int64_t key) {
    const auto found = rows_.find(key);
    ++(found == rows_.end() ? statistics_.misses : statistics_.hits);
    if (found == rows_.end()) return nullptr;
    Use(key, &found->second);
    return &found->second.row;
  }
  // A series of Store calls ends with one EndStores.
  void Store(int64_t key, const float* row, int64_t seen) {
    if (slots_ == 0 || changes_.HasChanged(key, seen)) return;
    const auto found = rows_.find(key);
    if (found != rows_.end()) {
      Use(key, &found->second);
      return;
    }
    if (static_cast<int64_t>(rows_.size()) == slots_) {
      if (!options_.evicts || used_.empty()) return;
      rows_.erase(used_.begin()->second);
      used_.erase(used_.begin());
      ++statistics_.evicted;
    }
    Row& made = rows_[key];
    made.row.assign(row, row + options_.format.width());
    made.is_new = true;
    new_.push_back(key);
    Use(key, &made);
    ++statistics_.inserted;
    touched_.Add(ev::Span<const int64_t>(&key, 1));
  }
  void EndStores() {
    for (const int64_t key : new_) {
      Row& row = rows_[key];
      row.is_new = false;
      used_[row.rank] = key;
    }
    new_.clear();
  }

  // For reviews.
  std::vector<int64_t> Keys() const {
    std::vector<int64_t> keys;
    for (const auto& row : rows_) keys.push_back(row.first);
    return keys;
  }
  bool Has(int64_t key) const { return rows_.count(key) > 0; }
  int64_t touches() const { return touched_.count(); }
  // If row is null, no tier has the key.
  void Renew(int64_t key, const float* row, int64_t seen) {
    const auto found = rows_.find(key);
    if (found == rows_.end() || touched_.HasChanged(key, seen)) return;
    if (row == nullptr) {
      Remove(key);
    } else {
      found->second.row.assign(row, row + options_.format.width());
      ++statistics_.refreshed;
    }
  }

 private:
  void Remove(int64_t key) {
    const auto found = rows_.find(key);
    if (found == rows_.end()) return;
    used_.erase(found->second.rank);
    rows_.erase(found);
  }
  // Number of uses (0 with LRU), then the number of the last use.
  using Rank = std::pair<int64_t, int64_t>;
  struct Row {
    std::vector<float> row;
    Rank rank;
    bool is_new = false;  // in new_, not in used_
  };
  void Use(int64_t key, Row* row) {
    if (!row->is_new) used_.erase(row->rank);
    if (options_.policy == CachePolicy::kLfu) ++row->rank.first;
    row->rank.second = ++last_use_;
    if (!row->is_new) used_[row->rank] = key;
  }
  const CacheTableOptions options_;
  std::atomic<int64_t> slots_;
  KeyChanges changes_, touched_{17};
  std::unordered_map<int64_t, Row> rows_;
  std::map<Rank, int64_t> used_;  // ordered: the key to evict next comes first
  int64_t last_use_ = 0;
  // stored by this call; not evicted for other keys of the call
  std::vector<int64_t> new_;
  CacheStatistics statistics_;
};

class HostLookup : public CacheLookup {
 public:
  HostLookup(std::shared_ptr<HostTable> table, const CacheBatch& batch)
      : table_(std::move(table)), batch_(batch) {}

  ev::Status Begin() {
    const std::string where = "table " + table_->options().tag + ": ";
    const bool on_device = batch_.ids_on_device || batch_.rows_on_device;
    if (on_device &&
        (batch_.stream == nullptr || batch_.stream->native == nullptr)) {
      return ev::InvalidArgument(where +
                                 "ids or rows on a device need its stream");
    }
    if (batch_.count == 0) return ev::Status::OK();
    if (on_device) {
      stream_ = static_cast<ev::testing::HostStream*>(batch_.stream->native);
      stream_->Wait();
    }
    const void* ids = batch_.ids;
    if (batch_.ids_on_device) ids = ev::testing::ReachHostDeviceMemory(ids);
    const bool rows_are =
        ev::testing::ReachHostDeviceMemory(batch_.rows) != nullptr;
    if (ids == nullptr || rows_are != batch_.rows_on_device ||
        (!batch_.ids_on_device &&
         ev::testing::ReachHostDeviceMemory(ids) != nullptr)) {
      return ev::InvalidArgument(where +
                                 "ids or rows are not where the batch says");
    }
    std::lock_guard<std::mutex> lock(table_->mu_);
    seen_ = table_->changes();
    for (int64_t i = 0; i < batch_.count; ++i) {
      const int64_t key = batch_.long_ids ? static_cast<const int64_t*>(ids)[i]
                                          : static_cast<const int32_t*>(ids)[i];
      const std::vector<float>* const row = table_->Find(key);
      if (row == nullptr) {
        positions_.push_back(i);
        keys_.push_back(key);
      } else {
        Put(i, row->data());
      }
    }
    return ev::Status::OK();
  }

  ev::Span<const int64_t> missing() const override { return positions_; }
  ev::Span<const int64_t> missing_keys() const override { return keys_; }
  int64_t max_fill() const override { return kHostDeviceMaxFill; }

  ev::Status Stage(int64_t count, float** rows) override {
    if (staged_ != 0 || count < 1 || count > max_fill() ||
        count > static_cast<int64_t>(positions_.size()) - filled_) {
      return ev::Internal("Stage of " + std::to_string(count) +
                          " rows: no such misses are left, or Fill is missing");
    }
    staged_ = count;
    room_.assign(count * table_->options().format.width(), -1.0f);
    *rows = room_.data();
    return ev::Status::OK();
  }
  ev::Status Fill(int64_t count, ev::Span<const int64_t> unknown,
                  ev::Parallel* /*parallel*/) override {
    if (count != staged_) {
      return ev::Internal("Fill without a Stage of as many rows");
    }
    staged_ = 0;
    const int width = table_->options().format.width();
    std::lock_guard<std::mutex> lock(table_->mu_);
    size_t next = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float* const row = room_.data() + i * width;
      Put(positions_[filled_ + i], row);
      if (next < unknown.size() && unknown[next] == i) {
        ++next;
      } else {
        table_->Store(keys_[filled_ + i], row, seen_);
      }
    }
    table_->EndStores();
    filled_ += count;
    return next == unknown.size() ? ev::Status::OK()
                                  : ev::Internal("unknown is out of order");
  }
  ev::Status Finish() override {
    if (stream_ == nullptr) return ev::Status::OK();
    float* const rows = batch_.rows;
    stream_->Give([rows, writes = std::move(writes_)] {
      float* const reached = ev::testing::Reach(rows);
      for (const auto& write : writes) {
        std::copy(write.second.begin(), write.second.end(),
                  reached + write.first);
      }
    });
    return ev::Status::OK();
  }

 private:
  void Put(int64_t position, const float* stored) {
    const RowFormat& format = table_->options().format;
    std::vector<float> row(format.dim);
    UnpackRow(format, stored, row.data());
    if (batch_.rows_on_device) {
      writes_.emplace_back(position * format.dim, std::move(row));
    } else {
      std::copy(row.begin(), row.end(), batch_.rows + position * format.dim);
    }
  }

  const std::shared_ptr<HostTable> table_;
  const CacheBatch batch_;
  ev::testing::HostStream* stream_ = nullptr;
  int64_t seen_ = 0, staged_ = 0, filled_ = 0;
  std::vector<int64_t> positions_, keys_;
  std::vector<float> room_;
  std::vector<std::pair<int64_t, std::vector<float>>> writes_;
};

ev::Status HostTable::Lookup(const CacheBatch& batch,
                             std::unique_ptr<CacheLookup>* lookup) {
  std::unique_ptr<HostLookup> made(new HostLookup(shared_from_this(), batch));
  EV_RETURN_IF_ERROR(made->Begin());
  *lookup = std::move(made);
  return ev::Status::OK();
}

class HostReview : public CacheReview {
 public:
  explicit HostReview(std::shared_ptr<HostTable> table)
      : table_(std::move(table)) {
    std::lock_guard<std::mutex> lock(table_->mu_);
    left_ = table_->Keys();
  }
  ev::Status Next(std::vector<int64_t>* keys) override {
    std::lock_guard<std::mutex> lock(table_->mu_);
    keys_.clear();
    seen_ = table_->touches();
    while (!left_.empty() && keys_.size() < kHostDeviceMaxFill) {
      if (table_->Has(left_.back())) keys_.push_back(left_.back());
      left_.pop_back();
    }
    *keys = keys_;
    return ev::Status::OK();
  }
  ev::Status Renew(const float* rows, ev::Span<const int64_t> gone) override {
    std::lock_guard<std::mutex> lock(table_->mu_);
    size_t next = 0;
    for (size_t i = 0; i < keys_.size(); ++i) {
      const bool is_gone =
          next < gone.size() && gone[next] == static_cast<int64_t>(i);
      if (is_gone) ++next;
      table_->Renew(
          keys_[i],
          is_gone ? nullptr : rows + i * table_->options().format.width(),
          seen_);
    }
    return next == gone.size() ? ev::Status::OK()
                               : ev::Internal("gone is out of order");
  }

 private:
  const std::shared_ptr<HostTable> table_;
  std::vector<int64_t> left_, keys_;
  int64_t seen_ = 0;
};

ev::Status HostTable::Review(std::unique_ptr<CacheReview>* review) {
  review->reset(new HostReview(shared_from_this()));
  return ev::Status::OK();
}

class HostDeviceCache : public DeviceCache {
 public:
  const std::string& name() const override { return name_; }
  ev::Status OpenTable(const CacheTableOptions& options,
                       std::shared_ptr<CacheTable>* table) override {
    const int64_t bytes = SizeOf(options);
    if (most_bytes >= 0 && live_bytes + bytes > most_bytes) {
      return ev::ResourceExhausted(
          "table " + options.tag + ": expected " + std::to_string(bytes) +
          " bytes of " + name_ + ", " +
          std::to_string(most_bytes - live_bytes) + " are free");
    }
    live_bytes += bytes;
    *table = std::make_shared<HostTable>(options);
    return ev::Status::OK();
  }

 private:
  const std::string name_ = "the test device";
};

const bool registered = RegisterDeviceCache(&MakeHostDeviceCache);

}  // namespace

ev::Status MakeHostDeviceCache(std::shared_ptr<DeviceCache>* cache) {
  (void)registered;
  if (is_gone) return ev::FailedPrecondition("the test device is gone");
  *cache = std::make_shared<HostDeviceCache>();
  return ev::Status::OK();
}

void SetHostDeviceCacheBytes(int64_t bytes) { most_bytes = bytes; }
void SetHostDeviceIsGone(bool gone) { is_gone = gone; }
int64_t HostDeviceCacheBytes() { return live_bytes; }

}  // namespace hps
