// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The two locks of a table, both held for a whole call, neither per row.
//
// TableGate: five ways in.
//   shared    lookups and whatever else only reads
//   updating  what writes or inserts rows, and leaves the others where they are
//   frozen    reads that need the table to stay as it is (a delta), and the
//             taking of what a device has counted for it, before them
//   snapshot  reads of the table as it was when updates were let in again,
//             which keep what they need of it (a save; frozen_rows.h)
//   alone     what moves or removes rows (Initialize, widening, Erase, Import)
// Readers get along with all but the last; updates with readers, snapshots and
// each other; any number may keep a table frozen at once. A call that waits to
// be alone has preference, and so has a call that waits to freeze before
// updates: a stream of lookups cannot keep an eviction waiting, nor a stream of
// updates a save. Only while a table is frozen, readers pass the calls that
// wait to be alone, which must wait for the end of the freeze anyway; and so do
// readers and updates in a snapshot. A thread must never enter a gate that it
// is already in; SharedGates sees to that.
//
// The call that keeps the table frozen begins a snapshot, which is ended when
// no update is under way: what its begin and its end change, updates read
// without a lock.
//
// UpdateLock: makes concurrent updates of one row apply whole, at no cost while
// there is only one updating call. The first call becomes the solo updater and
// writes rows without any further lock (its rows are distinct, so its own tasks
// cannot meet). A call that comes meanwhile waits for the solo one and then
// works striped, together with all others that are waiting: each row is written
// under the mutex of its stripe. Under contention updates so run side by side;
// without it, which is nearly always, they pay two uncontended lock operations
// per table and call.
//
// Several tables: first all gates, then all update locks, each in the order of
// the tables' numbers. A thread that waits for a gate holds only gates of lower
// numbers, a thread that waits for an update lock holds all its gates, and a
// thread that is alone, or keeps a table frozen or in a snapshot, holds nothing
// else: no cycle can close. An update may wait for a snapshot's reader, which
// waits for updates only when it is through and has let all of them go.

#ifndef KERNELS_ENGINE_EMBEDDING_PARTS_TABLE_GATE_H_
#define KERNELS_ENGINE_EMBEDDING_PARTS_TABLE_GATE_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace ev {

class TableGate {
 public:
  void EnterShared() {
    std::unique_lock<std::mutex> lock(mu_);
    many_wait_.wait(lock, [this] {
      return !alone_ && (waiting_alone_ == 0 || frozen_ > 0 || snapshots_ > 0);
    });
    ++sharing_;
  }
  void LeaveShared() {
    std::lock_guard<std::mutex> lock(mu_);
    if (--sharing_ == 0) WakeFew();
  }
  void EnterUpdating() {
    std::unique_lock<std::mutex> lock(mu_);
    many_wait_.wait(lock, [this] {
      if (alone_ || frozen_ > 0 || ending_ > 0) return false;
      // A call that waits to freeze waits for calls that wait to be alone.
      return waiting_alone_ == 0 ? waiting_frozen_ == 0 : snapshots_ > 0;
    });
    ++updating_;
  }
  void LeaveUpdating() {
    std::lock_guard<std::mutex> lock(mu_);
    if (--updating_ == 0) WakeFew();
  }
  void EnterFrozen() {
    std::unique_lock<std::mutex> lock(mu_);
    ++waiting_frozen_;
    few_wait_.wait(lock, [this] {
      return !alone_ && updating_ == 0 && waiting_alone_ == 0;
    });
    --waiting_frozen_;
    ++frozen_;
    // Readers that had to wait behind a call that waits to be alone.
    many_wait_.notify_all();
  }
  void LeaveFrozen() {
    std::lock_guard<std::mutex> lock(mu_);
    if (--frozen_ > 0) return;
    WakeFew();
    many_wait_.notify_all();
  }
  // REQUIRES frozen, which it ends. begin() runs while no update and no other
  // begin or end runs.
  template <typename Begin>
  void BeginSnapshot(const Begin& begin) {
    std::lock_guard<std::mutex> lock(mu_);
    begin();
    ++snapshots_;
    --frozen_;
    many_wait_.notify_all();
  }
  // end(): as begin().
  template <typename End>
  void EndSnapshot(const End& end) {
    std::unique_lock<std::mutex> lock(mu_);
    ++ending_;
    few_wait_.wait(lock, [this] { return updating_ == 0; });
    --ending_;
    end();
    --snapshots_;
    WakeFew();
    many_wait_.notify_all();
  }
  void EnterAlone() {
    std::unique_lock<std::mutex> lock(mu_);
    ++waiting_alone_;
    // Updates that pass in a snapshot.
    if (snapshots_ > 0) many_wait_.notify_all();
    few_wait_.wait(lock, [this] {
      return !alone_ && sharing_ == 0 && updating_ == 0 && frozen_ == 0 &&
             snapshots_ == 0;
    });
    --waiting_alone_;
    alone_ = true;
  }
  void LeaveAlone() {
    std::lock_guard<std::mutex> lock(mu_);
    alone_ = false;
    WakeFew();
    many_wait_.notify_all();
  }

 private:
  void WakeFew() {
    if (waiting_alone_ + waiting_frozen_ + ending_ > 0) few_wait_.notify_all();
  }

  std::mutex mu_;
  // Readers and updates; calls that wait to be alone, to freeze, or to end a
  // snapshot.
  std::condition_variable many_wait_, few_wait_;
  int64_t sharing_ = 0, updating_ = 0, frozen_ = 0;
  int64_t snapshots_ = 0;
  int64_t waiting_alone_ = 0, waiting_frozen_ = 0, ending_ = 0;
  bool alone_ = false;
};

class SharedGate {
 public:
  explicit SharedGate(TableGate* gate) : gate_(gate) { gate_->EnterShared(); }
  ~SharedGate() { gate_->LeaveShared(); }
  SharedGate(const SharedGate&) = delete;
  SharedGate& operator=(const SharedGate&) = delete;

 private:
  TableGate* const gate_;
};

class UpdatingGate {
 public:
  explicit UpdatingGate(TableGate* gate) : gate_(gate) {
    gate_->EnterUpdating();
  }
  ~UpdatingGate() { gate_->LeaveUpdating(); }
  UpdatingGate(const UpdatingGate&) = delete;
  UpdatingGate& operator=(const UpdatingGate&) = delete;

 private:
  TableGate* const gate_;
};

class FrozenGate {
 public:
  explicit FrozenGate(TableGate* gate) : gate_(gate) { gate_->EnterFrozen(); }
  ~FrozenGate() { gate_->LeaveFrozen(); }
  FrozenGate(const FrozenGate&) = delete;
  FrozenGate& operator=(const FrozenGate&) = delete;

 private:
  TableGate* const gate_;
};

class ExclusiveGate {
 public:
  explicit ExclusiveGate(TableGate* gate) : gate_(gate) { gate_->EnterAlone(); }
  ~ExclusiveGate() { gate_->LeaveAlone(); }
  ExclusiveGate(const ExclusiveGate&) = delete;
  ExclusiveGate& operator=(const ExclusiveGate&) = delete;

 private:
  TableGate* const gate_;
};

class UpdateLock {
 public:
  static constexpr int kStripes = 64;

  enum class Mode { kSolo, kStriped };

  // Becomes the solo updater if there is no updater, else waits until there is
  // no solo one and joins the striped ones.
  Mode Lock() {
    std::unique_lock<std::mutex> lock(mu_);
    if (!solo_ && striped_ == 0 && waiting_ == 0) {
      solo_ = true;
      return Mode::kSolo;
    }
    ++waiting_;
    wait_.wait(lock, [this] { return !solo_; });
    --waiting_;
    ++striped_;
    return Mode::kStriped;
  }
  void Unlock(Mode mode) {
    std::lock_guard<std::mutex> lock(mu_);
    if (mode == Mode::kSolo) {
      solo_ = false;
      wait_.notify_all();
    } else {
      --striped_;
    }
  }

  // For striped updaters: hold at most one at a time, never across a wait.
  std::mutex* stripe(uint32_t handle) { return &stripes_[StripeOf(handle)]; }
  static int StripeOf(uint32_t handle) {
    return static_cast<int>(handle % kStripes);
  }

 private:
  std::mutex mu_;
  std::condition_variable wait_;
  bool solo_ = false;
  int striped_ = 0;
  int waiting_ = 0;
  std::mutex stripes_[kStripes];
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_PARTS_TABLE_GATE_H_
