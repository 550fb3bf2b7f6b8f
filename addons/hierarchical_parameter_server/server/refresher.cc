// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/refresher.h"

#include <algorithm>
#include <new>
#include <utility>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/tasks.h"

namespace hps {
namespace {

std::chrono::steady_clock::duration Seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

// RefreshPart, with std::bad_alloc as a status; the caller counts errors.
ev::Status PartOrNoMemory(ServedTable* table, CacheReview* review,
                          int64_t* rows) {
  try {
    return RefreshPart(table, review, rows);
  } catch (const std::bad_alloc&) {
    return ev::ResourceExhausted("table " + table->tag() +
                                 ": no memory for a part of its cache's rows");
  }
}

}  // namespace

ev::Status RefreshPart(ServedTable* table, CacheReview* review, int64_t* rows) {
  *rows = 0;
  std::vector<int64_t> keys;
  EV_RETURN_IF_ERROR(review->Next(&keys));
  const int64_t count = static_cast<int64_t>(keys.size());
  if (count == 0) return ev::Status::OK();
  std::vector<float> read(count * table->config().format().width());
  std::vector<int64_t> gone(count);
  Tiers::Found found;
  ev::Serial serial;
  EV_RETURN_IF_ERROR(table->tiers()->Read(keys, read.data(), gone.data(),
                                          &found, &serial,
                                          Tiers::Purpose::kRefresh));
  EV_RETURN_IF_ERROR(review->Renew(
      read.data(), ev::Span<const int64_t>(gone.data(), found.nowhere)));
  *rows = count;
  return ev::Status::OK();
}

Refresher::Refresher() : thread_([this] { Work(); }) {}

Refresher::~Refresher() {
  {
    std::lock_guard<std::mutex> lock(mu_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Refresher::Add(const std::vector<std::shared_ptr<ServedTable>>& tables,
                    double delay, double interval) {
  const Clock::time_point first = Clock::now() + Seconds(delay + interval);
  std::lock_guard<std::mutex> lock(mu_);
  for (const std::shared_ptr<ServedTable>& table : tables) {
    added_.emplace_back();
    added_.back().table = table;
    added_.back().interval = Seconds(interval);
    added_.back().due = first;
  }
  changed_.notify_all();
}

bool Refresher::Step(Walk* walk) {
  // If this becomes the last reference, the table is destroyed on this thread.
  const std::shared_ptr<ServedTable> table = walk->table.lock();
  if (table == nullptr || !table->cache()->holds_rows()) return false;
  int64_t rows = 0;
  ev::Status status;
  if (walk->review == nullptr) {
    walk->start = Clock::now();
    status = ev::CatchBadAlloc(
        [&] { return table->cache()->Review(&walk->review); });
  }
  const Clock::time_point begin = Clock::now();
  if (status.ok()) {
    status = PartOrNoMemory(table.get(), walk->review.get(), &rows);
  }
  const Clock::time_point end = Clock::now();
  table->refreshes()->Add(rows, status);
  if (status.ok() && rows > 0) {
    walk->due = end + (end - begin);
    return true;
  }
  walk->review.reset();
  if (status.ok()) table->refreshes()->EndWalk(end - walk->start);
  walk->due = std::max(end, walk->start + walk->interval);
  return true;
}

void Refresher::Work() {
  std::list<Walk> walks;
  std::unique_lock<std::mutex> lock(mu_);
  for (;;) {
    walks.splice(walks.end(), added_);
    if (stop_) return;
    walks.remove_if([](const Walk& walk) { return walk.table.expired(); });
    if (walks.empty()) {
      changed_.wait(lock, [this] { return stop_ || !added_.empty(); });
      continue;
    }
    const auto next = std::min_element(
        walks.begin(), walks.end(),
        [](const Walk& a, const Walk& b) { return a.due < b.due; });
    const Clock::time_point now = Clock::now();
    if (next->due > now) {
      // Waits on the system clock, which every platform supports. Looks for
      // destroyed tables every minute.
      const Clock::duration wait =
          std::min<Clock::duration>(next->due - now, std::chrono::minutes(1));
      changed_.wait_until(
          lock,
          std::chrono::system_clock::now() +
              std::chrono::duration_cast<std::chrono::system_clock::duration>(
                  wait),
          [this] { return stop_ || !added_.empty(); });
      continue;
    }
    lock.unlock();
    const bool stays = Step(&*next);
    if (!stays) walks.erase(next);
    lock.lock();
  }
}

}  // namespace hps
