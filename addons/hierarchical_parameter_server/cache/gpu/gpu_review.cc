// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/cache/gpu/gpu_review.h"

#include "addons/hierarchical_parameter_server/cache/cache_size.h"

namespace hps {
namespace {

// A multiple of the hash table's bucket size.
int64_t SlotsAtOnce(int width) { return CacheRowsAtOnce(width) / 16 * 16; }

}  // namespace

GpuReview::GpuReview(std::shared_ptr<GpuTable> table)
    : table_(std::move(table)) {
  table_->BeginReview();
}

ev::Status GpuReview::Next(std::vector<int64_t>* keys) {
  const int64_t slots = SlotsAtOnce(table_->options().format.width());
  bool is_over = false;
  keys_.clear();
  // A range of slots may be empty.
  while (keys_.empty() && !is_over) {
    EV_RETURN_IF_ERROR(
        table_->ListKeys(next_slot_, slots, &keys_, &seen_, &is_over));
    next_slot_ += slots;
  }
  *keys = keys_;
  return ev::Status::OK();
}

ev::Status GpuReview::Renew(const float* rows, ev::Span<const int64_t> gone) {
  return table_->Renew(keys_, rows, gone, seen_);
}

}  // namespace hps
