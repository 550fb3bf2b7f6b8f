// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// An open RocksDB store, and a table in one of its column families. A key is
// its 8 bytes in memory, a value the row's floats. The default family stores
// each table's format as FormatText under "hps_width/<tag>".

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_ROCKSDB_ROCKSDB_STORE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_ROCKSDB_ROCKSDB_STORE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/database/rocksdb/rocksdb_library.h"

namespace hps {

struct RocksDbOptions {
  std::string path;
  int num_threads = 16;  // background threads that write and merge files
  bool read_only = false;
  // Most keys in one read or insert of the library; Remove writes all at once.
  int64_t max_batch_size = 65536;
  // Cache for file blocks, shared by all tables.
  int64_t block_cache_bytes = int64_t{64} << 20;
  // Limit of a Fetch; RocksDB checks the clock before each file read. 0: no
  // limit.
  int64_t fetch_timeout_ms = 0;
};

// Thread-safe. Closed when the database and all its tables are destroyed.
class RocksDbStore {
 public:
  static ev::Status Open(const RocksDbOptions& options,
                         std::shared_ptr<RocksDbStore>* store);
  ~RocksDbStore();
  RocksDbStore(const RocksDbStore&) = delete;
  // Checks that the store in a folder can be read, or created if it does not
  // exist and read_only is false. Creates and locks nothing.
  static ev::Status Reach(const std::string& path, bool read_only);

  using Family = RocksDbLibrary::Family;
  // Families found when the store was opened, except the default one. Used by
  // RocksDbDatabase, under its mutex.
  std::map<std::string, Family*>* families() { return &families_; }
  ev::Status CreateFamily(const std::string& name, Family** family);
  ev::Status DropFamily(Family* family);
  // format->dim is 0 if none is stored.
  ev::Status ReadFormat(const std::string& tag, RowFormat* format);
  // *width is 0 if the family is empty.
  ev::Status WidthOfFirstRow(Family* family, int* width);
  ev::Status WriteFormat(const std::string& tag, const RowFormat& format);
  ev::Status RemoveFormat(const std::string& tag);
  // Flushes all writes so that they survive a crash of the machine.
  ev::Status Sync();

  const RocksDbLibrary& library() const { return *library_; }
  RocksDbLibrary::Db* db() const { return db_; }
  const RocksDbLibrary::ReadOptions* reads() const { return reads_; }
  const RocksDbLibrary::WriteOptions* writes() const { return writes_; }
  const RocksDbOptions& options() const { return options_; }
  // Converts an error to a status and frees it; null is OK. Unavailable: a
  // deadline has passed.
  ev::Status Take(char* error) const;

 private:
  RocksDbStore(const RocksDbLibrary* library, const RocksDbOptions& options)
      : library_(library), options_(options) {}
  ev::Status Open();

  const RocksDbLibrary* const library_;
  const RocksDbOptions options_;
  RocksDbLibrary::Options* rocks_options_ = nullptr;
  RocksDbLibrary::ReadOptions* reads_ = nullptr;
  RocksDbLibrary::WriteOptions* writes_ = nullptr;
  RocksDbLibrary::Db* db_ = nullptr;
  Family* default_family_ = nullptr;
  std::map<std::string, Family*> families_;
};

class RocksDbTable : public Table {
 public:
  RocksDbTable(std::shared_ptr<RocksDbStore> store,
               RocksDbLibrary::Family* family, std::string tag,
               const RowFormat& format);
  ~RocksDbTable() override;

  const std::string& tag() const override { return tag_; }
  const RowFormat& format() const override { return format_; }
  ev::Status Fetch(ev::Span<const int64_t> keys, Positions wanted, float* rows,
                   int64_t* missing, int64_t* num_missing,
                   ev::Parallel* parallel) override;
  ev::Status Insert(ev::Span<const int64_t> keys, const float* rows,
                    ev::Parallel* parallel) override;
  ev::Status Remove(ev::Span<const int64_t> keys, int64_t* removed) override;
  // Reads every key: RocksDB keeps no count.
  ev::Status Count(int64_t* rows) override;
  ev::Status ForEach(const Visit& visit) override;
  // `rows` is RocksDB's estimate, which counts recently replaced rows more than
  // once.
  ev::Status Statistics(TableStatistics* statistics) override;

  // Removes the family; every later call returns an error.
  ev::Status Drop();
  // Whether the family is gone; then also true if Drop returned an error.
  bool is_dropped() const { return is_dropped_.load(); }

 private:
  struct Part;
  ev::Status Named(const ev::Status& status) const;
  ev::Status CheckWritable(const char* what) const;
  ev::Status CheckNotDropped() const;
  ev::Status FetchPart(const RocksDbLibrary::ReadOptions* reads,
                       ev::Span<const int64_t> keys, Positions wanted,
                       int64_t begin, int64_t end, float* rows,
                       uint8_t* is_found) const;
  ev::Status Walk(
      const std::function<ev::Status(int64_t key, const char* row)>& one) const;

  const std::shared_ptr<RocksDbStore> store_;
  RocksDbLibrary::Family* const family_;
  const std::string tag_;
  const RowFormat format_;
  const int width_;
  std::atomic<bool> is_dropped_{false};
  std::atomic<int64_t> inserted_{0};
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_ROCKSDB_ROCKSDB_STORE_H_
