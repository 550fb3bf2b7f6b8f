// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Sorts a batch's distinct keys by owner: in a lookup over ranks, the rank that
// has the key's row.

#ifndef KERNELS_ENGINE_IDS_PARTITION_H_
#define KERNELS_ENGINE_IDS_PARTITION_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/tasks.h"

namespace ev {

// Output arrays of PartitionByOwner.
struct PartitionedKeys {
  // [num_owners + 1]: the keys of owner o are [starts[o], starts[o + 1]).
  int32_t* starts = nullptr;
  int64_t* keys = nullptr;    // [N], sorted
  int32_t* counts = nullptr;  // [N], in the same order; unused without counts
  int32_t* places = nullptr;  // [N]: given key i is keys[places[i]]
};

// Sorts keys, and their counts unless those are null, by owner; the keys of one
// owner keep their order. owner_of(key) is in [0, num_owners), and is called by
// several threads. keys.size() < 2^31; outputs must not overlap inputs. The
// result does not depend on 'parallel'; if it is null, the calling thread does
// all the work. Throws std::bad_alloc.
template <typename OwnerOf>  // int(int64_t key)
void PartitionByOwner(Span<const int64_t> keys, const int32_t* counts,
                      int num_owners, const OwnerOf& owner_of,
                      Parallel* parallel, const PartitionedKeys& out) {
  constexpr int64_t kKeysPerTask = 32 * 1024;
  const int64_t n = static_cast<int64_t>(keys.size());
  const int64_t chunks = (n + kKeysPerTask - 1) / kKeysPerTask;
  // Per chunk and owner: first the number of keys, then the place of the next
  // key.
  std::vector<int32_t> next(chunks * num_owners, 0);
  ForRanges(parallel, n, kKeysPerTask, [&](int64_t begin, int64_t end) {
    int32_t* const sizes = next.data() + begin / kKeysPerTask * num_owners;
    for (int64_t i = begin; i < end; ++i) {
      const int owner = owner_of(keys[i]);
      out.places[i] = owner;
      ++sizes[owner];
    }
  });
  int32_t start = 0;
  for (int o = 0; o < num_owners; ++o) {
    out.starts[o] = start;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      const int32_t size = next[chunk * num_owners + o];
      next[chunk * num_owners + o] = start;
      start += size;
    }
  }
  out.starts[num_owners] = start;
  ForRanges(parallel, n, kKeysPerTask, [&](int64_t begin, int64_t end) {
    int32_t* const to = next.data() + begin / kKeysPerTask * num_owners;
    for (int64_t i = begin; i < end; ++i) {
      const int32_t place = to[out.places[i]]++;
      out.places[i] = place;
      out.keys[place] = keys[i];
      if (counts != nullptr) out.counts[place] = counts[i];
    }
  });
}

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_PARTITION_H_
