// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/tiers.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hps {

namespace {

std::vector<float> DefaultRow(const RowFormat& format, float value) {
  const std::vector<float> row(format.dim, value);
  std::vector<float> stored(format.width());
  const int64_t key = 0;
  PackRows(format, ev::Span<const int64_t>(&key, 1), row.data(), stored.data());
  return stored;
}

}  // namespace

Tiers::Tiers(const RowFormat& format, float default_value,
             std::shared_ptr<Table> above, std::shared_ptr<Table> below,
             std::shared_ptr<Elevator> elevator,
             std::shared_ptr<Breaker> above_breaker,
             std::shared_ptr<Breaker> below_breaker)
    : format_(format),
      default_row_(DefaultRow(format, default_value)),
      above_(std::move(above)),
      below_(std::move(below)),
      elevator_(std::move(elevator)),
      above_breaker_(std::move(above_breaker)),
      below_breaker_(std::move(below_breaker)),
      updates_mutex_(std::make_shared<std::mutex>()),
      updates_(std::make_shared<int64_t>(0)) {}

ev::Status Tiers::FetchFrom(Table* table, Breaker* breaker, Purpose purpose,
                            ev::Span<const int64_t> keys, Positions wanted,
                            float* rows, int64_t* missing, int64_t* count,
                            bool* is_skipped, ev::Parallel* parallel) {
  *is_skipped = false;
  if (breaker == nullptr) {
    return table->Fetch(keys, wanted, rows, missing, count, parallel);
  }
  ev::Status status = breaker->Begin();
  if (status.ok()) {
    int64_t left = 0;
    status = table->Fetch(keys, wanted, rows, missing, &left, parallel);
    breaker->End(status);
    if (status.ok()) *count = left;
  }
  *is_skipped = status.code() == ev::StatusCode::kUnavailable &&
                purpose == Purpose::kLookup && breaker->skips();
  return *is_skipped ? ev::Status::OK() : status;
}

ev::Status Tiers::Read(ev::Span<const int64_t> keys, float* rows,
                       int64_t* missing, Found* found, ev::Parallel* parallel,
                       Purpose purpose) {
  const int64_t width = format_.width();
  found->skipped = false;
  Positions wanted = Positions::All(static_cast<int64_t>(keys.size()));
  int64_t count = wanted.size();
  if (above_ != nullptr) {
    EV_RETURN_IF_ERROR(FetchFrom(above_.get(), above_breaker_.get(), purpose,
                                 keys, wanted, rows, missing, &count,
                                 &found->skipped, parallel));
    if (!found->skipped) {
      found->above += wanted.size() - count;
      wanted = Positions::Of(missing, count);
    }
  }
  // Holds the positions that are still missing if the persistent tier is
  // skipped.
  std::vector<int64_t> before;
  if (below_ != nullptr && count > 0) {
    const int64_t asked = count;
    const bool elevates =
        elevator_ != nullptr && !found->skipped && purpose != Purpose::kRefresh;
    int64_t seen = 0;
    if (elevates || (below_breaker_ != nullptr && below_breaker_->skips())) {
      for (int64_t i = 0; i < asked; ++i) before.push_back(wanted[i]);
    }
    if (elevates) {
      std::lock_guard<std::mutex> lock(*updates_mutex_);
      seen = *updates_;
    }
    bool is_skipped = false;
    EV_RETURN_IF_ERROR(FetchFrom(below_.get(), below_breaker_.get(), purpose,
                                 keys, wanted, rows, missing, &count,
                                 &is_skipped, parallel));
    found->skipped = found->skipped || is_skipped;
    found->below += asked - count;
    wanted = is_skipped ? Positions::Of(before) : Positions::Of(missing, count);
    if (elevates && asked > count) {
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
  found->nowhere = count;
  if (found->skipped) found->unavailable += count;
  for (int64_t i = 0; i < count; ++i) {
    missing[i] = wanted[i];
    std::copy(default_row_.begin(), default_row_.end(),
              rows + missing[i] * width);
  }
  return ev::Status::OK();
}

void Tiers::DropElevations() {
  std::lock_guard<std::mutex> lock(*updates_mutex_);
  ++*updates_;
}

ev::Status Tiers::Store(ev::Span<const int64_t> keys, const float* rows,
                        bool to_volatile, bool to_persistent,
                        Changed* changed) {
  ++*updates_;
  ev::Serial serial;
  *changed = Changed::kPerhaps;
  const bool below = to_persistent && below_ != nullptr;
  const bool above = to_volatile && above_ != nullptr;
  if (below) EV_RETURN_IF_ERROR(below_->Insert(keys, rows, &serial));
  if (above) EV_RETURN_IF_ERROR(above_->Insert(keys, rows, &serial));
  // A row stored only in the lower tier is hidden if the upper tier has the
  // key.
  *changed = above || (below && above_ == nullptr) ? Changed::kRows
             : below                               ? Changed::kPerhaps
                                                   : Changed::kNothing;
  return ev::Status::OK();
}

}  // namespace hps
