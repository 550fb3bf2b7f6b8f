// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// GpuGradients: gradients of samples that are copied from host memory to the
// GPU for an update. Implements DeviceGradients (rows/gpu_compute.h).
//
// MEMORY: the gradients' size on the GPU, and the same in pinned memory unless
// the GPU reads the caller's memory directly. Held until the update that reads
// them is done.

#ifndef KERNELS_ENGINE_ROWS_GPU_GPU_GRADIENTS_H_
#define KERNELS_ENGINE_ROWS_GPU_GPU_GRADIENTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/engine/base/gpu/device_event.h"
#include "kernels/engine/base/gpu/stream.h"
#include "kernels/engine/base/gpu/work/staged_upload.h"
#include "kernels/engine/base/gpu/work/work_context.h"
#include "kernels/engine/rows/gpu_compute.h"

namespace ev {
namespace gpu {

class GpuGradients : public DeviceGradients {
 public:
  // grads: [num_samples, dim] in host memory, of any type. If it is in pinned
  // memory, its copy is enqueued by this call, and it must not change until
  // this object is destroyed. REQUIRES: the device is current.
  // ResourceExhausted: not enough memory.
  static Status Make(int device, int64_t dim, ConstFloats grads,
                     int64_t num_samples,
                     std::unique_ptr<DeviceGradients>* gradients);
  // Waits for a copy from the caller's memory, but not for the update.
  ~GpuGradients() override;

  bool needs_put() const override { return !is_pinned_; }
  Status Put(int64_t begin, int64_t end, ConstFloats grads) override;

  // The gradients in GPU memory, for work after Before.
  ConstFloats on_gpu() const { return ConstFloats(context_->device(), type_); }
  // Makes later work of the stream wait for the copy.
  Status Before(StreamView stream);
  // Keeps the memory, beyond the life of this object, until 'event'.
  Status UsedUntil(const DeviceEvent& event) {
    return event.Before(context_->stream());
  }

 private:
  GpuGradients(int device, FloatType type, int64_t dim, int64_t num_samples,
               bool is_pinned, std::unique_ptr<WorkContext> context);

  const int device_;
  const FloatType type_;
  const size_t row_bytes_, bytes_;
  const bool is_pinned_;
  std::unique_ptr<WorkContext> context_;
  StagedUpload upload_;
  std::shared_ptr<DeviceEvent> copied_;  // null unless gradients are pinned
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_GPU_GRADIENTS_H_
