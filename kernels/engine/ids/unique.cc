// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/unique.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>

#include "kernels/engine/base/keyed_hash.h"
#include "kernels/engine/base/pages.h"
#include "kernels/engine/base/prefetch.h"

namespace ev {

struct Unique::Output {
  int64_t* unique;
  int32_t* inverse;
  int32_t* counts;  // may be null
};

namespace {

// Up to this many ids the table and the output stay in the caches, and
// prefetching costs more than it saves.
constexpr size_t kInCache = 1 << 13;

// Ids per group of prefetches.
constexpr size_t kGroup = 32;

// State of one run. unique[0] must be initialized.
template <typename Id, bool kCounts>
struct Dedup {
  const Id* ids;
  int64_t* unique;
  int32_t* inverse;
  int32_t* counts;
  uint32_t* table;  // position in unique + 1; 0: empty
  size_t mask;      // slots - 1
  int shift;        // 64 - log2(slots)
  KeyedHash hash;
  uint32_t num_unique = 0;

  // Returns the slot of the id, or an empty one for it. Called if its first
  // slot holds another id.
  size_t Probe(size_t slot, int64_t id) const {
    do {
      slot = (slot + 1) & mask;
    } while (table[slot] != 0 && unique[table[slot] - 1] != id);
    return slot;
  }

  void Add(size_t i, size_t slot) {
    const int64_t id = ids[i];
    uint32_t entry = table[slot];
    // All ones if the slot is empty. Choices are made with masks: from a
    // condition the compiler makes a branch, which is mispredicted half of the
    // time.
    uint32_t is_new = 0u - static_cast<uint32_t>(entry == 0);
    const uint32_t compared = entry - 1 - is_new;
    const uint64_t differs = static_cast<uint64_t>(unique[compared] ^ id) &
                             ~static_cast<uint64_t>(static_cast<int64_t>(
                                 static_cast<int32_t>(is_new)));
    if (__builtin_expect(differs != 0, 0)) {
      slot = Probe(slot, id);
      entry = table[slot];
      is_new = 0u - static_cast<uint32_t>(entry == 0);
    }
    const uint32_t position = (num_unique & is_new) | ((entry - 1) & ~is_new);
    unique[num_unique] = id;
    table[slot] = position + 1;
    inverse[i] = static_cast<int32_t>(position);
    if (kCounts) {
      counts[position] = (counts[position] & ~static_cast<int32_t>(is_new)) + 1;
    }
    num_unique -= is_new;
  }

  void Run(size_t n) {
    const KeyedHash local = hash;  // a local: stores cannot change it
    for (size_t i = 0; i < n; ++i) Add(i, local(ids[i]) >> shift);
  }

  // Three passes over each group: prefetch the slots; prefetch the ids that the
  // slots refer to; add.
  void RunPrefetched(size_t n) {
    size_t slots[2][kGroup];
    const auto ask = [&](size_t begin, size_t* to) {
      const size_t size = std::min(kGroup, n - begin);
      const Id* const from = ids + begin;
      const KeyedHash local = hash;
      const int down = shift;
      for (size_t i = 0; i < size; ++i) to[i] = local(from[i]) >> down;
      for (size_t i = 0; i < size; ++i) PrefetchLine(&table[to[i]]);
    };
    ask(0, slots[0]);
    for (size_t begin = 0, g = 0; begin < n; begin += kGroup, ++g) {
      const size_t* const now = slots[g % 2];
      if (begin + kGroup < n) ask(begin + kGroup, slots[(g + 1) % 2]);
      const size_t size = std::min(kGroup, n - begin);
      for (size_t i = 0; i < size; ++i) {
        const uint32_t entry = table[now[i]];
        const size_t position = entry - (entry != 0);
        PrefetchLine(&unique[position]);
        if (kCounts) PrefetchLine(&counts[position]);
      }
      for (size_t i = 0; i < size; ++i) Add(begin + i, now[i]);
    }
  }
};

}  // namespace

void Unique::FreeTable::operator()(uint32_t* table) const {
  FreeLines(table, bytes);
}

bool Unique::Reserve(size_t slots) {
  if (slots <= capacity_) return true;
  table_.reset();
  capacity_ = 0;
  const size_t bytes = slots * sizeof(uint32_t);
  void* memory = AllocateLines(bytes);
  if (memory == nullptr) return false;
  table_ = std::unique_ptr<uint32_t[], FreeTable>(
      static_cast<uint32_t*>(memory), FreeTable{bytes});
  capacity_ = slots;
  return true;
}

template <typename Id>
Status Unique::RunTyped(Span<const Id> ids, Output output,
                        int64_t* num_unique) {
  const size_t n = ids.size();
  *num_unique = 0;
  if (n >= static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return InvalidArgument("too many ids in one batch: " + std::to_string(n));
  }
  if (n == 0) return Status::OK();
  size_t slots = 16;
  int shift = 60;
  for (; slots < 3 * n; slots *= 2) --shift;
  const KeyedHash hash = KeyedHash::OfProcess();
  if (!Reserve(slots)) {
    return ResourceExhausted("no memory to deduplicate " + std::to_string(n) +
                             " ids");
  }
  std::memset(table_.get(), 0, slots * sizeof(uint32_t));
  output.unique[0] = 0;
  const auto run = [&](auto dedup) {
    if (n <= kInCache) {
      dedup.Run(n);
    } else {
      dedup.RunPrefetched(n);
    }
    *num_unique = dedup.num_unique;
  };
  if (output.counts != nullptr) {
    run(Dedup<Id, true>{ids.data(), output.unique, output.inverse,
                        output.counts, table_.get(), slots - 1, shift, hash});
  } else {
    run(Dedup<Id, false>{ids.data(), output.unique, output.inverse, nullptr,
                         table_.get(), slots - 1, shift, hash});
  }
  return Status::OK();
}

Status Unique::Run(Span<const int64_t> ids, int64_t* unique, int32_t* inverse,
                   int32_t* counts, int64_t* num_unique) {
  return RunTyped(ids, Output{unique, inverse, counts}, num_unique);
}

Status Unique::Run(Span<const int32_t> ids, int64_t* unique, int32_t* inverse,
                   int32_t* counts, int64_t* num_unique) {
  return RunTyped(ids, Output{unique, inverse, counts}, num_unique);
}

}  // namespace ev
