// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tables in a RocksDB store on the local disk, one column family each.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_ROCKSDB_ROCKSDB_DATABASE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_ROCKSDB_ROCKSDB_DATABASE_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/database/rocksdb/rocksdb_store.h"

namespace hps {

class RocksDbDatabase : public Database {
 public:
  // FailedPrecondition: RocksDB's library was not found. InvalidArgument: an
  // option is out of range. NotFound: the store does not exist and read_only is
  // set. Internal: RocksDB's own message, for example that another process has
  // the store open. Rows stored by Insert survive a crash of the process and of
  // the machine.
  static ev::Status Open(const RocksDbOptions& options,
                         std::unique_ptr<Database>* database);

  const std::string& name() const override { return name_; }
  Capabilities capabilities() const override;
  ev::Status OpenTable(const std::string& tag, RowFormat format,
                       std::shared_ptr<Table>* table) override;
  ev::Status DropTable(const std::string& tag) override;
  ev::Status ListTables(std::vector<TableInfo>* tables) override;

 private:
  explicit RocksDbDatabase(std::shared_ptr<RocksDbStore> store)
      : store_(std::move(store)) {}
  // Creates table objects for the existing families.
  ev::Status FindTables();
  ev::Status Named(const std::string& tag, const ev::Status& status) const;

  const std::string name_ = "rocks_db";
  const std::shared_ptr<RocksDbStore> store_;
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<RocksDbTable>> tables_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_ROCKSDB_ROCKSDB_DATABASE_H_
