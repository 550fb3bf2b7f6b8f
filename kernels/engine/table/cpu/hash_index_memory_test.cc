// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// HashIndex when the heap has no memory for splitting a segment.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/table/cpu/hash_index.h"
#include "kernels/engine/testing/counting_row_source.h"
#include "kernels/engine/testing/failing_allocations.h"

namespace ev {
namespace testing {
namespace {

TEST(HashIndexMemoryTest, ASplitWithoutMemoryChangesNothing) {
  constexpr int64_t kBatch = 2048;
  // Its only segment is near the size at which it splits.
  int64_t size = 600000;
  HashIndex index;
  CountingRowSource source;
  std::vector<int64_t> keys(size);
  for (int64_t key = 0; key < size; ++key) keys[key] = key;
  std::vector<RowHandle> rows(size);
  ASSERT_TRUE(index.FindOrInsert(keys, &source, rows.data(), nullptr).ok());
  // Insert until the split gets all its allocations.
  int64_t failures = 0;
  bool has_split = false;
  while (!has_split) {
    for (int64_t i = 0; i < kBatch; ++i) keys.push_back(size + i);
    rows.resize(size + kBatch);
    allocations_left = failures;
    const Status status =
        index.FindOrInsert(Span<const int64_t>(keys.data() + size, kBatch),
                           &source, rows.data() + size, nullptr);
    has_split = allocations_left >= 0 && allocations_left < failures;
    if (allocations_left < 0) ++failures;
    allocations_left = -1;
    ASSERT_TRUE(status.ok()) << status.message();
    size += kBatch;
  }
  // One allocation for the segment, three for the directory.
  EXPECT_GE(failures, 4);
  EXPECT_EQ(index.size(), size);
  std::vector<RowHandle> found(size);
  index.Find(keys, found.data());
  EXPECT_EQ(found, rows);
}

}  // namespace
}  // namespace testing
}  // namespace ev
