// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What the GPU knows of a route. Offsets and inverse go up as soon as the route
// is made, beside the exchange of its keys, out of pinned memory; where the GPU
// has deduplicated they are there, and only the keys' places in the exchange go
// up, or nothing where it has sorted the keys as well. When rows have come a
// kernel pools all tables, to where the outputs are wanted. When the outputs'
// gradients are there they are grouped and summed by key, as they are sent.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_GPU_ROUTE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_GPU_ROUTE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "addons/sparse_operation_kit/exchange/exchange_device.h"
#include "addons/sparse_operation_kit/exchange/gpu/wire_kernels.h"
#include "addons/sparse_operation_kit/exchange/routed_table.h"
#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/work_lane.h"
#include "kernels/engine/rows/gpu/lane_work.h"

namespace sok {
namespace gpu {

class GpuRoute : public DeviceRoute {
 public:
  // memory: of GPU 'device', for outputs that go to CPU memory.
  GpuRoute(int device, ExchangeDevice* memory,
           std::shared_ptr<const RoutePlan> plan)
      : device_(device), memory_(memory), plan_(std::move(plan)) {}
  ~GpuRoute() override;

  ev::Status Start();
  ev::Status StartPool(const char* rows, WireType wire,
                       const std::shared_ptr<StreamMark>& there,
                       ev::Span<const int64_t> chunk_starts,
                       ev::Span<float* const> outputs,
                       const ev::DeviceStream* stream,
                       std::shared_ptr<StreamMark>* done) override;
  ev::Status Wait() override;
  ev::Status SumGradients(ev::Span<const int> tables,
                          ev::Span<const float* const> grads,
                          const ev::DeviceStream& stream,
                          ev::Span<const int64_t> chunk_starts, WireType wire,
                          char* message,
                          std::shared_ptr<StreamMark>* done) override;

 private:
  struct Samples {
    const int32_t* offsets;
    const int32_t* inverse;
    const int32_t* places;
  };
  // Table t's, on the GPU.
  Samples SamplesOf(int t) const;
  size_t NumbersBytes() const;
  PooledTable Describe(int t, ev::Span<const int64_t> chunk_starts, float* out);
  // SumGradients of tables [begin, end) of these, behind what *done was, which
  // is set anew.
  ev::Status SumSome(ev::Span<const int> tables,
                     ev::Span<const float* const> grads,
                     const ev::DeviceStream& stream,
                     ev::Span<const int64_t> chunk_starts, WireType wire,
                     size_t begin, size_t end, char* message,
                     std::shared_ptr<StreamMark>* done);

  const int device_;
  ExchangeDevice* const memory_;
  // Its memory is being read.
  const std::shared_ptr<const RoutePlan> plan_;
  ev::gpu::Parts parts_;
  size_t tables_at_ = 0, numbers_at_ = 0;
  std::vector<size_t> samples_at_;
  bool is_pooled_ = false;
  std::shared_ptr<char> outputs_;  // until they have come down
  std::unique_ptr<ev::gpu::WorkLane> lane_;
};

}  // namespace gpu
}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_GPU_ROUTE_H_
