// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What the server asks of a store of embedding rows, whether it is a hash map
// of this process, files that are mapped, a Redis or a RocksDB.
//
// A database has tables. A table has a tag (hps_et.<model>.<table>), a width,
// and rows: an int64 key and `width` floats. Every int64 is a key, the smallest
// and the largest, -1 and 0 included.
//
// THREADS. Every member of both classes may be called by any number of threads
// at once. A row is replaced as a whole: a fetch that runs beside an insert
// gives the old row or the new one, never a mixture. Nothing is promised about
// two rows.
//
// ERRORS. A call that fails names the database and the tag. Unavailable: what
// has the rows was not reached in time; a later call may reach it. A failed
// Fetch says nothing about rows and missing: the caller must not use them. A
// failed Insert may have stored some of its rows, each of them whole.
//
// WAITING. No call waits without a bound: a database that is not reached in
// time is an error.
//
// A caller keeps the Table that OpenTable gave it, so that a lookup does not
// search for a name. The Table stays valid after DropTable and after the
// database itself is gone: it then answers as an empty table or with an error.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_DATABASE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_DATABASE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace hps {

// The positions of a batch of keys that a fetch is asked for: all of them, or
// those of a list in ascending order.
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
  // Those of [begin, begin + count). REQUIRES: !all().
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
  // Memory of this process, bookkeeping included; 0 for one that has none.
  int64_t host_bytes = 0;
  // Since the table was opened.
  int64_t inserted = 0;  // rows stored, whether the key was there or not
  int64_t evicted = 0;   // rows that a limit on the number of rows removed
};

class Table {
 public:
  virtual ~Table() {}
  virtual const std::string& tag() const = 0;
  virtual int width() const = 0;

  // For each wanted position p: the row of keys[p] to rows + p * width, or p to
  // the list `missing`, in ascending order, and rows + p * width is not
  // touched. *num_missing is the list's length. `missing` has room for
  // wanted.size() positions and may be the memory of the wanted positions
  // themselves. Keys may repeat. The work may be shared out to parallel's
  // threads; Serial (kernels/engine/base/parallel.h) has none.
  virtual ev::Status Fetch(ev::Span<const int64_t> keys, Positions wanted,
                           float* rows, int64_t* missing, int64_t* num_missing,
                           ev::Parallel* parallel) = 0;

  // Stores the row rows + i * width under keys[i], in place of one that is
  // there. Of a key that repeats the last row stays.
  virtual ev::Status Insert(ev::Span<const int64_t> keys, const float* rows,
                            ev::Parallel* parallel) = 0;

  // *removed (may be null): how many of the keys were there.
  virtual ev::Status Remove(ev::Span<const int64_t> keys, int64_t* removed) = 0;

  virtual ev::Status Count(int64_t* rows) = 0;

  // Calls visit with batches of keys and their rows (one after the other, width
  // floats each) until all have been seen once or visit gives an error, which
  // is returned. Rows that are stored or removed meanwhile may be seen or not.
  // visit may call Fetch of the same table, and nothing that changes it.
  using Visit =
      std::function<ev::Status(ev::Span<const int64_t> keys, const float*)>;
  virtual ev::Status ForEach(const Visit& visit) = 0;

  virtual ev::Status Statistics(TableStatistics* statistics) = 0;

  // So many rows will come: a hint, for memory of the right size.
  virtual ev::Status Reserve(int64_t /*rows*/) { return ev::Status::OK(); }
};

// What a caller may rely on; fixed for the life of a database.
struct Capabilities {
  bool remote = false;      // a call costs a round trip to another process
  bool persistent = false;  // rows outlive the process
  bool shared = false;      // other processes may see and change the rows
  bool read_only = false;   // Insert, Remove, DropTable fail
  bool may_evict = false;   // a row that was stored may be gone later
};

struct TableInfo {
  std::string tag;
  int width = 0;
};

class Database {
 public:
  virtual ~Database() {}
  // "hash_map", "redis_cluster", ...: the type of the configuration.
  virtual const std::string& name() const = 0;
  virtual Capabilities capabilities() const = 0;

  // Whether what has the rows answers now. Unavailable: it does not.
  virtual ev::Status Reach() { return ev::Status::OK(); }

  // The table of that tag, which is created when there is none.
  // InvalidArgument: the tag or the width is none, or there is a table with
  // this tag and another width; the message names both widths. NotFound: it is
  // not there and the database is read-only.
  virtual ev::Status OpenTable(const std::string& tag, int width,
                               std::shared_ptr<Table>* table) = 0;
  // Removes the table and its rows. NotFound: there is none.
  virtual ev::Status DropTable(const std::string& tag) = 0;
  // Sorted by tag.
  virtual ev::Status ListTables(std::vector<TableInfo>* tables) = 0;
};

// "hps_et.<model>.<table>". InvalidArgument: a part is empty, longer than 120
// characters or has others than letters, digits, '_' and '-'.
ev::Status MakeTag(const std::string& model, const std::string& table,
                   std::string* tag);

// For OpenTable of every database. InvalidArgument: the tag has not the form
// that MakeTag gives, or the width is not in [1, kMaxWidth].
constexpr int kMaxWidth = 65536;
ev::Status CheckTable(const std::string& database, const std::string& tag,
                      int width);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_DATABASE_H_
