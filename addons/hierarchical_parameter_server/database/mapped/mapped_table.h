// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_MAPPED_MAPPED_TABLE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_MAPPED_MAPPED_TABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/files/table_directory.h"
#include "addons/hierarchical_parameter_server/files/table_index.h"

namespace hps {

class MappedTable : public Table {
 public:
  MappedTable(const std::string& database, const std::string& tag,
              const RowFormat& format);

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

  ev::Status Attach(const std::string& folder, KeyBits bits, std::string* note);

 private:
  // The state that Attach replaces as a whole.
  struct Content {
    std::unique_ptr<TableDirectory> directory;  // null: no files
    std::unique_ptr<TableIndex> index;
    // Rows that were stored, and keys (width 1) of the files that were removed;
    // null until the first.
    std::shared_ptr<Table> stored, removed;
    std::atomic<bool> changed{false};  // stored or removed is not empty
    // Number of visible rows; guarded by writer_.
    int64_t count = 0;
    // A lookup has found the index to be damaged.
    mutable std::atomic<bool> is_damaged{false};
    ev::Status CheckIndex() const;
  };

  std::shared_ptr<Content> Now() const { return std::atomic_load(&content_); }
  ev::Status MakeMemory(Content* content);
  static int64_t FindInFiles(const Content& content, int64_t key);
  int64_t FetchFromFiles(const Content& content, ev::Span<const int64_t> keys,
                         const Positions& wanted, int64_t begin, int64_t end,
                         float* rows, int64_t* missing) const;

  const std::string database_, tag_;
  const RowFormat format_;
  const int width_;
  std::mutex writer_;
  // accessed with atomic_load and atomic_store
  std::shared_ptr<Content> content_;
  int64_t inserted_ = 0;  // guarded by writer_
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_MAPPED_MAPPED_TABLE_H_
