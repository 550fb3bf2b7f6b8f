// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/hash_map/hash_map_table.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <new>
#include <stdexcept>
#include <utility>

#include "addons/hierarchical_parameter_server/database/fetch_in_tasks.h"
#include "kernels/engine/base/task_errors.h"

namespace hps {
namespace {

// Number of keys whose slots are found before their rows are copied.
constexpr int kFoundAtOnce = 128;
// Bytes of rows to prefetch ahead of the copy: enough to cover the latency of
// memory.
constexpr int64_t kBytesAhead = 12 << 10;
// Cost of a search, in bytes of row copying. Fetches below kBytesForOthers
// finish before another thread would have woken up and done its share.
constexpr int64_t kBytesOfASearch = 512;
constexpr int64_t kBytesForOthers = 2 << 20;
// Rows written per exclusive lock.
constexpr int64_t kWriteAtOnce = 128;
// Fewer rows are not worth sorting by partition.
constexpr int64_t kSideBySide = 8192;
// Calls between two runs of Partition::LimitAges; a power of two.
constexpr uint32_t kLimitEvery = uint32_t{1} << 29;
static_assert(Partition::kOldestAge + kLimitEvery < UINT32_MAX / 2,
              "ages must not wrap around");

bool NeedsUse(const HashMapOptions& options) {
  return options.overflow_margin != std::numeric_limits<int64_t>::max() &&
         options.overflow_policy != EvictionPolicy::kRandom;
}

void Directly(const std::function<void()>& step) { step(); }

}  // namespace

HashMapTable::HashMapTable(const std::string& tag, const RowFormat& format,
                           const HashMapOptions& options)
    : tag_(tag),
      format_(format),
      width_(format.width()),
      options_(options),
      with_use_(NeedsUse(options)),
      placing_(ev::KeyedHash::OfProcess(), options.num_partitions) {
  for (int p = 0; p < options.num_partitions; ++p) {
    partitions_.push_back(
        std::make_unique<Partition>(p, width_, with_use_, &placing_));
  }
}

uint32_t HashMapTable::CountCalls(uint32_t calls) {
  uint32_t now = clock_.load(std::memory_order_relaxed);
  while (calls > 0) {
    const uint32_t step = std::min(calls, kLimitEvery - now % kLimitEvery);
    now = clock_.fetch_add(step, std::memory_order_relaxed);
    calls -= step;
    if (with_use_ && options_.overflow_policy == EvictionPolicy::kOldest &&
        now / kLimitEvery != (now + step) / kLimitEvery) {
      for (const auto& partition : partitions_) {
        SharedHold hold(&lock_);
        partition->LimitAges(now);
      }
    }
  }
  return now;
}

ev::Status HashMapTable::Fetch(ev::Span<const int64_t> keys, Positions wanted,
                               float* rows, int64_t* missing,
                               int64_t* num_missing, ev::Parallel* parallel) {
  const uint32_t now = with_use_ ? CountCalls(1) : 0;
  const int64_t row_bytes = width_ * static_cast<int64_t>(sizeof(float));
  ev::Serial alone;
  if (wanted.size() * (row_bytes + kBytesOfASearch) <= kBytesForOthers) {
    parallel = &alone;
  }
  *num_missing = FetchInTasks(wanted.size(), row_bytes, missing, parallel,
                              [&](int64_t begin, int64_t end, int64_t* list) {
                                return FetchPart(keys, wanted, begin, end, rows,
                                                 list, now);
                              });
  return ev::Status::OK();
}

int64_t HashMapTable::FetchPart(ev::Span<const int64_t> keys,
                                const Positions& wanted, int64_t begin,
                                int64_t end, float* rows, int64_t* missing,
                                uint32_t now) {
  // Finds all slots first, then copies the rows. A prefetch stalls when the CPU
  // has too many in flight; between searches it would stall these as well.
  struct Found {
    Segment* segment;
    int64_t slot;  // the group until it is searched
  };
  Found found[kFoundAtOnce];
  const int ahead = static_cast<int>(std::max<int64_t>(
      4, std::min<int64_t>(kFoundAtOnce, kBytesAhead / (width_ * 4))));
  int64_t num_missing = 0;
  SharedHold hold(&lock_);
  for (int64_t first = begin; first < end; first += kFoundAtOnce) {
    const int count =
        static_cast<int>(std::min<int64_t>(kFoundAtOnce, end - first));
    for (int i = 0; i < count; ++i) {
      const Place place = placing_.Of(keys[wanted[first + i]]);
      found[i].segment =
          partitions_[place.partition]->SegmentOf(place.fraction);
      found[i].slot = found[i].segment->GroupOf(place.fraction);
      found[i].segment->PrefetchGroup(found[i].slot);
    }
    for (int i = 0; i < count; ++i) {
      found[i].slot =
          found[i].segment->Find(keys[wanted[first + i]], found[i].slot);
    }
    // Not in a lambda: g++ 12 treats a function that only prefetches as having
    // no effect and drops its calls.
    for (int i = 0; i < std::min(ahead, count); ++i) {
      if (found[i].slot >= 0) found[i].segment->PrefetchRow(found[i].slot);
    }
    for (int i = 0; i < count; ++i) {
      const int next = i + ahead;
      if (next < count && found[next].slot >= 0) {
        found[next].segment->PrefetchRow(found[next].slot);
      }
      const int64_t position = wanted[first + i];
      if (found[i].slot < 0) {
        missing[num_missing++] = position;
        continue;
      }
      std::memcpy(rows + position * width_,
                  found[i].segment->row(found[i].slot), width_ * sizeof(float));
      if (with_use_) CountUse(&found[i].segment->use(found[i].slot), now);
    }
  }
  return num_missing;
}

void HashMapTable::CountUse(std::atomic<uint32_t>* use, uint32_t now) const {
  if (options_.overflow_policy == EvictionPolicy::kOldest) {
    use->store(now, std::memory_order_relaxed);
    return;
  }
  const uint32_t before = use->load(std::memory_order_relaxed);
  if (before != std::numeric_limits<uint32_t>::max()) {
    use->store(before + 1, std::memory_order_relaxed);
  }
}

bool HashMapTable::Store(const Place& place, int64_t key, const float* row,
                         uint32_t now) {
  Partition* const partition = partitions_[place.partition].get();
  Segment* const segment = partition->SegmentOf(place.fraction);
  const int64_t group = segment->GroupOf(place.fraction);
  int64_t slot = segment->Find(key, group);
  if (slot < 0) {
    if (segment->full()) return false;
    slot = segment->Add(key, group);
    partition->Counted(1);
  }
  std::memcpy(segment->row(slot), row, width_ * sizeof(float));
  if (with_use_ && options_.overflow_policy == EvictionPolicy::kOldest) {
    segment->use(slot).store(now, std::memory_order_relaxed);
  }
  return true;
}

void HashMapTable::InsertFew(ev::Span<const int64_t> keys, const float* rows) {
  const uint32_t now = CountCalls(1);
  const auto exclusively = [this](const std::function<void()>& step) {
    lock_.lock();
    step();
    lock_.unlock();
  };
  const int64_t count = static_cast<int64_t>(keys.size());
  for (int64_t i = 0; i < count;) {
    const int64_t end = std::min(count, i + kWriteAtOnce);
    bool stored = true;
    lock_.lock();
    while (i < end && (stored = Store(placing_.Of(keys[i]), keys[i],
                                      rows + i * width_, now))) {
      ++i;
      ++inserted_;
    }
    lock_.unlock();
    if (stored) continue;
    const Place place = placing_.Of(keys[i]);
    partitions_[place.partition]->Grow(place.fraction, exclusively);
  }
}

void HashMapTable::InsertSideBySide(ev::Span<const int64_t> keys,
                                    const float* rows, ev::Parallel* parallel) {
  const uint32_t now = CountCalls(1);
  const int64_t count = static_cast<int64_t>(keys.size());
  // Positions by partition, in order, so that the last row of a key is stored.
  std::vector<int64_t> begin(partitions_.size() + 1, 0), list(count);
  for (const int64_t key : keys) ++begin[placing_.Of(key).partition + 1];
  for (size_t p = 1; p < begin.size(); ++p) begin[p] += begin[p - 1];
  std::vector<int64_t> next(begin.begin(), begin.end() - 1);
  for (int64_t i = 0; i < count; ++i) {
    list[next[placing_.Of(keys[i]).partition]++] = i;
  }
  ev::TaskErrors errors;
  {
    const std::lock_guard<StripedLock> lock(lock_);
    parallel->For(static_cast<int64_t>(partitions_.size()), [&](int64_t p) {
      errors.Run(p, [&](int64_t) {
        for (int64_t at = begin[p]; at < begin[p + 1]; ++at) {
          const int64_t i = list[at];
          const Place place = placing_.Of(keys[i]);
          while (!Store(place, keys[i], rows + i * width_, now)) {
            partitions_[p]->Grow(place.fraction, Directly);
          }
        }
      });
    });
  }
  errors.Rethrow();
  inserted_ += count;
}

ev::Status HashMapTable::Insert(ev::Span<const int64_t> keys, const float* rows,
                                ev::Parallel* parallel) {
  std::lock_guard<std::mutex> writer(writer_);
  try {
    if (parallel->num_threads() > 1 &&
        static_cast<int64_t>(keys.size()) >= kSideBySide) {
      InsertSideBySide(keys, rows, parallel);
    } else {
      InsertFew(keys, rows);
    }
    EvictWherePartitionsAreTooLong();
  } catch (const std::bad_alloc&) {
    return ev::ResourceExhausted("database " + options_.name + ", table " +
                                 tag_ + ": no memory for more rows");
  }
  return ev::Status::OK();
}

void HashMapTable::EvictWherePartitionsAreTooLong() {
  const auto exclusively = [this](const std::function<void()>& step) {
    lock_.lock();
    step();
    lock_.unlock();
  };
  for (auto& partition : partitions_) {
    if (partition->count() <= options_.overflow_margin) continue;
    const int64_t target = std::max<int64_t>(
        1, static_cast<int64_t>(options_.overflow_margin *
                                options_.overflow_resolution_target));
    const uint32_t now = clock_.load(std::memory_order_relaxed);
    evicted_ += partition->Evict(options_.overflow_policy, target, now,
                                 uint64_t{now} << 32 | inserted_, exclusively);
  }
}

ev::Status HashMapTable::Remove(ev::Span<const int64_t> keys,
                                int64_t* removed) {
  std::lock_guard<std::mutex> writer(writer_);
  const auto fraction_of = [this](int64_t key) {
    return placing_.Of(key).fraction;
  };
  int64_t found = 0;
  const int64_t count = static_cast<int64_t>(keys.size());
  for (int64_t i = 0; i < count;) {
    lock_.lock();
    for (const int64_t end = std::min(count, i + kWriteAtOnce); i < end; ++i) {
      const Place place = placing_.Of(keys[i]);
      Partition* const partition = partitions_[place.partition].get();
      Segment* const segment = partition->SegmentOf(place.fraction);
      const int64_t slot =
          segment->Find(keys[i], segment->GroupOf(place.fraction));
      if (slot < 0) continue;
      segment->Remove(slot, fraction_of);
      partition->Counted(-1);
      ++found;
    }
    lock_.unlock();
  }
  if (removed != nullptr) *removed = found;
  return ev::Status::OK();
}

ev::Status HashMapTable::Count(int64_t* rows) {
  std::lock_guard<std::mutex> writer(writer_);
  *rows = 0;
  for (const auto& partition : partitions_) *rows += partition->count();
  return ev::Status::OK();
}

ev::Status HashMapTable::ForEach(const Visit& visit) {
  // Blocks writers, but not readers such as `visit` itself.
  std::lock_guard<std::mutex> writer(writer_);
  constexpr size_t kBatch = 1024;
  std::vector<int64_t> keys;
  std::vector<float> rows;
  for (const auto& partition : partitions_) {
    for (const auto& segment : partition->segments()) {
      for (int64_t slot = 0; slot < segment->slots(); ++slot) {
        if (!segment->Holds(slot)) continue;
        keys.push_back(segment->key(slot));
        rows.insert(rows.end(), segment->row(slot),
                    segment->row(slot) + width_);
        if (keys.size() < kBatch) continue;
        EV_RETURN_IF_ERROR(visit(keys, rows.data()));
        keys.clear();
        rows.clear();
      }
    }
  }
  return keys.empty() ? ev::Status::OK() : visit(keys, rows.data());
}

ev::Status HashMapTable::Statistics(TableStatistics* statistics) {
  std::lock_guard<std::mutex> writer(writer_);
  *statistics = TableStatistics();
  statistics->host_bytes = sizeof(*this);
  for (const auto& partition : partitions_) {
    statistics->rows += partition->count();
    statistics->host_bytes += partition->bytes();
  }
  statistics->inserted = inserted_;
  statistics->evicted = evicted_;
  return ev::Status::OK();
}

ev::Status HashMapTable::Reserve(int64_t rows) {
  std::lock_guard<std::mutex> writer(writer_);
  // At most what a partition keeps.
  const double mean = static_cast<double>(rows) / partitions_.size();
  const int64_t each =
      std::min(static_cast<int64_t>(mean), options_.overflow_margin);
  try {
    for (auto& partition : partitions_) {
      partition->Reserve(each, [this](const std::function<void()>& step) {
        lock_.lock();
        step();
        lock_.unlock();
      });
    }
  } catch (const std::bad_alloc&) {
    return ev::ResourceExhausted("database " + options_.name + ", table " +
                                 tag_ + ": no memory for " +
                                 std::to_string(rows) + " rows of " +
                                 std::to_string(width_) + " floats");
  }
  return ev::Status::OK();
}

}  // namespace hps
