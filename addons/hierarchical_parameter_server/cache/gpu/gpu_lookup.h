// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One lookup in a GPU's cache. One kernel writes the rows of a device output.
// Rows of a host output are copied down in parts, with two parts in flight.
// Missed rows are copied up in parts, also with two in flight.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_GPU_LOOKUP_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_GPU_LOOKUP_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/device_cache.h"
#include "addons/hierarchical_parameter_server/cache/gpu/gpu_table.h"
#include "kernels/engine/base/gpu/work/work_context.h"

namespace hps {

class GpuLookup : public CacheLookup {
 public:
  GpuLookup(std::shared_ptr<GpuTable> table, const CacheBatch& batch)
      : table_(std::move(table)), batch_(batch) {}
  ~GpuLookup() override;

  ev::Status Begin();

  ev::Span<const int64_t> missing() const override { return positions_; }
  ev::Span<const int64_t> missing_keys() const override { return keys_; }
  int64_t max_fill() const override { return table_->rows_at_once(); }
  ev::Status Stage(int64_t count, float** rows) override;
  ev::Status Fill(int64_t count, ev::Span<const int64_t> unknown,
                  ev::Parallel* parallel) override;
  ev::Status Finish() override;

 private:
  // The ids [begin, begin + count) and the context that processes them.
  struct Part {
    Part(const CacheBatch& batch, int64_t begin, int64_t count,
         const RowFormat& format, bool direct);
    int64_t begin, count;
    ContextParts host, device;
    size_t host_keys = 0, host_bits = 0, host_rows = 0;
    size_t ids = 0, keys = 0, slots = 0, bits = 0, rows = 0;
    bool has_rows = false;
    std::unique_ptr<ev::gpu::WorkContext> context;
  };
  // Offsets, in its context's memory, of one Stage's rows and positions.
  struct Staged {
    Staged(int64_t count, int width);
    int64_t count;
    ContextParts host, device;
    size_t host_rows, host_positions;
    size_t rows, positions;
    GpuTable::StoreParts store;
  };
  ev::Status Check() const;
  // Send enqueues a part's work; Receive waits for it and collects its result.
  ev::Status Send(Part* part, bool direct);
  ev::Status Receive(Part* part, bool direct);
  void Miss(const Part& part, const uint32_t* bits);

  const std::shared_ptr<GpuTable> table_;
  const CacheBatch batch_;
  int64_t seen_ = 0;
  std::vector<int64_t> positions_, keys_;
  int64_t filled_ = 0;
  std::unique_ptr<Staged> staged_;  // of the last Stage
  std::unique_ptr<ev::gpu::WorkContext> staging_;
  // Contexts whose rows are being copied to the device, oldest first.
  std::deque<std::unique_ptr<ev::gpu::WorkContext>> busy_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_GPU_GPU_LOOKUP_H_
