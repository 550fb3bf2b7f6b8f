// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/served_table.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace hps {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

ServedTable::ServedTable(const ModelConfig& model, const TableConfig& table,
                         std::string tag, std::shared_ptr<Table> above,
                         std::shared_ptr<Table> below,
                         std::shared_ptr<Elevator> elevator)
    : config_(table),
      tag_(std::move(tag)),
      max_keys_(model.max_keys(table)),
      max_batch_size_(model.max_batch_size),
      above_(std::move(above)),
      below_(std::move(below)),
      elevator_(std::move(elevator)),
      updates_mutex_(std::make_shared<std::mutex>()),
      updates_(std::make_shared<int64_t>(0)),
      scratch_(64) {}

ev::Status ServedTable::Lookup(ev::Span<const int64_t> keys, float* rows,
                               ev::Parallel* parallel) {
  const int64_t begin = NowNs();
  Served served;
  served.lookups = 1;
  served.keys = static_cast<int64_t>(keys.size());
  ev::Status status;
  if (served.keys > max_keys_) {
    status = ev::InvalidArgument(
        "table " + tag_ + ": want at most " + std::to_string(max_keys_) +
        " ids of a lookup (max_batch_size " + std::to_string(max_batch_size_) +
        " x maxnum_catfeature_query_per_table_per_sample " +
        std::to_string(config_.max_keys_per_sample) + "), got " +
        std::to_string(served.keys));
  } else {
    auto scratch = scratch_.Acquire();
    status = LookUp(keys, rows, scratch->ReserveOf<int64_t>(keys.size() + 1),
                    parallel, &served);
  }
  if (!status.ok()) {
    served = Served();
    served.failed = served.lookups = 1;
  }
  served.nanoseconds = NowNs() - begin;
  counters_.Add(served);
  return status;
}

ev::Status ServedTable::Lookup(ev::Span<const int32_t> keys, float* rows,
                               ev::Parallel* parallel) {
  if (static_cast<int64_t>(keys.size()) > max_keys_) {
    // Says so, before room is made for them.
    const std::vector<int64_t> none;
    return Lookup(ev::Span<const int64_t>(none.data(), keys.size()), rows,
                  parallel);
  }
  auto scratch = scratch_.Acquire();
  int64_t* const wide = scratch->ReserveOf<int64_t>(keys.size() + 1);
  std::copy(keys.begin(), keys.end(), wide);
  return Lookup(ev::Span<const int64_t>(wide, keys.size()), rows, parallel);
}

ev::Status ServedTable::LookUp(ev::Span<const int64_t> keys, float* rows,
                               int64_t* missing, ev::Parallel* parallel,
                               Served* served) {
  const int64_t width = config_.width;
  Positions wanted = Positions::All(static_cast<int64_t>(keys.size()));
  int64_t count = wanted.size();
  if (above_ != nullptr) {
    EV_RETURN_IF_ERROR(
        above_->Fetch(keys, wanted, rows, missing, &count, parallel));
    served->from_volatile = wanted.size() - count;
    wanted = Positions::Of(missing, count);
  }
  if (below_ != nullptr && count > 0) {
    const int64_t asked = count;
    std::vector<int64_t> before;
    int64_t seen = 0;
    if (elevator_ != nullptr) {
      for (int64_t i = 0; i < asked; ++i) before.push_back(wanted[i]);
      std::lock_guard<std::mutex> lock(*updates_mutex_);
      seen = *updates_;
    }
    EV_RETURN_IF_ERROR(
        below_->Fetch(keys, wanted, rows, missing, &count, parallel));
    served->from_persistent = asked - count;
    wanted = Positions::Of(missing, count);
    if (elevator_ != nullptr && asked > count) {
      std::vector<int64_t> found_keys;
      std::vector<float> found_rows;
      int64_t next = 0;
      for (const int64_t position : before) {
        if (next < count && missing[next] == position) {
          ++next;
          continue;
        }
        found_keys.push_back(keys[position]);
        found_rows.insert(found_rows.end(), rows + position * width,
                          rows + (position + 1) * width);
      }
      elevator_->Offer(above_, std::move(found_keys), std::move(found_rows),
                       updates_mutex_, updates_, seen);
    }
  }
  served->defaults = count;
  for (int64_t i = 0; i < count; ++i) {
    float* const row = rows + wanted[i] * width;
    std::fill(row, row + width, config_.default_value);
  }
  return ev::Status::OK();
}

void ServedTable::DropElevations() {
  std::lock_guard<std::mutex> lock(*updates_mutex_);
  ++*updates_;
}

ev::Status ServedTable::Update(ev::Span<const int64_t> keys, const float* rows,
                               bool to_volatile, bool to_persistent) {
  std::lock_guard<std::mutex> lock(*updates_mutex_);
  ++*updates_;
  ev::Serial serial;
  if (to_persistent && below_ != nullptr) {
    EV_RETURN_IF_ERROR(below_->Insert(keys, rows, &serial));
  }
  if (to_volatile && above_ != nullptr) {
    EV_RETURN_IF_ERROR(above_->Insert(keys, rows, &serial));
  }
  return ev::Status::OK();
}

}  // namespace hps
