// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Counts the occurrences of a table's keys that have no row yet. Counts are
// either exact, with one counter per key, or those of a Bloom filter.
//
// An exact counter takes 4 bytes, or 16 with a version, and has an index of its
// own, so the table's index, size and exports contain only admitted keys. A
// thread that decides about a key holds the mutex of the key's stripe from
// reading the counter until the row is inserted. So two concurrent updates with
// the same key can neither both see it below the threshold nor lose a count. A
// Bloom filter needs no lock, but an update must add the occurrences of all of
// its keys before it reads the count of the first: keys share counters, and the
// order of threads must not matter.

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

// Thread-safe, except where noted.
class AdmissionFilter : private RowSource {
 public:
  // Creates a filter. with_versions: exact counters have a version each.
  // InvalidArgument: options that contradict each other. ResourceExhausted: no
  // memory.
  static Status Make(const AdmissionOptions& options, bool with_versions,
                     std::unique_ptr<AdmissionFilter>* filter);

  const AdmissionOptions& options() const { return options_; }
  bool is_bloom() const { return bloom_ != nullptr; }
  bool Admits(int64_t seen) const { return seen >= options_.threshold; }

  CountingBloomFilter* bloom() const { return bloom_.get(); }

  // --- Exact counters only ---

  // The mutex to hold while deciding about a key. A thread holds at most one at
  // a time, and locks it before any lock of an index.
  std::mutex* stripe(int64_t key) const;

  // Prefetches the counters of keys that an update is about to read.
  void Warm(Span<const int64_t> keys) const;

  // The following REQUIRE the key's stripe, or that no other thread uses the
  // filter.

  // Reads the key's counter. If there is none, returns false with a count of 0
  // and a version of -1. The version is -1 also without versions.
  bool Read(int64_t key, int64_t* count, int64_t* version) const;
  // Sets the key's counter and returns its handle. ResourceExhausted: nothing
  // has changed.
  Status Write(int64_t key, int64_t count, int64_t version, RowHandle* handle);
  void Forget(int64_t key);

  // --- Both ---

  // Number of keys with a counter; 0 for a Bloom filter, which stores no keys.
  int64_t size() const { return index_.size(); }
  int64_t bytes() const;
  const HashIndex& index() const { return index_; }
  // Count and version of a handle from the index. REQUIRES: no other thread
  // writes.
  int64_t CountOf(RowHandle handle) const;
  int64_t VersionOf(RowHandle handle) const;

  // --- REQUIRE: no other thread uses the filter ---

  void Clear();
  // Removes keys and returns their memory to the system.
  void Erase(Span<const int64_t> keys);

 private:
  // Floats of a counter: the count, then the version, which is not aligned.
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
  // Counters of admitted keys, for reuse; guarded by mu_.
  std::vector<RowHandle> unused_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_PARTS_ADMISSION_FILTER_H_
