// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows in this process's memory: the types `hash_map` and `parallel_hash_map`.
//
// READS are pipelined: while the rows of some keys are copied, the next keys'
// rows and later keys' index lines are prefetched. A batch is split by size
// over the threads that the caller lends. Readers share one lock
// (striped_lock.h), taken for a few hundred keys at a time.
//
// WRITES exclude each other. They exclude readers only while a row is written
// or a pointer is changed; growth and eviction prepare their copies while
// readers go on. An Insert with more than one thread fills partitions in
// parallel and blocks readers: use it to load a table before serving.
//
// MEMORY: rows and keys at a load of 85 to 92 %, so at most 1.2 times their own
// bytes for tables of some thousand rows. With kLeastUsed or kOldest and a
// limit, four more bytes per row.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_HASH_MAP_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_HASH_MAP_H_

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/database/hash_map/partition.h"

namespace hps {

struct HashMapOptions {
  std::string name = "parallel_hash_map";
  int num_partitions = 8;  // in [1, 1024]
  // A partition with more rows evicts down to overflow_margin *
  // overflow_resolution_target.
  int64_t overflow_margin = std::numeric_limits<int64_t>::max();
  EvictionPolicy overflow_policy = EvictionPolicy::kRandom;
  double overflow_resolution_target = 0.8;
};

class HashMap : public Database {
 public:
  // InvalidArgument: an option is out of range.
  static ev::Status Make(const HashMapOptions& options,
                         std::unique_ptr<Database>* database);

  const std::string& name() const override { return options_.name; }
  Capabilities capabilities() const override;
  ev::Status OpenTable(const std::string& tag, RowFormat format,
                       std::shared_ptr<Table>* table) override;
  ev::Status DropTable(const std::string& tag) override;
  ev::Status ListTables(std::vector<TableInfo>* tables) override;

 private:
  explicit HashMap(const HashMapOptions& options) : options_(options) {}

  const HashMapOptions options_;
  std::mutex mu_;
  std::map<std::string, std::shared_ptr<Table>> tables_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_HASH_MAP_HASH_MAP_H_
