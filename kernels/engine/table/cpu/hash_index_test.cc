// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/table/cpu/hash_index.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <memory>
#include <random>
#include <unordered_set>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/hash.h"
#include "kernels/engine/base/pages.h"
#include "kernels/engine/testing/counting_row_source.h"
#include "kernels/engine/testing/guarded_array.h"
#include "kernels/engine/testing/made_keys.h"
#include "kernels/engine/testing/table_contract.h"

namespace ev {
namespace testing {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kScale = 1;
#else
constexpr int64_t kScale = 10;
#endif

class CpuTable : public TableUnderTest {
 public:
  Rows Find(const Keys& keys) override {
    Rows rows(keys.size(), 12345);
    index_.Find(keys, rows.data());
    return rows;
  }
  Rows FindOrInsert(const Keys& keys, int64_t* num_inserted) override {
    Rows rows(keys.size(), 12345);
    const Status status =
        index_.FindOrInsert(keys, &source_, rows.data(), num_inserted);
    EXPECT_TRUE(status.ok()) << status.message();
    return rows;
  }
  Pairs Erase(const Keys& keys) override {
    Pairs pairs;
    const auto add = [&](int64_t key, RowHandle row) {
      pairs.emplace_back(key, row);
    };
    const int64_t erased = index_.Erase(keys, add);
    EXPECT_EQ(erased, static_cast<int64_t>(pairs.size()));
    return pairs;
  }
  Pairs All() override {
    Pairs pairs;
    index_.ForEach(
        [&](int64_t key, RowHandle row) { pairs.emplace_back(key, row); });
    return pairs;
  }
  void Clear() override { index_.Clear(); }
  int64_t size() override { return index_.size(); }

 private:
  HashIndex index_;
  CountingRowSource source_;
};

std::unique_ptr<TableUnderTest> MakeCpuTable() {
  return std::unique_ptr<TableUnderTest>(new CpuTable);
}

INSTANTIATE_TEST_SUITE_P(Cpu, TableContract, ::testing::Values(&MakeCpuTable));

std::vector<int64_t> Range(int64_t begin, int64_t end) {
  std::vector<int64_t> keys;
  for (int64_t key = begin; key < end; ++key) keys.push_back(key);
  return keys;
}

TEST(HashIndexTest, AtMost24BytesPerKeyWhileGrowing) {
  HashIndex index;
  CountingRowSource source;
  std::mt19937_64 random(5);
  const int64_t kKeys = 500000 * kScale;
  double worst = 0, total = 0;
  int64_t measured = 0;
  std::vector<int64_t> keys;
  std::vector<RowHandle> rows;
  while (index.size() < kKeys) {
    keys.resize(std::max<int64_t>(1, index.size() / 100));
    rows.resize(keys.size());
    for (int64_t& key : keys) key = static_cast<int64_t>(random());
    ASSERT_TRUE(index.FindOrInsert(keys, &source, rows.data(), nullptr).ok());
    if (index.size() <= 1000) continue;
    const double per_key =
        static_cast<double>(index.bytes()) / static_cast<double>(index.size());
    ASSERT_LE(per_key, 24.0) << "at " << index.size() << " keys";
    ASSERT_EQ(index.size(), source.rows());
    worst = std::max(worst, per_key);
    total += per_key;
    ++measured;
  }
  RecordProperty("worst_bytes_per_key_x100", static_cast<int>(worst * 100));
  RecordProperty("mean_bytes_per_key_x100",
                 static_cast<int>(total / measured * 100));
}

TEST(HashIndexTest, SmallIndexesAreTiny) {
  HashIndex index;
  CountingRowSource source;
  EXPECT_LE(index.bytes(), 1024);
  std::vector<RowHandle> rows(20);
  ASSERT_TRUE(
      index.FindOrInsert(Range(0, 20), &source, rows.data(), nullptr).ok());
  EXPECT_LE(index.bytes(), 1536);
}

TEST(HashIndexTest, MemoryComesBackAfterErase) {
  HashIndex index;
  CountingRowSource source;
  const int64_t kKeys = 100000 * kScale;
  const std::vector<int64_t> keys = Range(0, kKeys);
  std::vector<RowHandle> rows(keys.size());
  ASSERT_TRUE(index.FindOrInsert(keys, &source, rows.data(), nullptr).ok());
  EXPECT_GT(index.bytes(), 12 * kKeys);
  index.Erase(Range(1000, kKeys), nullptr);
  EXPECT_EQ(index.size(), 1000);
  EXPECT_LE(index.bytes(), 64 * 1000);
  std::vector<RowHandle> again(keys.size());
  index.Find(keys, again.data());
  EXPECT_TRUE(std::equal(again.begin(), again.begin() + 1000, rows.begin()));
  EXPECT_EQ(std::count(again.begin(), again.end(), kNoRow), kKeys - 1000);
  index.Clear();
  EXPECT_LE(index.bytes(), 1024);
}

TEST(HashIndexTest, ChurnAtConstantSizeCostsNoMemoryAndLosesNothing) {
  HashIndex index;
  CountingRowSource source;
  const int64_t kLive = 5000;
  std::vector<RowHandle> rows(kLive);
  ASSERT_TRUE(
      index.FindOrInsert(Range(0, kLive), &source, rows.data(), nullptr).ok());
  for (int64_t first = 0; first < 100 * kLive; first += 1000) {
    EXPECT_EQ(index.Erase(Range(first, first + 1000), nullptr), 1000);
    ASSERT_TRUE(index
                    .FindOrInsert(Range(first + kLive, first + kLive + 1000),
                                  &source, rows.data(), nullptr)
                    .ok());
    ASSERT_EQ(index.size(), kLive);
  }
  EXPECT_LE(index.bytes(), 24 * kLive + 1024);
}

TEST(HashIndexTest, RowSourceErrorLeavesTheKeyAbsent) {
  HashIndex index;
  CountingRowSource source(/*limit=*/700);
  const std::vector<int64_t> keys = Range(0, 1000);
  std::vector<RowHandle> rows(keys.size(), 12345);
  int64_t inserted = -1;
  Status status = index.FindOrInsert(keys, &source, rows.data(), &inserted);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "no row for key 700");
  EXPECT_EQ(inserted, 700);
  EXPECT_EQ(index.size(), 700);
  for (int64_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(rows[i], i < 700 ? static_cast<RowHandle>(i) : kNoRow);
  }
  std::vector<RowHandle> found(keys.size());
  index.Find(keys, found.data());
  EXPECT_EQ(found, rows);
  // The handle of a present key after the failing one is kNoRow, too.
  status = index.FindOrInsert(std::vector<int64_t>{3, -1, 4}, &source,
                              rows.data(), &inserted);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(inserted, 0);
  EXPECT_EQ(rows[0], 3u);
  EXPECT_EQ(rows[1], kNoRow);
  EXPECT_EQ(rows[2], kNoRow);
  source.set_limit(2000);
  ASSERT_TRUE(index.FindOrInsert(keys, &source, rows.data(), &inserted).ok());
  EXPECT_EQ(inserted, 300);
}

std::atomic<int64_t> memory_left{0};
bool TakeMemory(size_t bytes) {
  return memory_left.fetch_sub(static_cast<int64_t>(bytes)) >=
         static_cast<int64_t>(bytes);
}

TEST(HashIndexTest, WithoutMemoryItFillsFurtherThenFails) {
  const int64_t kKeys = 100000 * kScale;  // needs 2 MB * kScale
  for (int64_t budget : {int64_t{0}, int64_t{10000}, 1500000 * kScale}) {
    HashIndex index;
    CountingRowSource source;
    const std::vector<int64_t> keys = Range(0, kKeys);
    std::vector<RowHandle> rows(keys.size());
    memory_left = budget;
    SetAllocationHookForTesting(&TakeMemory);
    int64_t inserted = -1;
    Status status = index.FindOrInsert(keys, &source, rows.data(), &inserted);
    memory_left = 0;
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(index.size(), inserted);
    EXPECT_EQ(source.rows(), inserted) << "no row is taken and then not used";
    EXPECT_LT(inserted, kKeys);
    std::vector<RowHandle> found(keys.size());
    index.Find(keys, found.data());
    EXPECT_EQ(found, rows);
    // Erasing tries to shrink, which needs memory, too.
    EXPECT_EQ(index.Erase(keys, nullptr), inserted);
    SetAllocationHookForTesting(nullptr);
    ASSERT_TRUE(index.FindOrInsert(keys, &source, rows.data(), &inserted).ok());
    EXPECT_EQ(inserted, kKeys);
    index.Find(keys, found.data());
    EXPECT_EQ(found, rows);
  }
}

std::atomic<int64_t> refusals{0};
bool Refuse(size_t) {
  ++refusals;
  return false;
}

TEST(HashIndexTest, WithoutMemoryItDoesNotTryToGrowForEachKey) {
  // Small segments, and one of the size at which it would split.
  for (const int64_t limit : {int64_t{20000}, 62000 * kScale}) {
    HashIndex index;
    CountingRowSource source;
    const std::vector<int64_t> before = Range(0, limit);
    std::vector<RowHandle> rows(before.size());
    ASSERT_TRUE(index.FindOrInsert(before, &source, rows.data(), nullptr).ok());
    refusals = 0;
    SetAllocationHookForTesting(&Refuse);
    int64_t inserted = -1;
    const std::vector<int64_t> more = Range(limit, 2 * limit);
    rows.resize(more.size());
    const Status status =
        index.FindOrInsert(more, &source, rows.data(), &inserted);
    const int64_t tries = refusals;
    SetAllocationHookForTesting(nullptr);
    EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
    EXPECT_GT(inserted, limit / 20);
    EXPECT_GT(tries, 0);
    // From three quarters of its slots to fifteen sixteenths in steps of a
    // sixty-fourth; two arrays each if it splits, and it may have split
    // already.
    EXPECT_LT(tries, 80) << "tries for " << inserted << " keys";
    // With memory it grows again.
    ASSERT_TRUE(index.FindOrInsert(more, &source, rows.data(), &inserted).ok());
    EXPECT_EQ(index.size(), 2 * limit);
  }
}

// Returns the CPU seconds of this thread to insert the keys into an empty
// index, find them and their absent neighbours, and erase them: the least of
// three runs.
double SecondsFor(const std::vector<int64_t>& keys) {
  double least = 1e9;
  std::vector<int64_t> neighbours;
  for (const int64_t key : keys) neighbours.push_back(key ^ 1);
  std::vector<RowHandle> rows(keys.size());
  for (int run = 0; run < 3; ++run) {
    HashIndex index;
    CountingRowSource source;
    const clock_t start = clock();
    EXPECT_TRUE(index.FindOrInsert(keys, &source, rows.data(), nullptr).ok());
    index.Find(keys, rows.data());
    EXPECT_EQ(std::count(rows.begin(), rows.end(), kNoRow), 0);
    index.Find(neighbours, rows.data());
    EXPECT_LE(index.bytes(), 64 * static_cast<int64_t>(keys.size()));
    EXPECT_EQ(index.Erase(keys, nullptr), static_cast<int64_t>(keys.size()));
    least = std::min(least, static_cast<double>(clock() - start));
  }
  return least / CLOCKS_PER_SEC;
}

TEST(HashIndexTest, KeysThatWereMadeToCollideCostWhatOthersCost) {
  const size_t kKeys = 20000 * kScale;
  std::mt19937_64 random(3);
  std::vector<int64_t> keys(kKeys);
  for (int64_t& key : keys) key = static_cast<int64_t>(random());
  const double usual = SecondsFor(keys);
  // Keys that share a lower half of MixKey, then an upper half: all in one
  // segment.
  for (size_t i = 0; i < kKeys; ++i) keys[i] = KeyOfOneLowerHalf(i);
  EXPECT_LT(SecondsFor(keys), 10 * usual);
  for (size_t i = 0; i < kKeys; ++i) keys[i] = KeyOfOneUpperHalf(i);
  EXPECT_LT(SecondsFor(keys), 10 * usual);
}

TEST(HashIndexTest, KeysOfOneSegmentDoNotDoubleTheDirectory) {
  // Enough keys for the segment to reach its limit again and again.
  const int64_t kKeys = 200000 * kScale;
  HashIndex index;
  CountingRowSource source;
  std::vector<int64_t> keys(kKeys);
  for (int64_t i = 0; i < kKeys; ++i) keys[i] = KeyOfOneUpperHalf(i);
  std::vector<RowHandle> rows(kKeys);
  ASSERT_TRUE(index.FindOrInsert(keys, &source, rows.data(), nullptr).ok());
  EXPECT_LE(index.bytes(), 24 * kKeys + (1 << 16));
  std::vector<RowHandle> found(kKeys);
  index.Find(keys, found.data());
  EXPECT_EQ(found, rows);
}

TEST(HashIndexTest, FindWithReportsGroupsInOrderAndComplete) {
  HashIndex index;
  CountingRowSource source;
  std::vector<int64_t> keys = Range(0, 100000);
  std::vector<RowHandle> rows(keys.size()), found(keys.size(), 12345);
  ASSERT_TRUE(index.FindOrInsert(keys, &source, rows.data(), nullptr).ok());
  size_t next = 0;
  index.FindWith(keys, found.data(), [&](size_t begin, size_t end) {
    ASSERT_EQ(begin, next);
    ASSERT_GT(end, begin);
    ASSERT_LE(end - begin, 64u);
    for (size_t i = begin; i < end; ++i) ASSERT_EQ(found[i], rows[i]);
    next = end;
  });
  EXPECT_EQ(next, keys.size());
}

TEST(HashIndexTest, NoKeyBeyondTheGivenOnesIsRead) {
  HashIndex index;
  CountingRowSource source;
  for (const int64_t size : {1, 31, 32, 33, 255, 257, 1000}) {
    const GuardedArray<int64_t> keys(Range(0, size));
    const Span<const int64_t> all(keys.data(), size);
    std::vector<RowHandle> rows(size), found(size);
    ASSERT_TRUE(index.FindOrInsert(all, &source, rows.data(), nullptr).ok());
    index.Find(all, found.data());
    EXPECT_EQ(found, rows);
    EXPECT_EQ(index.Erase(all, nullptr), size);
  }
}

TEST(HashIndexTest, VisitorsMayChangeTheIndex) {
  const int64_t kKeys = 10000 * kScale;
  HashIndex index;
  CountingRowSource source;
  const std::vector<int64_t> keys = Range(0, kKeys);
  std::vector<RowHandle> rows(keys.size());
  ASSERT_TRUE(index.FindOrInsert(keys, &source, rows.data(), nullptr).ok());
  // Grows the index several times during the walk.
  std::unordered_set<int64_t> seen;
  index.ForEach([&](int64_t key, RowHandle row) {
    if (key >= kKeys) return;
    ASSERT_TRUE(seen.insert(key).second) << key << " seen twice";
    RowHandle added[10];
    const int64_t first = kKeys + key * 10;
    ASSERT_TRUE(
        index.FindOrInsert(Range(first, first + 10), &source, added, nullptr)
            .ok());
  });
  EXPECT_EQ(seen.size(), keys.size());
  EXPECT_EQ(index.size(), 11 * kKeys);
  index.ForEach([&](int64_t key, RowHandle row) {
    EXPECT_EQ(index.Erase(std::vector<int64_t>{key}, nullptr), 1);
  });
  EXPECT_EQ(index.size(), 0);
}

TEST(HashIndexTest, RangesOfHashesHoldEveryKeyOnce) {
  for (const int64_t num_keys : {0, 3, 1000, 300000}) {
    HashIndex index;
    CountingRowSource source;
    std::vector<int64_t> keys(num_keys);
    for (int64_t i = 0; i < num_keys; ++i) keys[i] = i * i - 7 * i;
    std::vector<RowHandle> rows(num_keys);
    ASSERT_TRUE(index.FindOrInsert(keys, &source, rows.data(), nullptr).ok());
    std::unordered_set<int64_t> seen;
    const uint64_t kStep = (uint64_t{1} << 62) + 12345;
    uint64_t first = 0;
    for (int range = 0; range < 4; ++range, first += kStep) {
      const uint64_t last = range == 3 ? ~uint64_t{0} : first + kStep - 1;
      index.ForEachBetween(first, last, [&](int64_t key, RowHandle row) {
        EXPECT_LE(first, MixKey(key));
        EXPECT_GE(last, MixKey(key));
        RowHandle found;
        index.Find(Span<const int64_t>(&key, 1), &found);
        EXPECT_EQ(row, found);
        EXPECT_TRUE(seen.insert(key).second);
      });
    }
    EXPECT_EQ(seen.size(), static_cast<size_t>(index.size()));
  }
}

}  // namespace
}  // namespace testing
}  // namespace ev
