// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/carrier/carrier_queue.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <utility>

#include "addons/sparse_operation_kit/exchange/wait_registry.h"
#include "kernels/engine/base/tasks.h"

namespace sok {
namespace {

// Poll interval while the device has not finished a transfer's input.
constexpr auto kLook = std::chrono::microseconds(20);
// Poll interval for started transfers. It delays the time limit and the release
// of memory.
constexpr auto kLookAtStarted = std::chrono::microseconds(200);
// Polls between two checks that all ranks are alive, some 50 ms.
constexpr int kLooksForTheDead = 200;

bool IsReached(const std::shared_ptr<StreamEvent>& event) {
  return event == nullptr || event->IsReached();
}

// FNV-1a, which is the same in every process; std::hash need not be.
uint64_t HashOf(const std::string& name) {
  uint64_t hash = 14695981039346656037ull;
  for (const unsigned char c : name) hash = (hash ^ c) * 1099511628211ull;
  return hash;
}

template <typename T>
const char* Bytes(const T* data) {
  return reinterpret_cast<const char*>(data);
}
template <typename T>
char* Bytes(T* data) {
  return reinterpret_cast<char*>(data);
}

std::atomic<CarrierQueue*> global{nullptr};

}  // namespace

std::atomic<int64_t>& ExpectedGradient::count() {
  static std::atomic<int64_t> count{0};
  return count;
}

CarrierQueue::CarrierQueue(std::unique_ptr<Carrier> carrier)
    : carrier_(std::move(carrier)),
      thread_(&CarrierQueue::Run, this),
      watcher_(&CarrierQueue::Watch, this) {}

CarrierQueue::~CarrierQueue() {
  Fail(ev::Internal("the exchange was closed"));
  thread_.join();
  watcher_.join();
}

CarrierQueue* CarrierQueue::Global() { return global.load(); }

ev::Status CarrierQueue::Install(std::unique_ptr<Carrier> carrier) {
  static std::mutex* const mu = new std::mutex;
  std::lock_guard<std::mutex> lock(*mu);
  if (global.load() != nullptr) {
    return ev::FailedPrecondition("this process has an exchange already");
  }
  global.store(new CarrierQueue(std::move(carrier)));
  return ev::Status::OK();
}

void CarrierQueue::Add(Transfer transfer) {
  Pending pending;
  pending.name_hash = HashOf(transfer.name);
  pending.transfer = std::move(transfer);
  ev::Status failed = ev::CatchBadAlloc([&] {
    pending.wait = WaitRegistry::Global().Begin(pending.transfer.name);
    return ev::Status::OK();
  });
  bool had_failed = false;
  if (failed.ok()) {
    failed = ev::CatchBadAlloc([&] {
      std::lock_guard<std::mutex> lock(mu_);
      had_failed = !failed_.ok();
      if (had_failed) return failed_;
      pending_.push_back(std::move(pending));
      return ev::Status::OK();
    });
    wake_.notify_all();
  }
  if (failed.ok()) return;
  if (!had_failed) Fail(failed);  // other ranks would wait for this transfer
  End(std::move(pending), failed, nullptr);
}

void CarrierQueue::Fail(const ev::Status& status) {
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (failed_.ok()) failed_ = status;
  }
  carrier_->Abort();
  wake_.notify_all();
}

void CarrierQueue::End(Pending pending, const ev::Status& status,
                       std::shared_ptr<StreamEvent> ready) {
  if (ready == nullptr) {
    WaitRegistry::Global().End(pending.wait);
  } else {
    try {
      std::lock_guard<std::mutex> lock(mu_);
      started_.push_back(Started{pending.wait, num_transfers_ - 1, ready});
      has_started_ = true;
    } catch (const std::bad_alloc&) {
      // No memory to record it.
      static_cast<void>(ready->Wait());
      WaitRegistry::Global().End(pending.wait);
    }
    wake_.notify_all();
  }
  pending.transfer.done(status, ready);
}

ev::Status CarrierQueue::Drain(std::chrono::milliseconds limit) {
  const auto last = std::chrono::steady_clock::now() + limit;
  int64_t calls;
  bool has_started;
  for (;;) {
    {
      std::lock_guard<std::mutex> lock(mu_);
      EV_RETURN_IF_ERROR(failed_);
      calls = num_transfers_;
      has_started = has_started_;
      if (started_.empty() && !is_carrying_) break;
    }
    if (std::chrono::steady_clock::now() > last) return ev::Status::OK();
    std::this_thread::sleep_for(kLookAtStarted);
  }
  // Another rank's GPU may be behind and still receive what this rank has sent.
  // A rank that never started a transfer has waited for all that it sent.
  carrier_->Leave(calls,
                  has_started
                      ? std::chrono::duration_cast<std::chrono::milliseconds>(
                            last - std::chrono::steady_clock::now())
                      : std::chrono::milliseconds(0));
  std::lock_guard<std::mutex> lock(mu_);
  return failed_;
}

void CarrierQueue::Watch() {
  for (int looks = 1;; ++looks) {
    Started first;
    {
      std::unique_lock<std::mutex> lock(mu_);
      wake_.wait(lock, [this] { return !started_.empty() || has_ended_; });
      if (started_.empty()) return;
      first = started_.front();
    }
    // Check ranks before the event: a query of the device may block on work
    // that waits for the missing rank.
    if (looks % kLooksForTheDead == 0) {
      const ev::Status alive = carrier_->CheckRanks(first.number);
      if (!alive.ok()) Fail(alive);
    }
    if (!first.ready->IsReached()) {
      std::this_thread::sleep_for(kLookAtStarted);
      continue;
    }
    WaitRegistry::Global().End(first.wait);
    std::lock_guard<std::mutex> lock(mu_);
    started_.pop_front();  // only now: Drain reads the queue
  }
}

ev::Status CarrierQueue::Next(Pending* pending) {
  const int num_ranks = carrier_->num_ranks();
  std::unique_lock<std::mutex> lock(mu_);
  wake_.wait(lock, [this] { return !pending_.empty() || !failed_.ok(); });
  EV_RETURN_IF_ERROR(failed_);
  uint64_t chosen = 0;
  if (carrier_->rank() == 0) {
    chosen = Choose(&lock);
    EV_RETURN_IF_ERROR(failed_);
  }
  lock.unlock();

  std::vector<int64_t> to(num_ranks, 0), from(num_ranks, 0);
  std::vector<uint64_t> names(num_ranks, chosen);
  if (carrier_->rank() == 0) {
    to.assign(num_ranks, sizeof(chosen));
    to[0] = 0;
  } else {
    from[0] = sizeof(chosen);
  }
  EV_RETURN_IF_ERROR(carrier_->AllToAllOnHost(
      Bytes(names.data()) + (carrier_->rank() == 0 ? sizeof(chosen) : 0), to,
      Bytes(&chosen), from));

  lock.lock();
  auto found = pending_.end();
  wake_.wait(lock, [&] {
    found =
        std::find_if(pending_.begin(), pending_.end(),
                     [&](const Pending& p) { return p.name_hash == chosen; });
    return found != pending_.end() || !failed_.ok();
  });
  EV_RETURN_IF_ERROR(failed_);
  *pending = std::move(*found);
  pending_.erase(found);
  is_carrying_ = true;
  ++num_transfers_;
  return ev::Status::OK();
}

uint64_t CarrierQueue::Choose(std::unique_lock<std::mutex>* lock) {
  struct Candidate {
    uint64_t name_hash;
    std::shared_ptr<StreamEvent> after;  // null: ready
  };
  std::vector<Candidate> candidates;
  for (;;) {
    candidates.clear();
    for (const Pending& pending : pending_) {
      const Transfer& transfer = pending.transfer;
      const bool is_sum = transfer.reduction != nullptr;
      Candidate candidate;
      candidate.name_hash = pending.name_hash;
      if (carrier_->HostWaitsForStarted() ||
          (is_sum && ExpectedGradient::IsAny())) {
        candidate.after = is_sum ? transfer.reduction->after : transfer.after;
      }
      candidates.push_back(std::move(candidate));
    }
    // Unlock while querying the device, which may block: Fail must be able to
    // end what it waits for.
    lock->unlock();
    const auto ready =
        std::find_if(candidates.begin(), candidates.end(),
                     [](const Candidate& c) { return IsReached(c.after); });
    // wait_for would need pthread_cond_clockwait of glibc 2.30; the wheel must
    // run on 2.17.
    if (ready == candidates.end()) std::this_thread::sleep_for(kLook);
    lock->lock();
    if (!failed_.ok()) return 0;
    if (ready != candidates.end()) return ready->name_hash;
  }
}

ev::Status CarrierQueue::Reduce(const Reduction& reduction,
                                std::shared_ptr<StreamEvent>* ready) {
  const int num_ranks = carrier_->num_ranks();
  const std::vector<int64_t> mine(num_ranks, SignatureOf(reduction));
  const std::vector<int64_t> bytes(num_ranks, sizeof(int64_t));
  std::vector<int64_t> all(num_ranks);
  EV_RETURN_IF_ERROR(carrier_->AllToAllOnHost(Bytes(mine.data()), bytes,
                                              Bytes(all.data()), bytes));
  for (int r = 0; r < num_ranks; ++r) {
    if (all[r] == mine[r]) continue;
    return ev::InvalidArgument("rank " + std::to_string(r) +
                               " sums different gradients than rank " +
                               std::to_string(carrier_->rank()) +
                               ": their number, shapes, type or scale differ");
  }
  return carrier_->AllReduce(reduction, ready);
}

ev::Status CarrierQueue::Carry(const Transfer& transfer,
                               std::shared_ptr<StreamEvent>* ready) {
  if (transfer.reduction != nullptr) return Reduce(*transfer.reduction, ready);
  const int num_ranks = carrier_->num_ranks();
  std::vector<int64_t> received(num_ranks);
  const std::vector<int64_t> size_bytes(num_ranks, sizeof(int64_t));
  EV_RETURN_IF_ERROR(
      carrier_->AllToAllOnHost(Bytes(transfer.send_bytes.data()), size_bytes,
                               Bytes(received.data()), size_bytes));
  char* out = nullptr;
  EV_RETURN_IF_ERROR(transfer.allocate(received, &out));
  if (transfer.in_cpu_memory) {
    return carrier_->AllToAllOnHost(transfer.send, transfer.send_bytes, out,
                                    received);
  }
  return carrier_->StartAllToAll(transfer.send, transfer.send_bytes,
                                 transfer.after, out, received,
                                 transfer.when_failed, ready);
}

void CarrierQueue::Run() {
  for (;;) {
    Pending pending;
    ev::Status status = ev::CatchBadAlloc([&] { return Next(&pending); });
    if (status.ok()) {
      std::shared_ptr<StreamEvent> ready;
      status =
          ev::CatchBadAlloc([&] { return Carry(pending.transfer, &ready); });
      if (!status.ok()) {
        // The other ranks wait for this rank, which will not answer.
        Fail(status);
        // Stop work on memory that 'done' releases.
        carrier_->End();
        // If the queue was failed on purpose, report that reason, not the
        // carrier's resulting error.
        std::lock_guard<std::mutex> lock(mu_);
        status = failed_;
        ready.reset();
      }
      End(std::move(pending), status, std::move(ready));
      std::lock_guard<std::mutex> lock(mu_);
      is_carrying_ = false;
      continue;
    }
    Fail(status);
    carrier_->End();
    std::deque<Pending> left;
    {
      std::lock_guard<std::mutex> lock(mu_);
      left.swap(pending_);
      status = failed_;
      has_ended_ = true;
    }
    wake_.notify_all();
    for (Pending& p : left) End(std::move(p), status, nullptr);
    return;
  }
}

}  // namespace sok
