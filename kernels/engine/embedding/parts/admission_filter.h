// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The keys of one table that were trained but have no row yet, and how often
// each was seen. Counts are either exact, one counter per key, or a Bloom
// filter's.
//
// An exact counter is 4 bytes, or 16 with a version, that an index of its own
// points at, so the table's index, size and exports are those of admitted keys
// alone. A thread that decides about a key holds the mutex of the key's stripe
// from the look at the counter to the row's insertion: two updates that bring
// the same key at once cannot both see it below the threshold, nor lose a
// count. With a Bloom filter nothing needs a lock, but an update must add the
// occurrences of all of its keys before it asks about the first: keys share
// counters, and the order of threads must not matter.

#ifndef KERNELS_ENGINE_EMBEDDING_PARTS_ADMISSION_FILTER_H_
#define KERNELS_ENGINE_EMBEDDING_PARTS_ADMISSION_FILTER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/policy/admission.h"
#include "kernels/engine/policy/counting_bloom_filter.h"
#include "kernels/engine/storage/dram/row_store.h"
#include "kernels/engine/table/cpu/hash_index.h"

namespace ev {

// Thread-safe but for what says otherwise.
class AdmissionFilter : private RowSource {
 public:
  // with_versions: whether exact counters have one. InvalidArgument: options
  // that make no sense together; ResourceExhausted.
  static Status Make(const AdmissionOptions& options, bool with_versions,
                     std::unique_ptr<AdmissionFilter>* filter);

  const AdmissionOptions& options() const { return options_; }
  bool is_bloom() const { return bloom_ != nullptr; }
  bool Admits(int64_t seen) const { return seen >= options_.threshold; }

  CountingBloomFilter* bloom() const { return bloom_.get(); }

  // --- Exact counters only ---

  // Held while deciding about a key. At most one at a time by a thread, and
  // before any lock of an index.
  std::mutex* stripe(int64_t key) const;

  // How often an update of this many keys will look for a counter: asks for the
  // memory ahead.
  void Warm(Span<const int64_t> keys) const;

  // The following REQUIRE the key's stripe, or that no other thread is here.

  // False, with a count of 0, when there is no counter; version -1 then, and
  // without versions.
  bool Read(int64_t key, int64_t* count, int64_t* version) const;
  // Sets the key's counter and gives its handle. ResourceExhausted: nothing has
  // changed.
  Status Write(int64_t key, int64_t count, int64_t version, RowHandle* handle);
  void Forget(int64_t key);

  // --- Both ---

  // The filter's keys; 0 of a Bloom filter, which knows none.
  int64_t size() const { return index_.size(); }
  int64_t bytes() const;
  const HashIndex& index() const { return index_; }
  // The meta of a handle that the index gave. REQUIRES: no other thread writes.
  int64_t CountOf(RowHandle handle) const;
  int64_t VersionOf(RowHandle handle) const;

  // --- REQUIRE: no other thread is here ---

  void Clear();
  // Forgets these keys and returns memory to the system.
  void Erase(Span<const int64_t> keys);

 private:
  // Floats of a counter: its count, then its version, on no boundary.
  static constexpr int64_t kCountFloats = 1, kVersionFloats = 2;
  static constexpr int kStripes = 64;

  AdmissionFilter(const AdmissionOptions& options, bool with_versions,
                  std::unique_ptr<CountingBloomFilter> bloom);
  Status NewRow(int64_t key, RowHandle* handle) override;

  const AdmissionOptions options_;
  const bool with_versions_;
  const std::unique_ptr<CountingBloomFilter> bloom_;
  HashIndex index_;
  RowStore counters_;  // a counter in each row
  mutable std::mutex stripes_[kStripes];
  mutable std::mutex mu_;
  // Counters of keys that were admitted, to be used again; under mu_.
  std::vector<RowHandle> unused_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_PARTS_ADMISSION_FILTER_H_
