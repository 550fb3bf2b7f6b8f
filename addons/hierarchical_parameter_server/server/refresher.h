// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// refresh_interval: a thread that reads the rows of caches from the tiers again
// and again, so that what another process has changed in a shared database
// shows here. Updates of this process need none of it: they are written
// through.
//
// Rows are read and overwritten part by part (CacheReview), a few megabytes at
// a time, and after each part the thread rests as long as the part took: it
// uses half of a processor and half of a database's connection at most. Where a
// walk takes longer than the interval the next one begins at once.
//
// A row that no tier has any more goes. Where a tier gives an error the rows
// stay as they are, the failure is counted, and the next walk begins an
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

// Reads the keys of the walk's next part from the tiers and puts them into the
// cache. *rows: how many keys these were; 0: the walk is over.
ev::Status RefreshPart(ServedTable* table, CacheReview* review, int64_t* rows);

// Thread-safe.
class Refresher {
 public:
  Refresher();
  // Ends after the part that is under way.
  ~Refresher();
  Refresher(const Refresher&) = delete;
  Refresher& operator=(const Refresher&) = delete;

  // Walks over the tables' caches every `interval` seconds, the first time
  // `delay` seconds and an interval from now. A table that nothing else holds
  // any more is left out.
  void Add(const std::vector<std::shared_ptr<ServedTable>>& tables,
           double delay, double interval);

 private:
  using Clock = std::chrono::steady_clock;
  struct Walk {
    std::weak_ptr<ServedTable> table;
    Clock::duration interval;
    Clock::time_point due;                // of what comes next
    Clock::time_point begun;              // where a walk is under way
    std::unique_ptr<CacheReview> review;  // null: none is
  };
  void Work();
  // Does a part of a walk, and says when the next one is due. false: the table
  // or its cache is gone.
  static bool Step(Walk* walk);

  std::mutex mu_;
  std::condition_variable changed_;
  std::list<Walk> added_;  // guarded by mu_; the thread takes them
  bool stop_ = false;      // guarded by mu_
  std::thread thread_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_REFRESHER_H_
