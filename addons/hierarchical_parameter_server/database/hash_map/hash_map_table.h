// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_HASH_MAP_TABLE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_HASH_MAP_TABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/database/hash_map/hash_map.h"
#include "addons/hierarchical_parameter_server/database/hash_map/partition.h"
#include "addons/hierarchical_parameter_server/database/hash_map/striped_lock.h"

namespace hps {

class HashMapTable : public Table {
 public:
  HashMapTable(const std::string& tag, const RowFormat& format,
               const HashMapOptions& options);

  const std::string& tag() const override { return tag_; }
  const RowFormat& format() const override { return format_; }
  ev::Status Fetch(ev::Span<const int64_t> keys, Positions wanted, float* rows,
                   int64_t* missing, int64_t* num_missing,
                   ev::Parallel* parallel) override;
  ev::Status Insert(ev::Span<const int64_t> keys, const float* rows,
                    ev::Parallel* parallel) override;
  ev::Status Remove(ev::Span<const int64_t> keys, int64_t* removed) override;
  ev::Status Count(int64_t* rows) override;
  ev::Status ForEach(const Visit& visit) override;
  ev::Status Statistics(TableStatistics* statistics) override;
  ev::Status Reserve(int64_t rows) override;

  // Counts calls, as that many fetches without keys. Returns the number of the
  // next one, which wraps around.
  uint32_t CountCalls(uint32_t calls);

 private:
  int64_t FetchPart(ev::Span<const int64_t> keys, const Positions& wanted,
                    int64_t begin, int64_t end, float* rows, int64_t* missing,
                    uint32_t now);
  // Records that a reader used the row with this counter.
  void CountUse(std::atomic<uint32_t>* use, uint32_t now) const;
  void InsertFew(ev::Span<const int64_t> keys, const float* rows);
  void InsertSideBySide(ev::Span<const int64_t> keys, const float* rows,
                        ev::Parallel* parallel);
  // Stores a row if there is room; returns false if the segment must grow.
  bool Store(const Place& place, int64_t key, const float* row, uint32_t now);
  void EvictWherePartitionsAreTooLong();

  const std::string tag_;
  const RowFormat format_;
  const int width_;
  const HashMapOptions options_;
  const bool with_use_;
  const Placing placing_;
  std::mutex writer_;  // acquired before lock_
  StripedLock lock_;
  std::vector<std::unique_ptr<Partition>> partitions_;
  std::atomic<uint32_t> clock_{1};      // number of calls, modulo 2^32
  int64_t inserted_ = 0, evicted_ = 0;  // guarded by writer_
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_HASH_MAP_TABLE_H_
