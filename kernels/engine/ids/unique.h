// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_IDS_UNIQUE_H_
#define KERNELS_ENGINE_IDS_UNIQUE_H_

#include <cstdint>
#include <vector>

#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {

// The scratch of one dedup at a time: keep it and use it again, so that the
// steady state allocates nothing. Not thread-safe; one per thread.
class Unique {
 public:
  // Distinct ids in order of first occurrence.
  //   unique:  room for ids.size(); [*num_unique] are written.
  //   inverse: [N]; unique[inverse[i]] == ids[i].
  //   counts:  room for ids.size(), or null; occurrences of each unique id.
  // InvalidArgument: 2^31 ids or more. ResourceExhausted: no memory for scratch.
  // Nothing of the output may be relied on after an error.
  Status Run(Span<const int64_t> ids, int64_t* unique, int32_t* inverse,
             int32_t* counts, int64_t* num_unique);
  Status Run(Span<const int32_t> ids, int64_t* unique, int32_t* inverse,
             int32_t* counts, int64_t* num_unique);

 private:
  template <typename Id>
  Status RunTyped(Span<const Id> ids, int64_t* unique, int32_t* inverse,
                  int32_t* counts, int64_t* num_unique);

  std::vector<uint32_t> table_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_UNIQUE_H_
