// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/rocksdb/rocksdb_database.h"

#include <utility>

namespace hps {
namespace {

ev::Status Check(const char* key, int64_t value, int64_t largest) {
  if (value >= 1 && value <= largest) return ev::Status::OK();
  return ev::InvalidArgument("database rocks_db: " + std::string(key) +
                             ": expected 1 to " + std::to_string(largest) +
                             ", got " + std::to_string(value));
}

}  // namespace

ev::Status RocksDbDatabase::Open(const RocksDbOptions& options,
                                 std::unique_ptr<Database>* database) {
  EV_RETURN_IF_ERROR(Check("num_threads", options.num_threads, 1024));
  EV_RETURN_IF_ERROR(
      Check("max_batch_size", options.max_batch_size, int64_t{1} << 30));
  EV_RETURN_IF_ERROR(
      Check("block_cache_bytes", options.block_cache_bytes, int64_t{1} << 50));
  if (options.path.empty()) {
    return ev::InvalidArgument(
        "database rocks_db: path: expected a folder, got ''");
  }
  std::shared_ptr<RocksDbStore> store;
  const ev::Status status = RocksDbStore::Open(options, &store);
  if (!status.ok()) {
    return ev::Status(status.code(), "database rocks_db: " + status.message());
  }
  std::unique_ptr<RocksDbDatabase> made(new RocksDbDatabase(std::move(store)));
  EV_RETURN_IF_ERROR(made->FindTables());
  *database = std::move(made);
  return ev::Status::OK();
}

ev::Status RocksDbDatabase::Named(const std::string& tag,
                                  const ev::Status& status) const {
  if (status.ok()) return status;
  return ev::Status(status.code(), "database rocks_db, table " + tag + ": " +
                                       status.message());
}

ev::Status RocksDbDatabase::FindTables() {
  auto* const families = store_->families();
  for (auto at = families->begin(); at != families->end();) {
    const std::string tag = at->first;
    RowFormat format;
    // Families with other names are not ours and stay untouched.
    if (CheckTable(name_, tag, 1).ok()) {
      EV_RETURN_IF_ERROR(Named(tag, store_->ReadFormat(tag, &format)));
      if (format.dim == 0) {
        // Another program wrote it, so the width is that of its first row.
        EV_RETURN_IF_ERROR(
            Named(tag, store_->WidthOfFirstRow(at->second, &format.dim)));
      }
    }
    if (format.dim == 0) {
      ++at;
      continue;
    }
    tables_[tag] =
        std::make_shared<RocksDbTable>(store_, at->second, tag, format);
    at = families->erase(at);
  }
  return ev::Status::OK();
}

Capabilities RocksDbDatabase::capabilities() const {
  Capabilities capabilities;
  capabilities.persistent = true;
  capabilities.read_only = store_->options().read_only;
  return capabilities;
}

ev::Status RocksDbDatabase::OpenTable(const std::string& tag, RowFormat format,
                                      std::shared_ptr<Table>* table) {
  EV_RETURN_IF_ERROR(CheckTable(name_, tag, format));
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = tables_.find(tag);
  if (found != tables_.end()) {
    EV_RETURN_IF_ERROR(
        Named(tag, CheckFormat(found->second->format(), format)));
    *table = found->second;
    return ev::Status::OK();
  }
  if (store_->options().read_only) {
    return Named(tag, ev::NotFound("there is no such table in " +
                                   store_->options().path +
                                   ", and read_only forbids creating it"));
  }
  // Writes the format first: a family without one would get that of its first
  // row.
  EV_RETURN_IF_ERROR(Named(tag, store_->WriteFormat(tag, format)));
  RocksDbLibrary::Family* family = nullptr;
  auto* const families = store_->families();
  const auto empty = families->find(tag);
  if (empty != families->end()) {
    family = empty->second;
    families->erase(empty);
  } else {
    EV_RETURN_IF_ERROR(Named(tag, store_->CreateFamily(tag, &family)));
  }
  auto made = std::make_shared<RocksDbTable>(store_, family, tag, format);
  tables_[tag] = made;
  *table = std::move(made);
  return ev::Status::OK();
}

ev::Status RocksDbDatabase::DropTable(const std::string& tag) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = tables_.find(tag);
  if (found == tables_.end()) {
    return Named(tag, ev::NotFound("there is no such table"));
  }
  const ev::Status status = found->second->Drop();
  // Also if the table is gone and only its format could not be removed, which
  // OpenTable writes anew.
  if (found->second->is_dropped()) tables_.erase(found);
  return status;
}

ev::Status RocksDbDatabase::ListTables(std::vector<TableInfo>* tables) {
  std::lock_guard<std::mutex> lock(mutex_);
  tables->clear();
  for (const auto& table : tables_) {
    TableInfo info;
    info.tag = table.first;
    info.format = table.second->format();
    tables->push_back(std::move(info));
  }
  return ev::Status::OK();
}

}  // namespace hps
