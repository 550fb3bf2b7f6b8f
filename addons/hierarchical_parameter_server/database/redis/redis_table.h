// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A table whose rows are in Redis.
//
//   hash                       field      value
//   hps_et{<tag>/p<i>}v        key        the row, 4 * width bytes
//                              n          number of changes of partition i
//   hps_et{<tag>/p<i>}t        key        when or how often the row was used
//   hps_tables                 tag        "<width> <number of partitions>", and
//                                         of packed rows " <type> <dim>"
//
// A key is in partition i = hash(key) mod num_partitions. The braces put both
// hashes of a partition on one node.
//
// LOST ROWS. A server that was killed may restart empty or with the rows of its
// last snapshot; one that is short of memory may evict a whole hash. A lookup
// would then take the lost rows for keys that never existed. So every change of
// a partition increments its field n, every fetch reads n together with the
// rows, and the table remembers the largest n seen. A smaller n, or none, means
// that rows are lost. The upper half of n is the second in which the partition
// was created, so a partition that was dropped and created again is recognized.
//
// INSERTS read n before they store. Otherwise an insert into a partition with
// lost rows could store rows and raise n to the value seen, which would hide
// the loss. A connection that has returned an intact n needs no second check,
// since a restarted server would have closed it. After an insert, n must be
// larger than every n seen.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_REDIS_TABLE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_REDIS_TABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/database/redis/redis_client.h"

namespace hps {

// Name of a partition's hash; kind is 'v' or 't'.
std::string PartitionHash(const std::string& tag, int partition, char kind);

class RedisTable : public Table {
 public:
  RedisTable(std::shared_ptr<RedisClient> client, std::string tag,
             const RowFormat& format);

  // Reads which partitions exist and creates missing ones: all if the table is
  // new, and the lost ones if it is a cache. Otherwise missing partitions are
  // DataLoss.
  ev::Status Open(bool is_new);

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

 private:
  struct Partition {
    int number = 0;
    std::string values;
    std::string uses;
    int slot = 0;
    std::atomic<int64_t> seen{-1};  // the largest n
    // Connections over which an intact n was read.
    KnownConnections known;
    std::mutex evicts;
  };
  // Positions sorted by partition; within a partition in their original order.
  struct Sorted {
    std::vector<int64_t> positions;
    std::vector<int64_t> begins;  // start of each partition, and the end
    // positions[i] is element order[i] of the given positions
    std::vector<int64_t> order;
  };

  ev::Status Named(const ev::Status& status) const;
  void Sort(ev::Span<const int64_t> keys, Positions wanted,
            Sorted* sorted) const;
  // Compares n (`changes`) with the largest seen. *is_lost: rows were lost, and
  // the partition was emptied. connection: the one that delivered n.
  ev::Status CheckChanges(Partition* partition, int64_t seen, int64_t changes,
                          int64_t connection, const Deadline& deadline,
                          bool* is_lost);
  // Checks n after rows were stored and n was incremented. *is_lost: the rows
  // are gone.
  ev::Status CheckInsert(Partition* partition, int64_t seen,
                         const RedisCall& changes, bool* is_lost);
  ev::Status CheckPartitions(const Sorted& sorted);
  // Adds requests that record the use of rows, if the policy needs them.
  void AddUses(Partition* partition, std::vector<int64_t> keys,
               std::vector<std::unique_ptr<RedisRequest>>* requests) const;
  bool CountsUses() const;
  ev::Status RunAll(const std::vector<std::unique_ptr<RedisRequest>>& requests);
  ev::Status RunAll(const std::vector<std::unique_ptr<RedisRequest>>& requests,
                    const Deadline& deadline);
  // Deadlines of a call that starts now, a Fetch or any other call.
  Deadline FetchDeadline() const;
  Deadline CallDeadline() const;
  ev::Status CountUntil(const Deadline& deadline, int64_t* rows);
  // Defined in redis_eviction.cc.
  ev::Status Evict(Partition* partition, int64_t rows);
  ev::Status LeastUsed(Partition* partition, int64_t count,
                       std::vector<int64_t>* keys);
  ev::Status SomeAtRandom(Partition* partition, int64_t count,
                          std::vector<int64_t>* keys);
  ev::Status Delete(Partition* partition, const std::vector<int64_t>& keys);

  const std::shared_ptr<RedisClient> client_;
  const std::string tag_;
  const RowFormat format_;
  const int width_;
  std::vector<std::unique_ptr<Partition>> partitions_;
  std::atomic<int64_t> inserted_{0};
  std::atomic<int64_t> evicted_{0};
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_REDIS_TABLE_H_
