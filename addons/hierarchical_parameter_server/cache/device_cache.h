// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A cache of table rows in one GPU's memory, above the databases.
//
// A DeviceCache belongs to one GPU and holds one CacheTable per served table.
// Each CacheTable has its own index and row block. So tables come and go
// independently, each has the capacity of its configuration, and the same int64
// key may exist in several tables. Tables share only the scratch memory of
// lookups in flight.
//
// EXACT. A cache stores rows that its caller read from the tiers below, in
// their format (rows/row_format.h), and returns them bit by bit or unpacked:
// `rows` are stored rows everywhere but in a CacheBatch. A lookup lists the
// keys it misses; the caller reads these from the tiers and fills them in:
//
//   std::unique_ptr<CacheLookup> lookup;
//   table->Lookup(batch, &lookup)            // writes the cached rows
//   while (misses are left) {
//     lookup->Stage(n, &room)                // the tiers write n rows to room
//     lookup->Fill(n, unknown, parallel)     // outputs and caches these rows
//   }
//   lookup->Finish()
//
// STALE ROWS. Suppose that a key is updated after its row was read from a tier
// and before Fill. Fill then outputs the old row, but does not cache it: Lookup
// records the table's change count, Refresh, Erase and Clear increase it, and
// Fill does not store a key that changed in between. REQUIRES: the caller
// changes a row in the tiers first, then in the cache.
//
// ROWS CHANGED BY OTHERS. Another process may change a row in the tiers without
// a call to this cache. A review finds such rows by walking over the cached
// keys:
//
//   table->Review(&review)
//   while (review->Next(&keys), there are keys) {
//     the tiers read the rows of `keys`
//     review->Renew(rows, gone)
//   }
//
// Renew skips rows that were stored or changed in the cache after its Next,
// since they may be newer than what the review read.
//
// THREADS. All methods are thread-safe, except those of CacheLookup and
// CacheReview. A lookup that runs while a row changes returns the old row or
// the new one. Locks are held only while work is enqueued on the device, and
// lookups run concurrently on it.
//
// ERRORS name the table. After an error the output rows are undefined. After a
// failed Refresh, Erase or Clear the cache may still return old rows: call
// Drop.
//
// This header is free of CUDA. make_device_cache.h creates the GPU's cache, or
// the tests' stand-in.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_DEVICE_CACHE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_DEVICE_CACHE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/rows/row_format.h"
#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace hps {

// The ids of a lookup and the memory for their rows. The op kernel of a GPU
// device passes its tensors and its stream as they are: it need not synchronize
// before the call, and work enqueued on the stream afterwards sees the rows.
struct CacheBatch {
  const void* ids = nullptr;  // [count] int64, or int32
  int64_t count = 0;
  bool long_ids = true;  // int64
  bool ids_on_device = false;
  float* rows = nullptr;  // [count, dim]; on a device aligned to 16 bytes
  bool rows_on_device = false;
  // Required if ids or rows are on the device: the stream that uses them, on
  // the cache's own GPU.
  const ev::DeviceStream* stream = nullptr;
};

// One lookup in flight; for use by one thread. Destroying it before Finish
// waits for the work it started; the rows are undefined then.
class CacheLookup {
 public:
  virtual ~CacheLookup() {}

  // Missed ids: their positions in the batch, ascending, and the ids. Host
  // memory owned by this object.
  virtual ev::Span<const int64_t> missing() const = 0;
  virtual ev::Span<const int64_t> missing_keys() const = 0;
  // Most misses that one Stage and Fill may take. Misses are filled in order.
  virtual int64_t max_fill() const = 0;

  // Returns host memory for the next `count` missing rows, valid until Fill.
  virtual ev::Status Stage(int64_t count, float** rows) = 0;
  // Copies the `count` staged rows to the output and caches those that have not
  // changed. unknown: indices in [0, count), ascending, of rows that no tier
  // has; these are output as staged, but not cached. REQUIRES: a Stage of
  // `count` rows.
  virtual ev::Status Fill(int64_t count, ev::Span<const int64_t> unknown,
                          ev::Parallel* parallel) = 0;

  // Completes the output. Host rows are complete when it returns; device rows
  // are complete for work enqueued on the stream afterwards. Misses that were
  // not filled are not written.
  virtual ev::Status Finish() = 0;
};

// A walk over the cached rows of a table, a few megabytes at a time; for use by
// one thread. It does not count as a use of the rows (CachePolicy). It keeps
// the table alive.
class CacheReview {
 public:
  virtual ~CacheReview() {}
  // Returns the next cached keys; empty at the end of the walk. A key stored
  // during the walk may be left out; a key that is evicted and stored again may
  // be returned twice.
  virtual ev::Status Next(std::vector<int64_t>* keys) = 0;
  // Updates the cached rows of the keys that the last Next returned. rows + i *
  // width: the i-th key's row, read from the tiers after that Next. gone:
  // indices, ascending, of keys that no tier has; they are erased. Never stores
  // a key that is not cached.
  virtual ev::Status Renew(const float* rows, ev::Span<const int64_t> gone) = 0;
};

// Selects the row to evict when another needs its slot. A row is used when it
// is stored, and once for each id of a lookup that finds it.
enum class CachePolicy {
  kLru,  // evicts the least recently used row
  // evicts the least frequently used row; counts start at insertion and do not
  // age
  kLfu,
};

struct CacheTableOptions {
  std::string tag;
  RowFormat format;  // of stored rows; the output of lookups has float32 rows
  // Rows. With 0 nothing is stored: every lookup misses all ids, and Fill only
  // writes the output, on the device too.
  int64_t capacity = 0;
  // Whether new rows evict old ones. If false, rows that find no slot are not
  // stored.
  bool evicts = true;
  CachePolicy policy = CachePolicy::kLru;  // used if `evicts`
  // The largest number of ids in one lookup; sizes the scratch memory of
  // inserts.
  int64_t max_keys = 0;
};

// Counts since the table was created, except `rows` and `device_bytes`.
struct CacheStatistics {
  int64_t rows = 0;          // now in the cache
  int64_t device_bytes = 0;  // memory of this table
  int64_t hits = 0, misses = 0;
  int64_t inserted = 0;  // rows stored
  int64_t evicted = 0;   // rows evicted for others
  // Cached rows overwritten by an update or a review.
  int64_t refreshed = 0;
};

class CacheTable {
 public:
  virtual ~CacheTable() {}
  virtual const CacheTableOptions& options() const = 0;
  // False if the capacity is 0 or the table was dropped; it never becomes true
  // again. Every lookup misses all ids then.
  virtual bool holds_rows() const = 0;

  // Writes the cached rows to the output and lists the other ids. Waits for the
  // stream's work so far and for the search.
  // InvalidArgument: a stream is missing, or memory is on a device other than
  // the cache's.
  virtual ev::Status Lookup(const CacheBatch& batch,
                            std::unique_ptr<CacheLookup>* lookup) = 0;

  // Stores rows that were read from the tiers when changes() was `seen`, like
  // Fill, but without output. If a key repeats, one of its rows is stored.
  virtual ev::Status Insert(ev::Span<const int64_t> keys, const float* rows,
                            int64_t seen) = 0;
  // A number that increases with every Clear, and with every Refresh and Erase
  // of some keys.
  virtual int64_t changes() const = 0;

  // Overwrites rows that are cached; other keys are ignored. If a key repeats,
  // its last row is stored.
  virtual ev::Status Refresh(ev::Span<const int64_t> keys,
                             const float* rows) = 0;
  virtual ev::Status Erase(ev::Span<const int64_t> keys) = 0;
  virtual ev::Status Clear() = 0;

  // Starts a walk. Several may be in progress.
  virtual ev::Status Review(std::unique_ptr<CacheReview>* review) = 0;

  // Frees the table's memory for good; it then behaves like a table of capacity
  // 0.
  virtual void Drop() = 0;

  virtual ev::Status Statistics(CacheStatistics* statistics) = 0;
};

class DeviceCache {
 public:
  virtual ~DeviceCache() {}
  // Name for messages, such as "GPU 0".
  virtual const std::string& name() const = 0;
  // ResourceExhausted: not enough device memory; the message has the needed and
  // the free bytes. The table may outlive the cache.
  virtual ev::Status OpenTable(const CacheTableOptions& options,
                               std::shared_ptr<CacheTable>* table) = 0;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CACHE_DEVICE_CACHE_H_
