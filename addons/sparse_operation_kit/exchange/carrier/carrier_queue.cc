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

// Between two looks at what a device has to do before a transfer is ready.
constexpr auto kLook = std::chrono::microseconds(20);
// Between two at what was started: the time limit hangs on it, and memory that
// goes back.
constexpr auto kLookAtStarted = std::chrono::microseconds(200);
// And so many looks between two at whether all ranks live, some 50 ms.
constexpr int kLooksForTheDead = 200;

bool IsReached(const std::shared_ptr<StreamMark>& mark) {
  return mark == nullptr || mark->IsReached();
}

// FNV-1a: the same in every process, which std::hash need not be.
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
  pending.wait = WaitRegistry::Global().Begin(transfer.name);
  pending.transfer = std::move(transfer);
  ev::Status failed;
  {
    std::lock_guard<std::mutex> lock(mu_);
    failed = failed_;
    try {
      if (failed.ok()) pending_.push_back(std::move(pending));
    } catch (const std::bad_alloc&) {
      WaitRegistry::Global().End(pending.wait);
      throw;
    }
  }
  wake_.notify_all();
  if (!failed.ok()) End(std::move(pending), failed, nullptr);
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
                       std::shared_ptr<StreamMark> there) {
  if (there == nullptr) {
    WaitRegistry::Global().End(pending.wait);
  } else {
    try {
      std::lock_guard<std::mutex> lock(mu_);
      started_.push_back(Started{pending.wait, num_transfers_ - 1, there});
      has_started_ = true;
    } catch (const std::bad_alloc&) {
      // There is no room to remember it.
      static_cast<void>(there->Wait());
      WaitRegistry::Global().End(pending.wait);
    }
    wake_.notify_all();
  }
  pending.transfer.done(status, there);
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
  // What this rank has sent may be under way on another, whose GPU is behind.
  // One that never started anything waits for all that it sends.
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
    // Before the mark: a call that looks at a device may be kept waiting by
    // what the missing rank keeps waiting.
    if (looks % kLooksForTheDead == 0) {
      const ev::Status alive = carrier_->CheckRanks(first.number);
      if (!alive.ok()) Fail(alive);
    }
    if (!first.there->IsReached()) {
      std::this_thread::sleep_for(kLookAtStarted);
      continue;
    }
    WaitRegistry::Global().End(first.wait);
    std::lock_guard<std::mutex> lock(mu_);
    started_.pop_front();  // only now: Drain looks at it
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
  EV_RETURN_IF_ERROR(carrier_->Tell(
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
    std::shared_ptr<StreamMark> after;  // null: it is ready
  };
  std::vector<Candidate> candidates;
  for (;;) {
    candidates.clear();
    for (const Pending& pending : pending_) {
      const Transfer& transfer = pending.transfer;
      const bool is_sum = transfer.reduction != nullptr;
      Candidate candidate;
      candidate.name_hash = pending.name_hash;
      if (carrier_->TellWaitsForStarted() ||
          (is_sum && ExpectedGradient::IsAny())) {
        candidate.after = is_sum ? transfer.reduction->after : transfer.after;
      }
      candidates.push_back(std::move(candidate));
    }
    // Without the lock: Fail has to get through whatever keeps a device's
    // answer waiting.
    lock->unlock();
    const auto ready =
        std::find_if(candidates.begin(), candidates.end(),
                     [](const Candidate& c) { return IsReached(c.after); });
    // Not wait_for: its pthread_cond_clockwait came with glibc 2.30, and the
    // wheel is to run with 2.17.
    if (ready == candidates.end()) std::this_thread::sleep_for(kLook);
    lock->lock();
    if (!failed_.ok()) return 0;
    if (ready != candidates.end()) return ready->name_hash;
  }
}

ev::Status CarrierQueue::Reduce(const Reduction& reduction,
                                std::shared_ptr<StreamMark>* there) {
  const int num_ranks = carrier_->num_ranks();
  const std::vector<int64_t> mine(num_ranks, SignatureOf(reduction));
  const std::vector<int64_t> bytes(num_ranks, sizeof(int64_t));
  std::vector<int64_t> all(num_ranks);
  EV_RETURN_IF_ERROR(
      carrier_->Tell(Bytes(mine.data()), bytes, Bytes(all.data()), bytes));
  for (int r = 0; r < num_ranks; ++r) {
    if (all[r] == mine[r]) continue;
    return ev::InvalidArgument(
        "rank " + std::to_string(r) + " sums other gradients than rank " +
        std::to_string(carrier_->rank()) +
        ": another number of them, other shapes, another type or scale");
  }
  return carrier_->AllReduce(reduction, there);
}

ev::Status CarrierQueue::Carry(const Transfer& transfer,
                               std::shared_ptr<StreamMark>* there) {
  if (transfer.reduction != nullptr) return Reduce(*transfer.reduction, there);
  const int num_ranks = carrier_->num_ranks();
  std::vector<int64_t> received(num_ranks);
  const std::vector<int64_t> size_bytes(num_ranks, sizeof(int64_t));
  EV_RETURN_IF_ERROR(carrier_->Tell(Bytes(transfer.send_bytes.data()),
                                    size_bytes, Bytes(received.data()),
                                    size_bytes));
  char* out = nullptr;
  EV_RETURN_IF_ERROR(transfer.allocate(received, &out));
  if (transfer.in_cpu_memory) {
    return carrier_->Tell(transfer.send, transfer.send_bytes, out, received);
  }
  return carrier_->StartAllToAll(transfer.send, transfer.send_bytes,
                                 transfer.after, out, received,
                                 transfer.when_failed, there);
}

void CarrierQueue::Run() {
  for (;;) {
    Pending pending;
    ev::Status status = ev::CatchBadAlloc([&] { return Next(&pending); });
    if (status.ok()) {
      std::shared_ptr<StreamMark> there;
      status =
          ev::CatchBadAlloc([&] { return Carry(pending.transfer, &there); });
      if (!status.ok()) {
        // The others wait for what this rank does not take part in any more.
        Fail(status);
        // Nothing may be under way on memory that done gives back.
        carrier_->End();
        // If this rank was told to end, that is why, and not what the carrier
        // says about it.
        std::lock_guard<std::mutex> lock(mu_);
        status = failed_;
        there.reset();
      }
      End(std::move(pending), status, std::move(there));
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
