// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Deduplicates ids: finds the distinct ids, in order of first occurrence, and
// the inverse.
//
// The hash table is open-addressed and holds 4-byte positions in the output. It
// has three to six times as many slots as the batch has ids: for ten thousand
// ids it stays in the L2 cache, and clearing it costs some tenths of a
// nanosecond per id. A secret (base/keyed_hash.h) decides where a probe starts,
// so that no batch can be crafted to be slow; the result does not depend on it.
// Keys are compared in the output itself. No branch predictor can guess whether
// an id is new, so the common case has no branch for it: it writes as if the id
// were new and advances by zero or one. Batches that do not fit the caches
// prefetch the cache lines that they will touch.

#ifndef KERNELS_ENGINE_IDS_UNIQUE_H_
#define KERNELS_ENGINE_IDS_UNIQUE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {

// Scratch memory of one dedup at a time, 12 to 24 bytes per id of the longest
// batch so far. Keep it and reuse it, so that the steady state allocates
// nothing. Not thread-safe; use one per thread.
class Unique {
 public:
  // The result is a function of ids alone.
  //   unique:  room for ids.size(); the first *num_unique hold the result, the
  //            rest may be overwritten.
  //   inverse: [N]; unique[inverse[i]] == ids[i].
  //   counts:  as unique, or null; occurrences of each distinct id.
  // InvalidArgument: 2^31 - 1 ids or more. ResourceExhausted: no memory for the
  // scratch. The output is unspecified after an error.
  Status Run(Span<const int64_t> ids, int64_t* unique, int32_t* inverse,
             int32_t* counts, int64_t* num_unique);
  Status Run(Span<const int32_t> ids, int64_t* unique, int32_t* inverse,
             int32_t* counts, int64_t* num_unique);

  int64_t bytes() const {
    return static_cast<int64_t>(capacity_ * sizeof(uint32_t));
  }

 private:
  struct Output;
  template <typename Id>
  Status RunTyped(Span<const Id> ids, Output output, int64_t* num_unique);
  bool Reserve(size_t slots);

  struct FreeTable {
    size_t bytes;
    void operator()(uint32_t* table) const;
  };
  std::unique_ptr<uint32_t[], FreeTable> table_;
  size_t capacity_ = 0;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_UNIQUE_H_
