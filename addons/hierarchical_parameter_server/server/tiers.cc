// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/tiers.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hps {

Tiers::Tiers(int width, float default_value, std::shared_ptr<Table> above,
             std::shared_ptr<Table> below, std::shared_ptr<Elevator> elevator)
    : width_(width),
      default_value_(default_value),
      above_(std::move(above)),
      below_(std::move(below)),
      elevator_(std::move(elevator)),
      updates_mutex_(std::make_shared<std::mutex>()),
      updates_(std::make_shared<int64_t>(0)) {}

ev::Status Tiers::Read(ev::Span<const int64_t> keys, float* rows,
                       int64_t* missing, Found* found, ev::Parallel* parallel,
                       bool elevates) {
  elevates = elevates && elevator_ != nullptr;
  const int64_t width = width_;
  Positions wanted = Positions::All(static_cast<int64_t>(keys.size()));
  int64_t count = wanted.size();
  if (above_ != nullptr) {
    EV_RETURN_IF_ERROR(
        above_->Fetch(keys, wanted, rows, missing, &count, parallel));
    found->above += wanted.size() - count;
    wanted = Positions::Of(missing, count);
  }
  if (below_ != nullptr && count > 0) {
    const int64_t asked = count;
    std::vector<int64_t> before;
    int64_t seen = 0;
    if (elevates) {
      for (int64_t i = 0; i < asked; ++i) before.push_back(wanted[i]);
      std::lock_guard<std::mutex> lock(*updates_mutex_);
      seen = *updates_;
    }
    EV_RETURN_IF_ERROR(
        below_->Fetch(keys, wanted, rows, missing, &count, parallel));
    found->below += asked - count;
    wanted = Positions::Of(missing, count);
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
  for (int64_t i = 0; i < count; ++i) {
    missing[i] = wanted[i];
    float* const row = rows + missing[i] * width;
    std::fill(row, row + width, default_value_);
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
  // A row that went below alone is hidden where the tier above has another.
  *changed = above || (below && above_ == nullptr) ? Changed::kRows
             : below                               ? Changed::kPerhaps
                                                   : Changed::kNothing;
  return ev::Status::OK();
}

}  // namespace hps
