// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A route's copy in GPU memory.
//
// Offsets and inverse are copied from pinned memory as soon as the route
// exists, in parallel with the exchange of its keys. If the GPU has
// deduplicated, it has them already, and only the keys' positions in the
// message (places) are copied; if it has also sorted the keys, nothing is.
//
// When the rows arrive, one kernel pools all tables into the outputs. When the
// outputs' gradients exist, they are grouped and summed by key, in message
// order.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_GPU_ROUTE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_GPU_ROUTE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "addons/sparse_operation_kit/exchange/exchange_device.h"
#include "addons/sparse_operation_kit/exchange/gpu/sum_kernels.h"
#include "addons/sparse_operation_kit/exchange/gpu/wire_kernels.h"
#include "addons/sparse_operation_kit/exchange/routed_table.h"
#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/work/work_context.h"

namespace sok {
namespace gpu {

class GpuRoute : public DeviceRoute {
 public:
  // memory: the allocator of GPU 'device', for outputs in host memory.
  GpuRoute(int device, ExchangeDevice* memory,
           std::shared_ptr<const RoutePlan> plan)
      : device_(device), memory_(memory), plan_(std::move(plan)) {}
  ~GpuRoute() override;

  ev::Status Start();
  ev::Status StartPool(const char* rows, WireType wire,
                       const std::shared_ptr<StreamEvent>& ready,
                       ev::Span<const int64_t> chunk_starts,
                       ev::Span<const ev::MutableFloats> outputs,
                       const ev::DeviceStream* stream,
                       std::shared_ptr<StreamEvent>* done) override;
  ev::Status Wait() override;
  ev::Status SumGradients(ev::Span<const int> tables,
                          ev::Span<const ev::ConstFloats> grads,
                          const ev::DeviceStream& stream,
                          ev::Span<const int64_t> chunk_starts, WireType wire,
                          char* message,
                          std::shared_ptr<StreamEvent>* done) override;

 private:
  struct Samples {
    const int32_t* offsets;
    const int32_t* inverse;
    const int32_t* places;
  };
  // StartPool, which may fail with work in flight.
  ev::Status EnqueuePool(const char* rows, WireType wire,
                         const std::shared_ptr<StreamEvent>& ready,
                         ev::Span<const int64_t> chunk_starts,
                         ev::Span<const ev::MutableFloats> outputs,
                         const ev::DeviceStream* stream,
                         std::shared_ptr<StreamEvent>* done);
  // Table t's arrays in GPU memory.
  Samples SamplesOf(int t) const;
  size_t NumbersBytes() const;
  PooledTable Describe(int t, ev::Span<const int64_t> chunk_starts,
                       ev::MutableFloats out);
  // Describes table t's sum without what depends on the other tables. Writes
  // its key starts [ranks + 1] and chunk starts [ranks] to 'numbers'. The chunk
  // start of rank r is chunk_starts[r * stride].
  SummedTable DescribeSum(int t, ev::ConstFloats grads,
                          const int64_t* chunk_starts, size_t stride,
                          int64_t* numbers) const;
  // SumGradients for tables [begin, end) of 'tables'. Runs after *done, and
  // replaces it.
  ev::Status SumSome(ev::Span<const int> tables,
                     ev::Span<const ev::ConstFloats> grads,
                     const ev::DeviceStream& stream,
                     ev::Span<const int64_t> chunk_starts, WireType wire,
                     size_t begin, size_t end, char* message,
                     std::shared_ptr<StreamEvent>* done);

  const int device_;
  ExchangeDevice* const memory_;
  // Copies from its memory may be in flight.
  const std::shared_ptr<const RoutePlan> plan_;
  ev::gpu::Parts parts_;
  size_t tables_at_ = 0, numbers_at_ = 0;
  std::vector<size_t> samples_at_;
  bool is_pooled_ = false;
  std::shared_ptr<char> outputs_;  // until they are copied to the host
  std::unique_ptr<ev::gpu::WorkContext> context_;
};

}  // namespace gpu
}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_GPU_GPU_ROUTE_H_
