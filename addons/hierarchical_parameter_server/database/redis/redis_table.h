// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A table whose rows are in Redis.
//
//   hash                       field      value
//   hps_et{<tag>/p<i>}v        key        the row, 4 * width bytes
//                              n          how often partition i has changed
//   hps_et{<tag>/p<i>}t        key        when or how often the row was used
//   hps_tables                 tag        "<width> <number of partitions>"
//
// A key is in partition i = hash(key) mod num_partitions. Both hashes of a
// partition are on one node, because of the braces.
//
// LOST ROWS. A server that was killed may come back empty, or with the rows of
// its last snapshot; one that is short of memory may drop a hash as a whole.
// Missing rows would then be served as rows that never were. So every change of
// a partition counts its field n up, every fetch reads n with the rows, and a
// table remembers the largest n that it has seen: a smaller one, or none, says
// that rows are lost. The upper half of n is the second in which the partition
// was made, so that one that was dropped and made anew is told from it.
//
// INSERTS read n before they store, so that nothing is stored, and n is not
// counted up to what was seen, where rows are lost. By a connection that has
// shown n once they need not: a server that comes back has closed it. The n
// that an insert counts up to must be larger than all that were seen.

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

// The name of a partition's hash: kind 'v' or 't'.
std::string PartitionHash(const std::string& tag, int partition, char kind);

class RedisTable : public Table {
 public:
  RedisTable(std::shared_ptr<RedisClient> client, std::string tag, int width);

  // Reads what partitions there are, and makes those that are not: all of a
  // table that is new, and of a cache those that were lost. Otherwise DataLoss.
  ev::Status Open(bool is_new);

  const std::string& tag() const override { return tag_; }
  int width() const override { return width_; }
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
    // By which n was read and no rows were lost.
    KnownConnections known;
    std::mutex evicts;
  };
  // Positions sorted by partition; within one in their order.
  struct Sorted {
    std::vector<int64_t> positions;
    std::vector<int64_t> begins;  // of each partition, and the end
    std::vector<int64_t> order;   // positions[i] is wanted[order[i]]
  };

  ev::Status Named(const ev::Status& status) const;
  void Sort(ev::Span<const int64_t> keys, Positions wanted,
            Sorted* sorted) const;
  // Compares n with what was seen before; *is_lost: the partition was emptied.
  // connection: by which n came.
  ev::Status CheckChanges(Partition* partition, int64_t seen, int64_t changes,
                          int64_t connection, const Deadline& deadline,
                          bool* is_lost);
  // After rows were stored and n counted up; *is_lost: the rows are gone.
  ev::Status CheckInsert(Partition* partition, int64_t seen,
                         const RedisCall& changes, bool* is_lost);
  ev::Status CheckPartitions(const Sorted& sorted);
  // Notes that rows were used, for the policies that ask.
  void AddUses(Partition* partition, std::vector<int64_t> keys,
               std::vector<std::unique_ptr<RedisRequest>>* requests) const;
  bool CountsUses() const;
  ev::Status RunAll(const std::vector<std::unique_ptr<RedisRequest>>& requests);
  ev::Status RunAll(const std::vector<std::unique_ptr<RedisRequest>>& requests,
                    const Deadline& deadline);
  // The ends of a call that begins now: of a Fetch, and of any other.
  Deadline FetchDeadline() const;
  Deadline CallDeadline() const;
  ev::Status CountUntil(const Deadline& deadline, int64_t* rows);
  // In redis_eviction.cc.
  ev::Status Evict(Partition* partition, int64_t rows);
  ev::Status LeastUsed(Partition* partition, int64_t count,
                       std::vector<int64_t>* keys);
  ev::Status SomeAtRandom(Partition* partition, int64_t count,
                          std::vector<int64_t>* keys);
  ev::Status Delete(Partition* partition, const std::vector<int64_t>& keys);

  const std::shared_ptr<RedisClient> client_;
  const std::string tag_;
  const int width_;
  std::vector<std::unique_ptr<Partition>> partitions_;
  std::atomic<int64_t> inserted_{0};
  std::atomic<int64_t> evicted_{0};
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_REDIS_TABLE_H_
