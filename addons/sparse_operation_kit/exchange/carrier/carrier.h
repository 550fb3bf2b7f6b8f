// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What carries bytes between the ranks of a job, when Horovod does not:
//
//   "memory"  ranks of one host, through memory they share (memory_carrier.cc)
//   "nccl"    ranks with a GPU each, through NCCL between buffers on the GPUs
//             (nccl/nccl_carrier.cc; only in builds with CUDA)
//
// Calls of several lookups are put in an order that all ranks share by
// carrier_queue.h; a carrier only ever sees one call at a time.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_CARRIER_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_CARRIER_H_

#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include "addons/sparse_operation_kit/exchange/carrier/reduction.h"
#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace sok {

class Carrier {
 public:
  static constexpr int64_t kEveryCall = std::numeric_limits<int64_t>::max();

  virtual ~Carrier() {}

  virtual int rank() const = 0;
  virtual int num_ranks() const = 0;

  // Sends send_bytes[r] bytes to rank r, which lie in 'send' one rank after the
  // other, and puts what rank r sends into 'out' in the same way, all of it
  // when it returns. With "nccl" each may be in the memory of the rank's GPU,
  // on one rank and not on another. Collective: every rank makes the same calls
  // in the same order, and received_bytes[r] is what rank r sends to this one.
  // One call at a time. Internal after Abort, or when another rank is gone.
  virtual ev::Status AllToAll(const char* send,
                              ev::Span<const int64_t> send_bytes, char* out,
                              ev::Span<const int64_t> received_bytes) = 0;

  // As AllToAll of what is in the device's memory, or will be when 'after' is
  // reached; it may return when it has begun. *there is reached when all has
  // come, and all that this rank sends has gone; till then both stay. Where it
  // has to wait, it is AllToAll, and *there null. After Abort 'out' is filled
  // with the byte 'when_failed' before *there is reached.
  virtual ev::Status StartAllToAll(const char* send,
                                   ev::Span<const int64_t> send_bytes,
                                   const std::shared_ptr<StreamMark>& after,
                                   char* out,
                                   ev::Span<const int64_t> received_bytes,
                                   int when_failed,
                                   std::shared_ptr<StreamMark>* there) {
    (void)when_failed;
    there->reset();
    if (after != nullptr) EV_RETURN_IF_ERROR(after->Wait());
    return AllToAll(send, send_bytes, out, received_bytes);
  }

  // As AllToAll, of what is in CPU memory, and not behind what was started.
  virtual ev::Status Tell(const char* send, ev::Span<const int64_t> send_bytes,
                          char* out, ev::Span<const int64_t> received_bytes) {
    return AllToAll(send, send_bytes, out, received_bytes);
  }

  // Begins to sum numbers over all ranks. The sums are there when *there is
  // reached, or when it returns (null). The same bits on all ranks. Collective
  // and one call at a time, as AllToAll; every rank gives as many pieces of the
  // same sizes, type and scale. Unimplemented: this kind of carrier sums
  // nothing. After Abort sums that had begun are zero.
  virtual ev::Status AllReduce(const Reduction& reduction,
                               std::shared_ptr<StreamMark>* there) {
    (void)reduction;
    (void)there;
    return ev::Unimplemented("this exchange sums no gradients");
  }
  // Whether what was started keeps Tell waiting, which says what comes next.
  virtual bool TellWaitsForStarted() const { return false; }
  // The point that a stream of the rank's device has been given so far, for
  // what is in the device's memory. From any thread.
  virtual ev::Status Mark(const ev::DeviceStream& stream,
                          std::shared_ptr<StreamMark>* mark) {
    (void)stream;
    (void)mark;
    return ev::Unimplemented("this exchange has no device");
  }

  // Internal when another rank is known to be gone, or to have ended, or the
  // carrier has failed. Some system calls, and none that waits for a device.
  // call: the number of the call that waits, as the caller counts them: ranks
  // that have left after it are not missed.
  virtual ev::Status CheckRanks(int64_t call = kEveryCall) {
    (void)call;
    return ev::Status::OK();
  }
  // Says that this rank has done so many calls and makes no more, and waits
  // until all have said so, or one is missed, or so long. By any thread.
  virtual void Leave(int64_t calls, std::chrono::milliseconds limit) {
    (void)calls;
    (void)limit;
  }

  // Makes the call that is under way and all later ones fail. From any thread.
  virtual void Abort() = 0;
  // After Abort, by the thread that makes the calls: ends what was started, and
  // waits for it.
  virtual void End() {}
};

struct CarrierOptions {
  std::string id;  // of MakeCarrierId on rank 0
  int rank = 0, num_ranks = 1;
  // That a call may use, the caller included; 0: what the processors allow.
  // Only "memory" uses any.
  int num_threads = 0;
  // How long a rank sleeps at most that waits for another. Only "memory" does.
  int longest_nap_us = 200;
};

// How a kind of carrier comes to be.
struct CarrierKind {
  // Whether this process can have one, on its own.
  ev::Status (*check)() = nullptr;
  ev::Status (*make_id)(int num_ranks, std::string* id) = nullptr;
  // Collective; waits for all ranks, for ever if one does not come.
  ev::Status (*make)(const CarrierOptions& options,
                     std::unique_ptr<Carrier>* carrier) = nullptr;
};

// Called by a static initializer of the code that a program links, or with what
// a CUDA library has that was loaded. Thread-safe. Returns true.
bool RegisterCarrier(const std::string& kind, const CarrierKind& how);
// False: none of that kind is registered. Loads no CUDA library.
bool RegisteredCarrier(const std::string& kind, CarrierKind* how);

// Loads the CUDA library for a kind of carrier that it contains. Returns
// FailedPrecondition, with the reason, when this process cannot have such a
// carrier; Internal: the CUDA library cannot be loaded; InvalidArgument: there
// is no such kind.
ev::Status CheckCarrier(const std::string& kind);
// Prepares a job of so many ranks and names it: any bytes, to be told to all of
// them. Errors as of CheckCarrier; ResourceExhausted.
ev::Status MakeCarrierId(const std::string& kind, int num_ranks,
                         std::string* id);
// Collective: waits for all ranks. Errors as of CheckCarrier.
ev::Status MakeCarrier(const std::string& kind, const CarrierOptions& options,
                       std::unique_ptr<Carrier>* carrier);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_CARRIER_H_
