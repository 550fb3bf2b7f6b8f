// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The interface of a store of embedding rows: a hash map in this process,
// mapped files, Redis or RocksDB.
//
// A database holds tables. A table has a tag (hps_et.<model>.<table>), a format
// of rows (rows/row_format.h), and rows: an int64 key and a stored row of
// `width` floats, which are copied and never computed with. Every int64 is a
// valid key, including the smallest, the largest, -1 and 0.
//
// THREADS. All methods of both classes are thread-safe. A row is replaced as a
// whole: a fetch that runs during an insert returns the old row or the new one,
// never a mixture. There is no such guarantee across rows.
//
// ERRORS name the database and the tag. Unavailable: the store was not reached
// in time; a later call may reach it. After a failed Fetch, `rows` and
// `missing` are undefined. A failed Insert may have stored some of its rows,
// each of them whole.
//
// WAITING. A Fetch has the time limit of its database's options; RocksDB has
// none by default, and none for other calls. With Redis each round of commands
// has the limit; Insert, Remove and ForEach make several.
//
// Callers keep the Table that OpenTable returned, so lookups do not search by
// name. A Table stays valid after DropTable and after its database is
// destroyed. A dropped table in memory or in mapped files keeps its rows until
// its last user is gone; one of Redis or RocksDB is empty or returns errors.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_DATABASE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_DATABASE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/rows/row_format.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace hps {

// The positions to fetch in a batch of keys: all of them, or an ascending list.
class Positions {
 public:
  static Positions All(int64_t count) { return Positions(nullptr, count); }
  static Positions Of(const int64_t* list, int64_t count) {
    return Positions(list, count);
  }
  static Positions Of(ev::Span<const int64_t> list) {
    return Positions(list.data(), static_cast<int64_t>(list.size()));
  }
  int64_t size() const { return count_; }
  int64_t operator[](int64_t i) const {
    return list_ == nullptr ? i : list_[i];
  }
  bool all() const { return list_ == nullptr; }
  // Returns elements [begin, begin + count) of the list. REQUIRES: !all().
  Positions Part(int64_t begin, int64_t count) const {
    return Positions(list_ + begin, count);
  }

 private:
  Positions(const int64_t* list, int64_t count) : list_(list), count_(count) {
    static const int64_t kNone = 0;
    if (list == nullptr && count == 0) list_ = &kNone;
  }
  const int64_t* list_;
  int64_t count_;
};

struct TableStatistics {
  int64_t rows = 0;
  // Memory of this process, bookkeeping included; 0 if the rows are elsewhere.
  int64_t host_bytes = 0;
  // Counts since the table was opened.
  int64_t inserted = 0;  // rows stored, for new and existing keys
  int64_t evicted = 0;   // rows removed by a limit on the number of rows
};

class Table {
 public:
  virtual ~Table() {}
  virtual const std::string& tag() const = 0;
  virtual const RowFormat& format() const = 0;
  // Words (floats) of a stored row.
  int width() const { return format().width(); }

  // Fetches keys[p] for each of the given positions p. A row that exists is
  // copied to rows + p * width. Otherwise p is appended to `missing`, in
  // ascending order, and rows + p * width is not written. *num_missing is the
  // length of `missing`, which must have room for all given positions and may
  // be their list itself. Keys may repeat. The work may be split over
  // parallel's threads; ev::Serial (kernels/engine/base/parallel.h) has none.
  virtual ev::Status Fetch(ev::Span<const int64_t> keys, Positions wanted,
                           float* rows, int64_t* missing, int64_t* num_missing,
                           ev::Parallel* parallel) = 0;

  // Stores row rows + i * width under keys[i], replacing an existing row. If a
  // key repeats, its last row is stored.
  virtual ev::Status Insert(ev::Span<const int64_t> keys, const float* rows,
                            ev::Parallel* parallel) = 0;

  // Removes rows. *removed (may be null): how many of the keys existed.
  virtual ev::Status Remove(ev::Span<const int64_t> keys, int64_t* removed) = 0;

  virtual ev::Status Count(int64_t* rows) = 0;

  // Calls `visit` with batches of keys and their rows (contiguous, width floats
  // each) until every row has been visited once, or `visit` fails; its error is
  // returned. Rows stored or removed meanwhile may be visited or not. `visit`
  // may call Fetch on this table, but nothing else. Insert and Remove of other
  // threads may wait until the walk has ended.
  using Visit =
      std::function<ev::Status(ev::Span<const int64_t> keys, const float*)>;
  virtual ev::Status ForEach(const Visit& visit) = 0;

  virtual ev::Status Statistics(TableStatistics* statistics) = 0;

  // Hint: about this many rows will be stored. Allocates memory for them.
  virtual ev::Status Reserve(int64_t /*rows*/) { return ev::Status::OK(); }
};

// Properties of a database; constant over its lifetime.
struct Capabilities {
  bool remote = false;      // a call is a round trip to another process
  bool persistent = false;  // rows outlive the process (of mapped_files: those
                            // of the files)
  bool shared = false;      // other processes may read and change the rows
  bool read_only = false;   // Insert, Remove and DropTable fail
  bool may_evict = false;   // stored rows may be evicted
};

struct TableInfo {
  std::string tag;
  RowFormat format;
};

class Database {
 public:
  virtual ~Database() {}
  // The type in the configuration: "hash_map", "redis_cluster", ...
  virtual const std::string& name() const = 0;
  virtual Capabilities capabilities() const = 0;

  // Checks that the store responds. Unavailable: it does not.
  virtual ev::Status Reach() { return ev::Status::OK(); }

  // Opens the table of a tag, or creates it. InvalidArgument: the tag or the
  // format is invalid, or the table exists with another format; the message has
  // both. NotFound: the table does not exist and the database is
  // read-only.
  virtual ev::Status OpenTable(const std::string& tag, RowFormat format,
                               std::shared_ptr<Table>* table) = 0;
  // Removes the table and its rows. NotFound: it does not exist.
  virtual ev::Status DropTable(const std::string& tag) = 0;
  // Attributes are small values of a table that all processes of a shared
  // database see, by name. DropTable removes them. A database that is not
  // shared keeps none. ReadAttribute sets *value to "" if there is no such
  // attribute.
  virtual ev::Status ReadAttribute(const std::string& /*tag*/,
                                   const std::string& /*name*/,
                                   std::string* value) {
    value->clear();
    return ev::Status::OK();
  }
  virtual ev::Status WriteAttributes(
      const std::string& /*tag*/,
      const std::map<std::string, std::string>& /*attributes*/) {
    return ev::Status::OK();
  }
  virtual ev::Status RemoveAttributes(const std::string& /*tag*/) {
    return ev::Status::OK();
  }
  // Lists the tables, sorted by tag.
  virtual ev::Status ListTables(std::vector<TableInfo>* tables) = 0;
};

// Makes "hps_et.<model>.<table>". InvalidArgument: a part is empty, longer than
// 120 characters, or has characters other than letters, digits, '_' and '-'.
ev::Status MakeTag(const std::string& model, const std::string& table,
                   std::string* tag);

// Validates the arguments of OpenTable. InvalidArgument: the tag does not have
// the form that MakeTag returns, or the dim is not in [1, kMaxWidth].
constexpr int kMaxWidth = 65536;
ev::Status CheckTable(const std::string& database, const std::string& tag,
                      const RowFormat& format);
// InvalidArgument, with both formats: a table has another than the expected
// one.
ev::Status CheckFormat(const RowFormat& format, const RowFormat& expected);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_DATABASE_H_
