// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Orders the transfers of a process in the same way on all ranks, and passes
// them to a Carrier one at a time.
//
// TensorFlow runs an op as soon as its inputs exist, so two lookups may come in
// different orders on different ranks. Collectives in different orders wait for
// each other forever. So rank 0 decides: before each transfer it sends the name
// of its next one, and the other ranks wait until their transfer of that name
// has come. A transfer that comes on some ranks but never on rank 0 is never
// started, so it does not block the others.
//
// A transfer takes three exchanges: the name from rank 0 (8 bytes, a hash), the
// sizes (8 bytes per pair of ranks), and the data. A reduction of gradients is
// a transfer too: it exchanges its signature in place of sizes, and sums in
// place of data.
//
// A transfer of device memory is STARTED: 'done' gets an event and may be
// called before the transfer is complete. A second thread polls these events
// and checks meanwhile that all ranks are alive. Started transfers run in the
// order of rank 0's calls of Add, with two exceptions. A sum of gradients waits
// for expected gradients of lookups (ExpectedGradient) unless its own numbers
// are ready first. If host transfers wait for started ones
// (Carrier::HostWaitsForStarted), the first transfer whose input is ready is
// next; transfers of one name keep their order.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_CARRIER_QUEUE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_CARRIER_QUEUE_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace sok {

// One transfer. 'send' must stay until done is called. done is called exactly
// once: in the queue's thread or, after a failure, by Add before it returns. An
// error of allocate ends the exchange of all ranks.
struct Transfer {
  std::string name;  // the same on all ranks
  const char* send = nullptr;
  std::vector<int64_t> send_bytes;  // one per rank
  // Called with the received size per rank; sets *out to where the data goes.
  std::function<ev::Status(ev::Span<const int64_t> received, char** out)>
      allocate;
  // ready: reached when the data has arrived; null if it has, or on error.
  std::function<void(const ev::Status&,
                     const std::shared_ptr<StreamEvent>& ready)>
      done;
  // Whether both ends are in host memory on all ranks. Then, between ranks of
  // one host, it does not wait for started transfers.
  bool in_cpu_memory = false;
  // When 'send' is valid; null: now. Not used with in_cpu_memory.
  std::shared_ptr<StreamEvent> after;
  // The argument of Carrier::StartAllToAll.
  int when_failed = 0;
  // Not null: a sum over ranks, without other data. Of the other fields only
  // name and done are used.
  std::unique_ptr<Reduction> reduction;
};

// While an object of this class exists, this process expects gradients of a
// lookup.
class ExpectedGradient {
 public:
  ExpectedGradient() { ++count(); }
  ~ExpectedGradient() { --count(); }
  ExpectedGradient(const ExpectedGradient&) = delete;
  ExpectedGradient& operator=(const ExpectedGradient&) = delete;

  static bool IsAny() { return count() > 0; }

 private:
  static std::atomic<int64_t>& count();
};

// All calls are thread-safe.
class CarrierQueue {
 public:
  explicit CarrierQueue(std::unique_ptr<Carrier> carrier);
  // Fails the remaining transfers and waits for the threads.
  ~CarrierQueue();
  CarrierQueue(const CarrierQueue&) = delete;
  CarrierQueue& operator=(const CarrierQueue&) = delete;

  // The queue of this process: null until Install, never destroyed.
  static CarrierQueue* Global();
  // FailedPrecondition if a queue is installed already.
  static ev::Status Install(std::unique_ptr<Carrier> carrier);

  int num_ranks() const { return carrier_->num_ranks(); }
  // Carrier::RecordEvent.
  ev::Status RecordEvent(const ev::DeviceStream& stream,
                         std::shared_ptr<StreamEvent>* event) {
    return carrier_->RecordEvent(stream, event);
  }

  // Adds a transfer. Transfers of the same name run in the order of their
  // calls. After a failure every transfer fails at once with its status. A lack
  // of memory ends the exchange of all ranks.
  void Add(Transfer transfer);

  // Ends all present and later transfers with this status. The first failure is
  // kept.
  void Fail(const ev::Status& status);

  // For the end of the process: waits until started transfers are complete on
  // this rank and, if Carrier::Leave waits for them, on the ranks that call
  // Drain too, or until 'limit' has passed. Returns the queue's failure, if
  // any.
  ev::Status Drain(std::chrono::milliseconds limit);

 private:
  struct Pending {
    uint64_t name_hash;
    uint64_t wait = 0;  // in the WaitRegistry; 0: none
    Transfer transfer;
  };

  // A transfer that was started.
  struct Started {
    uint64_t wait;
    int64_t number;  // count of transfers before it
    std::shared_ptr<StreamEvent> ready;
  };

  void Run();
  // Polls the started transfers.
  void Watch();
  // Takes the next transfer, which rank 0 chooses. Returns an error at the end.
  ev::Status Next(Pending* pending);
  // Returns the hash of the transfer that rank 0 runs next; waits until one is
  // ready. REQUIRES that 'lock' holds mu_ and that pending_ is not empty.
  uint64_t Choose(std::unique_lock<std::mutex>* lock);
  ev::Status Carry(const Transfer& transfer,
                   std::shared_ptr<StreamEvent>* ready);
  ev::Status Reduce(const Reduction& reduction,
                    std::shared_ptr<StreamEvent>* ready);
  void End(Pending pending, const ev::Status& status,
           std::shared_ptr<StreamEvent> ready);

  const std::unique_ptr<Carrier> carrier_;
  std::mutex mu_;
  std::condition_variable wake_;
  std::deque<Pending> pending_;
  std::deque<Started> started_;  // in order
  // Transfers taken so far, the same ones on all ranks.
  int64_t num_transfers_ = 0;
  bool is_carrying_ = false;
  bool has_started_ = false;
  bool has_ended_ = false;  // Run has returned
  ev::Status failed_;
  std::thread thread_, watcher_;
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_CARRIER_QUEUE_H_
