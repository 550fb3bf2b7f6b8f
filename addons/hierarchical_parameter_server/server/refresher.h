// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Implements refresh_interval: a thread that periodically re-reads cached rows
// from the tiers, so that changes by other processes in a shared database
// become visible. Updates of this process do not need it, since they are
// written through to the cache.
//
// Rows are read and overwritten part by part (CacheReview), a few megabytes at
// a time. After each part the thread sleeps as long as the part took, so it
// uses at most half of a CPU core and half of a database connection. If a walk
// takes longer than the interval, the next one starts at once.
//
// A row that no tier has any more is removed from the cache. If a tier returns
// an error, the rows stay, the failure is counted, and the next walk starts one
// interval later.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_REFRESHER_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_REFRESHER_H_

#include <chrono>
#include <condition_variable>
#include <list>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/device_cache.h"
#include "addons/hierarchical_parameter_server/server/served_table.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Re-reads the walk's next part from the tiers into the cache. *rows: number of
// keys; 0: the walk is over.
ev::Status RefreshPart(ServedTable* table, CacheReview* review, int64_t* rows);

// Thread-safe.
class Refresher {
 public:
  Refresher();
  // Waits for the part in progress.
  ~Refresher();
  Refresher(const Refresher&) = delete;
  Refresher& operator=(const Refresher&) = delete;

  // Walks over the tables' caches every `interval` seconds, starting in `delay`
  // seconds plus one interval. Tables that are destroyed meanwhile are dropped.
  void Add(const std::vector<std::shared_ptr<ServedTable>>& tables,
           double delay, double interval);

 private:
  using Clock = std::chrono::steady_clock;
  struct Walk {
    std::weak_ptr<ServedTable> table;
    Clock::duration interval;
    Clock::time_point due;                // time of the next part or walk
    Clock::time_point start;              // start of the walk in progress
    std::unique_ptr<CacheReview> review;  // null if no walk is in progress
  };
  void Work();
  // Processes one part of a walk and sets when the next one is due. Returns
  // false if the table or its cache is gone.
  static bool Step(Walk* walk);

  std::mutex mu_;
  std::condition_variable changed_;
  std::list<Walk> added_;  // guarded by mu_; emptied by the thread
  bool stop_ = false;      // guarded by mu_
  std::thread thread_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_REFRESHER_H_
