// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The interaction of the device of host_device_memory.h, by the code for the
// processors. It waits for what it reads, and is done when it returns: memory
// may be freed at once there.

#include <vector>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/interaction/interaction_device.h"
#include "kernels/engine/testing/host_device_memory.h"

namespace ev {
namespace testing {
namespace {

class HostInteraction : public InteractionDevice {
 public:
  int64_t WorkspaceBytes(const VectorBatch& batch) const override {
    return 8 * batch.num_vectors();
  }
  Status StartDots(const VectorBatch& batch, float* dots, void* workspace,
                   const DeviceStream& stream) override {
    HostStream::Wait(stream);
    if (Reach(static_cast<char*>(workspace)) == nullptr) return NoWorkspace();
    const std::vector<const float*> vectors = ReachAll(batch.vectors);
    VectorBatch reached = batch;
    reached.vectors = vectors;
    Serial serial;
    return PairDots(reached, Reach(dots), &serial);
  }
  Status StartGradient(const VectorBatch& batch, const float* slopes,
                       Span<float* const> grads, void* workspace,
                       const DeviceStream& stream) override {
    HostStream::Wait(stream);
    if (Reach(static_cast<char*>(workspace)) == nullptr) return NoWorkspace();
    const std::vector<const float*> vectors = ReachAll(batch.vectors);
    VectorBatch reached = batch;
    reached.vectors = vectors;
    Serial serial;
    return PairDotsGradient(reached, Reach(slopes), ReachAll(grads), &serial);
  }

 private:
  static Status NoWorkspace() {
    return Internal("the workspace is not in the device's memory");
  }
  template <typename T>
  static std::vector<T*> ReachAll(Span<T* const> memory) {
    std::vector<T*> reached;
    for (T* const p : memory) reached.push_back(Reach(p));
    return reached;
  }
};

const bool kRegistered = RegisterInteractionDevice(new HostInteraction);

}  // namespace
}  // namespace testing
}  // namespace ev
