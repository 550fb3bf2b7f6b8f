// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// An open RocksDB, and a table's rows in one of its column families. A key is
// the 8 bytes that it has in memory, a value the row's floats. The default
// family has a table's width, in digits, under "hps_width/<tag>".

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
  int num_threads = 16;  // that write and merge files in the background
  bool read_only = false;
  // Keys of one read or write of the library.
  int64_t max_batch_size = 65536;
  // Memory for blocks of files, of all tables.
  int64_t block_cache_bytes = int64_t{64} << 20;
  // The longest that a Fetch may take; RocksDB looks at the clock before each
  // read of a file. 0: without a limit.
  int64_t fetch_timeout_ms = 0;
};

// Any thread. Closed when the database and all its tables are gone.
class RocksDbStore {
 public:
  static ev::Status Open(const RocksDbOptions& options,
                         std::shared_ptr<RocksDbStore>* store);
  ~RocksDbStore();
  RocksDbStore(const RocksDbStore&) = delete;
  // Whether the store of a folder can be read, or made where there is none and
  // read_only is false. Makes and locks nothing.
  static ev::Status Reach(const std::string& path, bool read_only);

  using Family = RocksDbLibrary::Family;
  // Families that were there when the store was opened, the default one not
  // among them. RocksDbDatabase takes what it uses, and no other thread looks.
  std::map<std::string, Family*>* families() { return &families_; }
  ev::Status CreateFamily(const std::string& name, Family** family);
  ev::Status DropFamily(Family* family);
  // 0: none was noted.
  ev::Status ReadWidth(const std::string& tag, int* width);
  // 0: the family has no row.
  ev::Status WidthOfFirstRow(Family* family, int* width);
  ev::Status WriteWidth(const std::string& tag, int width);
  ev::Status RemoveWidth(const std::string& tag);
  // All that was written is in files when the machine fails.
  ev::Status Sync();

  const RocksDbLibrary& library() const { return *library_; }
  RocksDbLibrary::Db* db() const { return db_; }
  const RocksDbLibrary::ReadOptions* reads() const { return reads_; }
  const RocksDbLibrary::WriteOptions* writes() const { return writes_; }
  const RocksDbOptions& options() const { return options_; }
  // OK of null; otherwise frees the error. Unavailable: a deadline has passed.
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
               RocksDbLibrary::Family* family, std::string tag, int width);
  ~RocksDbTable() override;

  const std::string& tag() const override { return tag_; }
  int width() const override { return width_; }
  ev::Status Fetch(ev::Span<const int64_t> keys, Positions wanted, float* rows,
                   int64_t* missing, int64_t* num_missing,
                   ev::Parallel* parallel) override;
  ev::Status Insert(ev::Span<const int64_t> keys, const float* rows,
                    ev::Parallel* parallel) override;
  ev::Status Remove(ev::Span<const int64_t> keys, int64_t* removed) override;
  // Reads every key: the library keeps no count.
  ev::Status Count(int64_t* rows) override;
  ev::Status ForEach(const Visit& visit) override;
  // rows is RocksDB's estimate, which counts a row that was replaced lately
  // more than once.
  ev::Status Statistics(TableStatistics* statistics) override;

  // Removes the family; from now on every call is an error.
  ev::Status Drop();

 private:
  struct Part;
  ev::Status Named(const ev::Status& status) const;
  ev::Status CheckWritable(const char* what) const;
  ev::Status CheckThere() const;
  ev::Status FetchPart(const RocksDbLibrary::ReadOptions* reads,
                       ev::Span<const int64_t> keys, Positions wanted,
                       int64_t begin, int64_t end, float* rows,
                       uint8_t* is_found) const;
  ev::Status Walk(
      const std::function<ev::Status(int64_t key, const char* row)>& one) const;

  const std::shared_ptr<RocksDbStore> store_;
  RocksDbLibrary::Family* const family_;
  const std::string tag_;
  const int width_;
  std::atomic<bool> is_dropped_{false};
  std::atomic<int64_t> inserted_{0};
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_ROCKSDB_ROCKSDB_STORE_H_
