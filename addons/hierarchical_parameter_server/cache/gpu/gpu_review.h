// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A walk over the slots of a GPU's table. A key stays in its slot until it is
// evicted or erased, so the walk misses no key that stays.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_GPU_REVIEW_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_GPU_REVIEW_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/device_cache.h"
#include "addons/hierarchical_parameter_server/cache/gpu/gpu_table.h"

namespace hps {

class GpuReview : public CacheReview {
 public:
  explicit GpuReview(std::shared_ptr<GpuTable> table);
  ~GpuReview() override { table_->EndReview(); }

  ev::Status Next(std::vector<int64_t>* keys) override;
  ev::Status Renew(const float* rows, ev::Span<const int64_t> gone) override;

 private:
  const std::shared_ptr<GpuTable> table_;
  int64_t next_slot_ = 0;
  std::vector<int64_t> keys_;  // returned by the last Next
  int64_t seen_ = 0;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_GPU_REVIEW_H_
