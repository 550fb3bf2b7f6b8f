// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The two locks of a table. Both are held for a whole call; neither is per row.
//
// TableLock has five modes:
//
//   shared    lookups and other reads.
//   updating  calls that write or insert rows without moving others.
//   frozen    reads that need an unchanged table: a delta, the start of a
//             snapshot, or copying a device's counts to the metadata.
//   snapshot  reads of the table as it was at the end of a freeze; updates go
//             on, and rows that they change are copied first (frozen_rows.h).
//   alone     calls that move or remove rows (Initialize, widening, Erase,
//             Import).
//
// Readers run beside all modes except the last; updates run beside readers,
// snapshots and other updates. Any number of calls may keep a table frozen at
// once. A call that waits to be alone has priority, and a call that waits to
// freeze has priority over updates: lookups cannot starve an eviction, nor
// updates a save. There are two exceptions, because a call that waits to be
// alone cannot start during a freeze or a snapshot anyway: it does not keep out
// readers while the table is frozen, nor readers and updates during a snapshot.
// A thread must never take a table lock that it already holds; SharedTableLocks
// takes care of that.
//
// A snapshot is begun by a call that keeps the table frozen. Snapshots begin
// and end only while no update is in flight. So updates need no lock to read
// the data that the callbacks begin() and end() change.
//
// UpdateLock makes concurrent updates of one row apply whole, at no cost while
// there is only one updating call. The first call becomes the solo updater and
// writes rows without any further lock; its rows are distinct, so its own tasks
// do not conflict. A call that arrives meanwhile waits for the solo updater and
// then works striped, together with all other waiting calls: each row is
// written under the mutex of its stripe. So updates run in parallel under
// contention. Without it, which is nearly always, they pay two uncontended lock
// operations per table and call.
//
// A call on several tables takes first all table locks, then all update locks,
// each in the order of the tables' numbers. A thread that waits for a table
// lock holds only table locks with lower numbers. A thread that waits for an
// update lock holds all its table locks. A thread that is alone, or keeps a
// table frozen or in a snapshot, holds nothing else. So there is no deadlock.
// An update may wait for a snapshot's reader. The reader waits for updates only
// at the end of the snapshot, after it has released those that wait for it.

#ifndef KERNELS_ENGINE_EMBEDDING_PARTS_TABLE_LOCK_H_
#define KERNELS_ENGINE_EMBEDDING_PARTS_TABLE_LOCK_H_

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace ev {

class TableLock {
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
      // If a call waits to be alone, calls that wait to freeze cannot enter
      // before it, so an update need not give way to them.
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
    // Wakes readers that wait behind a call that waits to be alone.
    many_wait_.notify_all();
  }
  void LeaveFrozen() {
    std::lock_guard<std::mutex> lock(mu_);
    if (--frozen_ > 0) return;
    WakeFew();
    many_wait_.notify_all();
  }
  // Begins a snapshot and ends the freeze. begin() runs while no update and no
  // other begin() or end() runs. REQUIRES: frozen.
  template <typename Begin>
  void BeginSnapshot(const Begin& begin) {
    std::lock_guard<std::mutex> lock(mu_);
    begin();
    ++snapshots_;
    --frozen_;
    WakeFew();
    many_wait_.notify_all();
  }
  // Ends a snapshot. end() runs like begin().
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
    // Wakes updates, which may enter during a snapshot.
    if (snapshots_ > 0) many_wait_.notify_all();
    few_wait_.wait(lock, [this] {
      return !alone_ && sharing_ == 0 && updating_ == 0 && frozen_ == 0 &&
             snapshots_ == 0;
    });
    --waiting_alone_;
    alone_ = true;
  }
  // Like EnterAlone, but returns false during a snapshot, which may last.
  bool TryEnterAlone() {
    std::unique_lock<std::mutex> lock(mu_);
    ++waiting_alone_;
    few_wait_.wait(lock, [this] {
      return snapshots_ > 0 ||
             (!alone_ && sharing_ == 0 && updating_ == 0 && frozen_ == 0);
    });
    --waiting_alone_;
    if (snapshots_ == 0) {
      alone_ = true;
      return true;
    }
    WakeFew();
    many_wait_.notify_all();
    return false;
  }
  // Returns whether TryEnterAlone would return false.
  bool has_snapshot() {
    std::lock_guard<std::mutex> lock(mu_);
    return snapshots_ > 0;
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
  // many_wait_: readers and updates. few_wait_: calls that wait to be alone, to
  // freeze, or to end a snapshot.
  std::condition_variable many_wait_, few_wait_;
  int64_t sharing_ = 0, updating_ = 0, frozen_ = 0;
  int64_t snapshots_ = 0;
  int64_t waiting_alone_ = 0, waiting_frozen_ = 0, ending_ = 0;
  bool alone_ = false;
};

class SharedTableLock {
 public:
  explicit SharedTableLock(TableLock* table_lock) : table_lock_(table_lock) {
    table_lock_->EnterShared();
  }
  ~SharedTableLock() { table_lock_->LeaveShared(); }
  SharedTableLock(const SharedTableLock&) = delete;
  SharedTableLock& operator=(const SharedTableLock&) = delete;

 private:
  TableLock* const table_lock_;
};

class UpdatingTableLock {
 public:
  explicit UpdatingTableLock(TableLock* table_lock) : table_lock_(table_lock) {
    table_lock_->EnterUpdating();
  }
  ~UpdatingTableLock() { table_lock_->LeaveUpdating(); }
  UpdatingTableLock(const UpdatingTableLock&) = delete;
  UpdatingTableLock& operator=(const UpdatingTableLock&) = delete;

 private:
  TableLock* const table_lock_;
};

class FrozenTableLock {
 public:
  explicit FrozenTableLock(TableLock* table_lock) : table_lock_(table_lock) {
    table_lock_->EnterFrozen();
  }
  ~FrozenTableLock() { table_lock_->LeaveFrozen(); }
  FrozenTableLock(const FrozenTableLock&) = delete;
  FrozenTableLock& operator=(const FrozenTableLock&) = delete;

 private:
  TableLock* const table_lock_;
};

class ExclusiveTableLock {
 public:
  explicit ExclusiveTableLock(TableLock* table_lock) : table_lock_(table_lock) {
    table_lock_->EnterAlone();
  }
  ~ExclusiveTableLock() { table_lock_->LeaveAlone(); }
  ExclusiveTableLock(const ExclusiveTableLock&) = delete;
  ExclusiveTableLock& operator=(const ExclusiveTableLock&) = delete;

 private:
  TableLock* const table_lock_;
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

#endif  // KERNELS_ENGINE_EMBEDDING_PARTS_TABLE_LOCK_H_
