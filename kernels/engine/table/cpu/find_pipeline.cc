// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/table/cpu/find_pipeline.h"

#include <algorithm>

#include "kernels/engine/base/keyed_hash.h"
#include "kernels/engine/base/prefetch.h"

namespace ev {

// Out of line, so that the loops around FindInBucket keep their registers. Ends
// as soon as it runs without a concurrent erase or insert.
__attribute__((noinline)) RowHandle FindInBucketAgain(const Bucket& bucket,
                                                      int64_t key,
                                                      uint32_t passed_bit,
                                                      uint32_t* go_on) {
  return FindInBucket(bucket, key, passed_bit, go_on);
}

void FindPipeline::ComputeHomes(size_t group, Home* homes) const {
  const Directory& directory = segments_.directory();
  const int64_t* const keys = keys_ + group * kGroup;
  const size_t size = std::min(size_ - group * kGroup, kGroup);
  const KeyedHash secret = segments_.secret();
  const auto compute = [&](const auto& array_of) {
    for (size_t i = 0; i < size; ++i) {
      const uint32_t hash = BucketHash(secret, keys[i]);
      homes[i] = Home(HomeBucket(array_of(keys[i]), hash), hash);
    }
  };
  // One segment holds all keys, so no hash is needed to choose it.
  if (directory.depth == 0) {
    const uint64_t array = directory.ArrayOf(keys[0]);
    compute([=](int64_t) { return array; });
  } else {
    compute([&](int64_t key) { return directory.ArrayOf(key); });
  }
  // Prefetches always cover a whole group.
  for (size_t i = size; i < kGroup; ++i) homes[i] = homes[0];
}

void FindPipeline::ReadHomes(size_t group, BeyondList* beyond) {
  const size_t begin = group * kGroup;
  const int64_t* const keys = keys_ + begin;
  RowHandle* const handles = handles_ + begin;
  const size_t size = std::min(size_ - begin, kGroup);
  uint8_t not_home[kGroup];
  size_t num_not_home = 0;
  for (size_t i = 0; i < size; ++i) {
    PrefetchLine(homes_[kGroup + i].line());
    const Home home = homes_[i];
    uint32_t go_on;
    handles[i] =
        FindInBucket(*home.bucket(), keys[i], home.passed_bit(), &go_on);
    not_home[num_not_home] = static_cast<uint8_t>(i);
    num_not_home += go_on;
  }
  const Directory& directory = segments_.directory();
  for (size_t b = 0; b < num_not_home; ++b) {
    const size_t i = not_home[b];
    const uint32_t hash = BucketHash(segments_.secret(), keys[i]);
    Beyond& at = beyond->keys[b];
    at.index = begin + i;
    at.passed_bit = PassedBit(hash);
    at.chain = Chain(directory.ArrayOf(keys[i]), hash);
    // If the segment has grown meanwhile, start again at the home bucket.
    if (at.chain.bucket() == homes_[i].bucket()) at.chain.Next();
    PrefetchLine(at.chain.bucket());
  }
  beyond->size = num_not_home;
}

void FindPipeline::Advance(BeyondList* from, BeyondList* to) {
  to->size = 0;
  for (size_t b = 0; b < from->size; ++b) {
    Beyond& at = from->keys[b];
    uint32_t go_on;
    handles_[at.index] = FindInBucket(*at.chain.bucket(), keys_[at.index],
                                      at.passed_bit, &go_on);
    if (go_on != 0 && at.chain.Next()) {
      PrefetchLine(at.chain.bucket());
      to->keys[to->size++] = at;
    }
  }
  from->size = 0;
}

void FindPipeline::Finish(BeyondList* list) {
  for (size_t b = 0; b < list->size; ++b) {
    Beyond& at = list->keys[b];
    uint32_t go_on;
    do {
      handles_[at.index] = FindInBucket(*at.chain.bucket(), keys_[at.index],
                                        at.passed_bit, &go_on);
    } while (go_on != 0 && at.chain.Next());
  }
  list->size = 0;
}

void FindPipeline::Run(GroupFn fn, void* context) {
  if (size_ == 0) return;
  const size_t groups = (size_ + kGroup - 1) / kGroup;
  ComputeHomes(0, homes_ + kGroup);
  for (size_t i = 0; i < std::min(size_, kGroup); ++i) {
    PrefetchLine(homes_[kGroup + i].line());
  }
  for (size_t g = 0; g < groups + 2; ++g) {
    if (g < groups) {
      std::copy(homes_ + kGroup, homes_ + 2 * kGroup, homes_);
      if (g + 1 < groups) ComputeHomes(g + 1, homes_ + kGroup);
      ReadHomes(g, &second_[g % 2]);
    }
    Advance(&second_[(g + 1) % 2], &later_[g % 2]);
    if (g < 2) continue;
    Finish(&later_[(g + 1) % 2]);
    if (fn != nullptr) {
      fn(context, (g - 2) * kGroup, std::min(size_, (g - 1) * kGroup));
    }
  }
}

}  // namespace ev
