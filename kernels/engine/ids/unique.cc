// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/unique.h"

#include <cstring>
#include <limits>
#include <new>

#include "kernels/engine/base/hash.h"

namespace ev {

template <typename Id>
Status Unique::RunTyped(Span<const Id> ids, int64_t* unique, int32_t* inverse,
                        int32_t* counts, int64_t* num_unique) {
  const size_t n = ids.size();
  if (n > static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return InvalidArgument("too many ids in one batch: " + std::to_string(n));
  }
  size_t slots = 16;
  while (slots < n + n / 2) slots *= 2;
  if (table_.size() < slots) {
    try {
      table_.resize(slots);
    } catch (const std::bad_alloc&) {
      return ResourceExhausted("no memory to deduplicate " + std::to_string(n) +
                               " ids");
    }
  }
  std::memset(table_.data(), 0, slots * sizeof(uint32_t));
  const size_t mask = slots - 1;
  uint32_t u = 0;
  for (size_t i = 0; i < n; ++i) {
    const int64_t id = ids[i];
    size_t s = MixKey(id) & mask;
    while (table_[s] != 0 && unique[table_[s] - 1] != id) s = (s + 1) & mask;
    if (table_[s] == 0) {
      unique[u] = id;
      if (counts != nullptr) counts[u] = 0;
      table_[s] = ++u;
    }
    inverse[i] = static_cast<int32_t>(table_[s] - 1);
    if (counts != nullptr) ++counts[table_[s] - 1];
  }
  *num_unique = u;
  return Status::OK();
}

Status Unique::Run(Span<const int64_t> ids, int64_t* unique, int32_t* inverse,
                   int32_t* counts, int64_t* num_unique) {
  return RunTyped(ids, unique, inverse, counts, num_unique);
}

Status Unique::Run(Span<const int32_t> ids, int64_t* unique, int32_t* inverse,
                   int32_t* counts, int64_t* num_unique) {
  return RunTyped(ids, unique, inverse, counts, num_unique);
}

}  // namespace ev
