// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The interaction (interaction/interaction_device.h) of the stand-in device of
// host_device_memory.h, computed by the CPU code. A call waits for its inputs
// and is complete when it returns, because memory of the stand-in may be freed
// right after.

#include <vector>

#include "kernels/engine/base/float_type.h"
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
  Status StartDots(const VectorBatch& batch, MutableFloats dots,
                   void* workspace, const DeviceStream& stream) override {
    return WithReached(batch, workspace, stream,
                       [&](const VectorBatch& reached, Parallel* parallel) {
                         return PairDots(reached, ReachFloats(dots), parallel);
                       });
  }
  Status StartGradient(const VectorBatch& batch, ConstFloats slopes,
                       Span<const MutableFloats> grads, void* workspace,
                       const DeviceStream& stream) override {
    return WithReached(batch, workspace, stream,
                       [&](const VectorBatch& reached, Parallel* parallel) {
                         return PairDotsGradient(reached, ReachFloats(slopes),
                                                 ReachAll(grads), parallel);
                       });
  }

 private:
  // Calls body with the addresses at which the stand-in accesses the vectors,
  // after the stream has finished its work.
  template <typename Body>
  static Status WithReached(const VectorBatch& batch, void* workspace,
                            const DeviceStream& stream, const Body& body) {
    HostStream::Wait(stream);
    if (Reach(static_cast<char*>(workspace)) == nullptr) {
      return Internal("the workspace is not in the device's memory");
    }
    const std::vector<ConstFloats> vectors = ReachAll(batch.vectors);
    VectorBatch reached = batch;
    reached.vectors = vectors;
    Serial serial;
    return body(reached, &serial);
  }
  template <typename Floats>
  static Floats ReachFloats(Floats memory) {
    return Floats(Reach(memory.data()), memory.type());
  }
  template <typename Floats>
  static std::vector<Floats> ReachAll(Span<const Floats> memory) {
    std::vector<Floats> reached;
    for (const Floats& floats : memory) reached.push_back(ReachFloats(floats));
    return reached;
  }
};

const bool kRegistered = RegisterInteractionDevice(new HostInteraction);

}  // namespace
}  // namespace testing
}  // namespace ev
