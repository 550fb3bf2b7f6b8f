// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows of served tables in a GPU's memory, above the databases.
//
// A DeviceCache is one GPU's. It has tables; each has an index and a block of
// rows of its own, so that a table comes and goes alone, has the capacity that
// its configuration says, and any int64 may be a key of several tables without
// a hash deciding whose row is whose. What tables share is the memory of
// lookups under way, which is kept and given out by demand.
//
// EXACT. A cache stores rows that its caller read from the tiers below, and
// gives them back bit by bit. What it lacks it says; the caller asks the tiers
// and fills the answer:
//
//   std::unique_ptr<CacheLookup> lookup;
//   table->Lookup(batch, &lookup)            // rows that are here are written
//   while (misses are left) {
//     lookup->Stage(n, &room)                // the tiers write n rows there
//     lookup->Fill(n, unknown, parallel)     // to their places, and stored
//   }
//   lookup->Finish()
//
// STALE ROWS. A row that was read below before an update of its key, and comes
// up after it, is answered and not stored: Lookup notes how far the table's
// changes were, Refresh, Erase and Clear count as changes, and Fill stores no
// key that has changed since. REQUIRES of the caller: a row is changed in the
// tiers first and here afterwards.
//
// ROWS THAT CHANGE BELOW. A row that is changed in the tiers and not here, by
// another process, is found by a walk over what is here:
//
//   table->Review(&review)
//   while (review->Next(&keys), there are keys) {
//     the tiers read the rows of `keys`
//     review->Renew(rows, gone)
//   }
//
// Renew leaves alone what was stored or changed here after its Next: that row
// was read later than the walk's, or may have been.
//
// THREADS. All members of all classes but CacheLookup and CacheReview may be
// called by any number of threads at once. A lookup beside a change of a row
// gives the old row or the new one. Calls hold a lock only while they hand work
// to the device, and lookups run there side by side.
//
// ERRORS name the table. After an error rows have no meaning, and what is
// stored is what it was, or less.
//
// No CUDA here: make_device_cache.h finds a GPU, or the tests' stand-in.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_DEVICE_CACHE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_DEVICE_CACHE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace hps {

// The ids of a lookup, and where their rows go. An op kernel of a framework's
// GPU device gives ids and rows as the framework has them and its stream; it
// need not wait before the call, and what it gives the stream afterwards finds
// the rows.
struct CacheBatch {
  const void* ids = nullptr;  // [count] int64, or int32
  int64_t count = 0;
  bool long_ids = true;  // int64
  bool ids_on_device = false;
  float* rows = nullptr;  // [count, width]; on a device aligned to 16 bytes
  bool rows_on_device = false;
  // REQUIRED where ids or rows are on the device: the stream that they belong
  // to, of the cache's own GPU.
  const ev::DeviceStream* stream = nullptr;
};

// One lookup under way, of one thread. Destroyed before Finish it waits for
// what it has begun; the rows have no meaning then.
class CacheLookup {
 public:
  virtual ~CacheLookup() {}

  // Ascending positions of ids whose rows are not here, and their ids; host
  // memory that lives as long as this.
  virtual ev::Span<const int64_t> missing() const = 0;
  virtual ev::Span<const int64_t> missing_keys() const = 0;
  // Misses are filled in their order, at most so many at once.
  virtual int64_t max_fill() const = 0;

  // Host memory for the next `count` missing rows, until Fill.
  virtual ev::Status Stage(int64_t count, float** rows) = 0;
  // Puts the `count` staged rows to their places, and stores those that may be
  // stored. unknown: ascending numbers in [0, count) of rows that no tier has:
  // they are answered as staged and not stored. REQUIRES a Stage of `count`.
  virtual ev::Status Fill(int64_t count, ev::Span<const int64_t> unknown,
                          ev::Parallel* parallel) = 0;

  // All rows are there: in host memory when it returns, on the device for what
  // the stream is given from now on. Misses that were not filled are not
  // written.
  virtual ev::Status Finish() = 0;
};

// A walk over the rows of a table, of one thread, in parts of a few megabytes.
// Walking is no use of a row. It may outlive its table's other owners.
class CacheReview {
 public:
  virtual ~CacheReview() {}
  // The next keys that are here; none: the walk is over. A key that comes here
  // during the walk may be left out, one that goes and comes may come twice.
  virtual ev::Status Next(std::vector<int64_t>* keys) = 0;
  // rows + i * width: what the tiers have for the last Next's i-th key, read
  // after that Next; gone: ascending numbers of those that no tier has, which
  // go from here. Stores no key that is not here.
  virtual ev::Status Renew(const float* rows, ev::Span<const int64_t> gone) = 0;
};

// Which row goes when another needs its room. An id of a lookup is a use of its
// row, and so is the storing of a row.
enum class CachePolicy {
  kLru,  // whose last use is longest ago
  kLfu,  // that was used least often since it came; uses do not age
};

struct CacheTableOptions {
  std::string tag;
  int width = 0;
  // Rows. 0: nothing is stored; a lookup misses everything, and Fill still puts
  // rows to their places, on the device too.
  int64_t capacity = 0;
  // Whether rows go when others need their room. If not, rows without room are
  // not stored.
  bool evicts = true;
  CachePolicy policy = CachePolicy::kLru;  // where it evicts
  // The most ids of a lookup: decides how much memory an insert needs.
  int64_t max_keys = 0;
};

// Since the table was made, but rows and device_bytes.
struct CacheStatistics {
  int64_t rows = 0;          // that are here
  int64_t device_bytes = 0;  // that this table takes
  int64_t hits = 0, misses = 0;
  int64_t inserted = 0;  // rows stored
  int64_t evicted = 0;   // rows that gave room
  // Rows that were here when an update, or a review, brought another.
  int64_t refreshed = 0;
};

class CacheTable {
 public:
  virtual ~CacheTable() {}
  virtual const CacheTableOptions& options() const = 0;
  // False for ever: the capacity is 0, or the table was dropped. Every lookup
  // misses all of its ids then.
  virtual bool holds_rows() const = 0;

  // Writes the rows that are here to their places, and lists the other ids.
  // InvalidArgument: a stream is lacking, or memory of a device that is none of
  // the cache's.
  virtual ev::Status Lookup(const CacheBatch& batch,
                            std::unique_ptr<CacheLookup>* lookup) = 0;

  // Stores rows that were read from the tiers when changes() was `seen`: what
  // Fill does, without an answer. Of a key that repeats one row is stored.
  virtual ev::Status Insert(ev::Span<const int64_t> keys, const float* rows,
                            int64_t seen) = 0;
  // Counts Refresh, Erase and Clear.
  virtual int64_t changes() const = 0;

  // Overwrites the rows that are here, and stores no other. Of a key that
  // repeats the last row stays.
  virtual ev::Status Refresh(ev::Span<const int64_t> keys,
                             const float* rows) = 0;
  virtual ev::Status Erase(ev::Span<const int64_t> keys) = 0;
  virtual ev::Status Clear() = 0;

  // Begins a walk; more than one may be under way.
  virtual ev::Status Review(std::unique_ptr<CacheReview>* review) = 0;

  // Gives its memory back, for ever: it goes on as one of capacity 0.
  virtual void Drop() = 0;

  virtual ev::Status Statistics(CacheStatistics* statistics) = 0;
};

class DeviceCache {
 public:
  virtual ~DeviceCache() {}
  // For messages: "GPU 0", ...
  virtual const std::string& name() const = 0;
  // ResourceExhausted: no memory on the device; the message says how much is
  // wanted and how much is free. The table may outlive the cache.
  virtual ev::Status OpenTable(const CacheTableOptions& options,
                               std::shared_ptr<CacheTable>* table) = 0;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_DEVICE_CACHE_H_
