// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Puts the transfers of a process into an order that all ranks share, and has a
// Carrier do them one at a time.
//
// TensorFlow runs ops when their inputs are there, so two lookups may come in
// another order on each rank; and collectives that meet in another order wait
// for each other for ever. So rank 0's order holds: for each transfer its
// thread first tells the others the name of the one that it takes next, and
// they wait until theirs of that name has come. A transfer that comes on one
// rank and never on rank 0 is never begun, so it blocks no other.
//
// Per transfer, three exchanges: the name from rank 0 (8 bytes, a hash), the
// sizes (8 bytes per pair of ranks), the bytes themselves. A reduction of
// gradients is a transfer, too: its signature goes instead of sizes, and its
// sums are the third.
//
// What is in a device's memory is STARTED: it may be neither there nor gone
// when done is called, which gets a mark to be followed. A second thread looks
// when marks are reached, and whether all ranks live meanwhile. What is started
// goes in order, on rank 0 in that of the calls of Add, with one exception:
// sums of gradients, which are ready late, wait for the gradients of lookups
// that are expected (ExpectedGradient), unless their own numbers are there
// before.

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

// 'send' stays until done is called, exactly once, in the queue's thread.
struct Transfer {
  std::string name;  // the same on all ranks
  const char* send = nullptr;
  std::vector<int64_t> send_bytes;  // one per rank
  // What is coming, one size per rank; says where it goes.
  std::function<ev::Status(ev::Span<const int64_t> received, char** out)>
      allocate;
  // there: reached when it has come; null: it has. Of an error null.
  std::function<void(const ev::Status&,
                     const std::shared_ptr<StreamMark>& there)>
      done;
  // Whether both ends are in CPU memory, on all ranks: then nothing that is
  // started keeps it waiting, where ranks are on one host.
  bool in_cpu_memory = false;
  // When it may be sent; null: now.
  std::shared_ptr<StreamMark> after;
  // Carrier::StartAllToAll has it.
  int when_failed = 0;
  // Not null: sums over ranks, and no bytes; only name and done are used
  // besides.
  std::unique_ptr<Reduction> reduction;
};

// As long as one lives, a lookup's gradients are expected in this process.
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
  // Fails what is left, and waits for the threads.
  ~CarrierQueue();
  CarrierQueue(const CarrierQueue&) = delete;
  CarrierQueue& operator=(const CarrierQueue&) = delete;

  // The one of this process: null until Install, never destroyed.
  static CarrierQueue* Global();
  // FailedPrecondition when there is one already.
  static ev::Status Install(std::unique_ptr<Carrier> carrier);

  int num_ranks() const { return carrier_->num_ranks(); }
  // As the carrier's.
  ev::Status Mark(const ev::DeviceStream& stream,
                  std::shared_ptr<StreamMark>* mark) {
    return carrier_->Mark(stream, mark);
  }

  // Two transfers of one name on their way at once are taken in the order in
  // which they came. After a failure, all fail at once with its status. Throws
  // std::bad_alloc, and then takes nothing.
  void Add(Transfer transfer);

  // Ends all transfers, those to come too, with this status. The first counts.
  void Fail(const ev::Status& status);

  // For the end of the process: waits until what was started is through, on
  // this rank and on those that come here too, or so long. The failure, if
  // there was one.
  ev::Status Drain(std::chrono::milliseconds limit);

 private:
  struct Pending {
    uint64_t name_hash;
    uint64_t wait;  // in the WaitRegistry
    Transfer transfer;
  };

  // A transfer that was started.
  struct Started {
    uint64_t wait;
    int64_t number;  // of the transfers before it
    std::shared_ptr<StreamMark> there;
  };

  void Run();
  // Looks at what was started.
  void Watch();
  // The next transfer, of rank 0's choice. Not OK at the end.
  ev::Status Next(Pending* pending);
  // The name of the transfer that rank 0 takes next; waits until one is ready.
  // REQUIRES that 'lock' holds mu_ and that there are transfers.
  uint64_t Choose(std::unique_lock<std::mutex>* lock);
  ev::Status Carry(const Transfer& transfer,
                   std::shared_ptr<StreamMark>* there);
  ev::Status Reduce(const Reduction& reduction,
                    std::shared_ptr<StreamMark>* there);
  void End(Pending pending, const ev::Status& status,
           std::shared_ptr<StreamMark> there);

  const std::unique_ptr<Carrier> carrier_;
  std::mutex mu_;
  std::condition_variable wake_;
  std::deque<Pending> pending_;
  std::deque<Started> started_;  // in order
  // Transfers whose turn has come, the same ones on all ranks.
  int64_t num_transfers_ = 0;
  bool is_carrying_ = false;
  bool has_started_ = false;
  bool has_ended_ = false;  // Run has
  ev::Status failed_;
  std::thread thread_, watcher_;
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_CARRIER_QUEUE_H_
