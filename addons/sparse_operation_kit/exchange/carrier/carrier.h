// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Interface that moves bytes between the ranks of a job without Horovod.
// Implementations:
//
//   "memory"  ranks of one host, through memory they share (memory_carrier.cc)
//   "nccl"    ranks with a GPU each, through NCCL between buffers on the GPUs
//             (nccl/nccl_carrier.cc; only in builds with CUDA)
//
// A carrier handles one call at a time. CarrierQueue (carrier_queue.h) puts the
// calls of several lookups into an order that all ranks share.

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

  // Sends send_bytes[r] bytes to each rank r; 'send' holds them in rank order.
  // Receives received_bytes[r] bytes from each rank r into 'out', also in rank
  // order, and returns when all have arrived. With "nccl", each buffer may be
  // in the memory of the rank's GPU; ranks need not agree.
  // Collective: every rank makes the same calls in the same order, one at a
  // time, and received_bytes[r] equals what rank r sends to this rank.
  // Internal after Abort, or if another rank is gone; "memory" still completes
  // a call that need not wait.
  virtual ev::Status AllToAll(const char* send,
                              ev::Span<const int64_t> send_bytes, char* out,
                              ev::Span<const int64_t> received_bytes) = 0;

  // AllToAll for buffers in device memory, where 'send' is valid when 'after'
  // is reached. May return while the transfer is in flight. *ready is reached
  // when all bytes have arrived and all of this rank's are sent; until then
  // both buffers must stay. If the implementation has to wait, it does AllToAll
  // and sets *ready to null. After Abort, 'out' is filled with the byte
  // 'when_failed' before *ready is reached.
  virtual ev::Status StartAllToAll(const char* send,
                                   ev::Span<const int64_t> send_bytes,
                                   const std::shared_ptr<StreamEvent>& after,
                                   char* out,
                                   ev::Span<const int64_t> received_bytes,
                                   int when_failed,
                                   std::shared_ptr<StreamEvent>* ready) {
    (void)when_failed;
    ready->reset();
    if (after != nullptr) EV_RETURN_IF_ERROR(after->Wait());
    return AllToAll(send, send_bytes, out, received_bytes);
  }

  // AllToAll for buffers in host memory. It does not wait for transfers in
  // flight, unless HostWaitsForStarted().
  virtual ev::Status AllToAllOnHost(const char* send,
                                    ev::Span<const int64_t> send_bytes,
                                    char* out,
                                    ev::Span<const int64_t> received_bytes) {
    return AllToAll(send, send_bytes, out, received_bytes);
  }

  // Starts summing numbers over all ranks; all ranks get the same bits. The
  // sums are valid when *ready is reached; null: when the call returns.
  // Collective and one call at a time, like AllToAll; every rank passes equally
  // many pieces, with the same sizes, type and scale. Unimplemented if this
  // kind of carrier cannot sum. After Abort, sums in flight are set to zero.
  virtual ev::Status AllReduce(const Reduction& reduction,
                               std::shared_ptr<StreamEvent>* ready) {
    (void)reduction;
    (void)ready;
    return ev::Unimplemented("this kind of exchange cannot sum gradients");
  }
  // Whether AllToAllOnHost has to wait for started transfers.
  virtual bool HostWaitsForStarted() const { return false; }
  // Returns an event for the work enqueued so far on a stream of the rank's
  // device. From any thread.
  virtual ev::Status RecordEvent(const ev::DeviceStream& stream,
                                 std::shared_ptr<StreamEvent>* event) {
    (void)stream;
    (void)event;
    return ev::Unimplemented("this exchange has no device");
  }

  // Returns Internal if another rank is gone, or if the carrier has failed; but
  // "nccl" on several hosts cannot detect another rank's end. From any thread,
  // also during a call. Costs a few system calls and never waits for a device.
  // call: number of the call that the caller waits for. A rank that took part
  // in that call and then left raises no error; a rank that left before it
  // does. With kEveryCall, every rank that has left raises an error.
  virtual ev::Status CheckRanks(int64_t call = kEveryCall) {
    (void)call;
    return ev::Status::OK();
  }
  // Announces that this rank has made 'calls' calls and makes no more. Then
  // waits until all ranks have left, an error occurs, or 'limit' has passed;
  // "nccl" on several hosts does not wait. From any thread.
  virtual void Leave(int64_t calls, std::chrono::milliseconds limit) {
    (void)calls;
    (void)limit;
  }

  // Makes the call in flight and later calls fail if they have to wait; with
  // "memory" those of all ranks of the host. From any thread.
  virtual void Abort() = 0;
  // Ends started transfers after Abort, and waits for them. Called by the
  // thread that makes the calls.
  virtual void End() {}
};

struct CarrierOptions {
  std::string id;  // of MakeCarrierId on rank 0
  int rank = 0, num_ranks = 1;
  // Threads that a call may use, including the caller; 0: chosen by the number
  // of CPUs. Only "memory" uses more than one.
  int num_threads = 0;
  // Longest sleep while a rank waits for another. Used by "memory" only.
  int longest_nap_us = 200;
};

// The functions that create one kind of carrier.
struct CarrierKind {
  // Returns OK if this process can create a carrier of this kind; not
  // collective.
  ev::Status (*check)() = nullptr;
  ev::Status (*make_id)(int num_ranks, std::string* id) = nullptr;
  // Every rank calls it. "nccl" waits for all ranks, forever if one does not
  // come; "memory" does not wait, its first transfer does.
  ev::Status (*make)(const CarrierOptions& options,
                     std::unique_ptr<Carrier>* carrier) = nullptr;
};

// Registers a kind of carrier. Called by a static initializer of the file that
// implements it, or, if the CUDA library implements it, when that library has
// been loaded. Thread-safe. Returns true.
bool RegisterCarrier(const std::string& kind, const CarrierKind& how);
// False: none of that kind is registered. Loads no CUDA library.
bool RegisteredCarrier(const std::string& kind, CarrierKind* how);

// Loads the CUDA library for a kind of carrier that it contains.
// FailedPrecondition, with the reason, if this process cannot create such a
// carrier; Internal if the CUDA library cannot be loaded; InvalidArgument if
// the kind does not exist.
ev::Status CheckCarrier(const std::string& kind);
// Prepares a job of num_ranks ranks. *id: any bytes; pass it to all ranks.
// Errors are those of CheckCarrier, and ResourceExhausted.
ev::Status MakeCarrierId(const std::string& kind, int num_ranks,
                         std::string* id);
// Collective: waits for all ranks. Errors are those of CheckCarrier.
ev::Status MakeCarrier(const std::string& kind, const CarrierOptions& options,
                       std::unique_ptr<Carrier>* carrier);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_CARRIER_H_
