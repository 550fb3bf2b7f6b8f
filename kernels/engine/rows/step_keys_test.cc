// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests the ids of a step: how they are copied, which keys a GPU finds, and
// what it returns of them.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/keyed_hash.h"
#include "kernels/engine/rows/gpu_row_home.h"
#include "kernels/engine/rows/gpu_step.h"
#include "kernels/engine/testing/storage_under_test.h"

namespace ev {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

#define EXPECT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    EXPECT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kLarge = 20000;
#else
constexpr int64_t kLarge = 1500001;
#endif

constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

std::unique_ptr<GpuRowHome> MakeRows() {
  static const float row = 1.0f;
  GpuRowHomeOptions options;
  options.dim = 1;
  options.default_rows = Span<const float>(&row, 1);
  std::unique_ptr<GpuRowHome> rows;
  const Status status = MakeGpuRowHome(options, &rows);
  EXPECT_TRUE(status.ok()) << status.message();
  return rows;
}

// Returns offsets of samples with 0 to 'most' ids each, in total num_ids.
std::vector<int32_t> RandomOffsets(int64_t num_ids, int most, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> offsets = {0};
  while (offsets.back() < num_ids) {
    offsets.push_back(std::min<int64_t>(
        num_ids, offsets.back() + static_cast<int64_t>(random() % (most + 1))));
  }
  return offsets;
}

// The table's index: keys and their rows.
using Index = std::unordered_map<int64_t, RowHandle>;

// Handle of a key without a row.
constexpr RowHandle kAbsent = kFirstReservedHandle;

// One table's step, with outputs in host memory.
struct Step {
  std::shared_ptr<GpuStep> step;
  std::vector<float> output;

  template <typename Id>
  Status Make(GpuRowHome* rows, const std::vector<Id>& all,
              const std::vector<int32_t>& offsets) {
    output.assign(offsets.size() - 1, -1.0f);
    GpuStepTable table;
    table.table = rows;
    table.num_ids = all.size();
    table.num_samples = offsets.size() - 1;
    table.is_narrow = sizeof(Id) == sizeof(int32_t);
    table.ids = all.data();
    table.out = output.data();
    return rows->StartStep(Span<const GpuStepTable>(&table, 1), nullptr, &step);
  }
  // Puts the ids from the back: the order must not matter.
  template <typename Id>
  Status Put(const std::vector<Id>& all, size_t piece) {
    for (size_t end = all.size(); end > 0;) {
      const size_t begin = end > piece ? end - piece : 0;
      const std::vector<Id> part(all.begin() + begin, all.begin() + end);
      EV_RETURN_IF_ERROR(step->Put(0, begin, Span<const Id>(part)));
      end = begin;
    }
    return Status::OK();
  }
  Status Finish() {
    EV_RETURN_IF_ERROR(step->Pool());
    return step->TakeOutput(0);
  }
};

// Looks the ids up and compares all that the step returns with the definition.
// Returns the keys without a row.
template <typename Id>
std::vector<int64_t> LookUp(GpuRowHome* rows, const std::vector<Id>& ids,
                            const std::vector<int32_t>& offsets,
                            size_t piece = 1 << 16,
                            const Index& index = Index()) {
  Step step;
  EXPECT_OK(step.Make(rows, ids, offsets));
  EXPECT_OK(step.Put(ids, piece));
  {
    const std::vector<int32_t> gone_soon = offsets;
    EXPECT_OK(step.step->Start(0, gone_soon));
  }
  EXPECT_OK(step.Finish());
  // A row's only float is 1.
  std::vector<float> output;
  for (size_t sample = 0; sample + 1 < offsets.size(); ++sample) {
    output.push_back(offsets[sample + 1] - offsets[sample]);
  }
  std::vector<int64_t> unknown;
  std::vector<int32_t> counts;
  std::vector<RowHandle> handles;
  std::unordered_map<int64_t, size_t> number;
  for (int64_t id : ids) {
    const auto found = index.find(id);
    handles.push_back(found == index.end() ? kAbsent : found->second);
    if (found != index.end()) continue;
    const size_t k = number.emplace(id, unknown.size()).first->second;
    if (k == unknown.size()) {
      unknown.push_back(id);
      counts.push_back(0);
    }
    ++counts[k];
  }
  GpuStepUnknown got;
  EXPECT_OK(step.step->Settle(0, &got));
  EXPECT_OK(step.step->Settle(0, &got));
  const std::vector<int64_t> keys(got.keys.begin(), got.keys.end());
  std::vector<int64_t> got_ids(ids.size());
  std::vector<int32_t> got_offsets(offsets.size());
  std::vector<RowHandle> got_handles(ids.size());
  GpuStepIds brought;
  brought.ids = got_ids.data();
  brought.offsets = got_offsets.data();
  brought.handles = got_handles.data();
  EXPECT_OK(step.step->BringIds(0, &brought));
  // Not EXPECT_EQ, which would print millions of elements.
  EXPECT_TRUE(output == step.output);
  EXPECT_TRUE(unknown == keys);
  EXPECT_TRUE(std::equal(counts.begin(), counts.end(), got.counts));
  EXPECT_TRUE(std::equal(ids.begin(), ids.end(), got_ids.begin()));
  EXPECT_TRUE(offsets == got_offsets);
  EXPECT_TRUE(handles == got_handles);
  EXPECT_EQ(nullptr, brought.occurrences);
  return keys;
}

// Half of all ids are among a few keys; one key has a tenth of all ids.
std::vector<int64_t> Skewed(int64_t n, int64_t range, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<int64_t> ids(n);
  for (int64_t& id : ids) {
    const uint64_t kind = random() % 10;
    id = kind == 0  ? 7
         : kind < 5 ? static_cast<int64_t>(random() % 50)
                    : static_cast<int64_t>(random() % range) - range / 2;
  }
  return ids;
}

class StepKeysTest : public ::testing::Test {
 protected:
  void SetUp() override { rows_ = MakeRows(); }
  std::unique_ptr<GpuRowHome> rows_;
};

TEST_F(StepKeysTest, AnyNumberOfIds) {
  for (int64_t n : {1,  2,   3,   4,   5,    31,   32,   33,   63,   64,
                    65, 255, 256, 257, 1023, 1024, 1025, 2047, 2049, 5000}) {
    LookUp(rows_.get(), Skewed(n, 700, n), RandomOffsets(n, 3, n));
    LookUp(rows_.get(), Skewed(n, 1 << 30, n), RandomOffsets(n, 1, n), 100);
  }
}

TEST_F(StepKeysTest, OneKeyAndOnlyDistinctKeys) {
  for (int64_t n : {1, 40, 1000, 70000}) {
    const std::vector<int32_t> offsets = RandomOffsets(n, 9, 1);
    for (int64_t key : {int64_t{0}, int64_t{-1}, kMin, kMax}) {
      LookUp(rows_.get(), std::vector<int64_t>(n, key), offsets);
    }
    std::vector<int64_t> ids(n);
    for (int64_t i = 0; i < n; ++i) ids[i] = (n - i) * 1000003;
    LookUp(rows_.get(), ids, offsets);
  }
}

TEST_F(StepKeysTest, KeysAtTheEndsOfTheRange) {
  std::vector<int64_t> ids;
  for (int round = 0; round < 50; ++round) {
    for (int64_t i = 0; i < 20; ++i) {
      ids.insert(ids.end(), {kMin + i, kMax - i, -i, i, i << 32, -(i << 32)});
    }
  }
  LookUp(rows_.get(), ids, RandomOffsets(ids.size(), 4, 1));
}

TEST_F(StepKeysTest, NarrowIds) {
  for (int64_t n : {1, 33, 1000, 100000}) {
    std::mt19937 random(n);
    std::vector<int32_t> ids(n);
    for (int32_t& id : ids) id = static_cast<int32_t>(random()) >> 18;
    ids.back() = std::numeric_limits<int32_t>::min();
    ids.front() = std::numeric_limits<int32_t>::max();
    LookUp(rows_.get(), ids, RandomOffsets(n, 2, 1), 999);
  }
}

TEST_F(StepKeysTest, SamplesWithoutIdsAndOneOfAll) {
  const std::vector<int64_t> ids = Skewed(3000, 100, 1);
  LookUp(rows_.get(), ids, {0, 3000});
  LookUp(rows_.get(), ids, {0, 0, 0, 0, 1, 1, 2999, 2999, 3000});
  std::vector<int32_t> offsets(100000, 3000);
  offsets[0] = 0;
  LookUp(rows_.get(), ids, offsets);
}

TEST_F(StepKeysTest, LargeBatches) {
  for (int64_t range : {1000, 100000, 1 << 30}) {
    LookUp(rows_.get(), Skewed(kLarge, range, 3), RandomOffsets(kLarge, 20, 3));
  }
}

TEST_F(StepKeysTest, ManyAtOnce) {
  std::vector<std::thread> callers;
  for (int c = 0; c < 6; ++c) {
    callers.emplace_back([&, c] {
      for (int64_t n = 2000; n < 12000; n += 3001) {
        const std::vector<int64_t> ids = Skewed(n + c, 900, c);
        const std::vector<int32_t> offsets = RandomOffsets(n + c, 5, c);
        // A step that is never waited for.
        Step dropped;
        ASSERT_OK(dropped.Make(rows_.get(), ids, offsets));
        ASSERT_OK(dropped.Put(ids, ids.size()));
        LookUp(rows_.get(), ids, offsets, 500);
        ASSERT_OK(dropped.step->Start(0, offsets));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST_F(StepKeysTest, PutByManyAndOutlivesTheRows) {
  const std::vector<int64_t> ids = Skewed(40000, 900, 1);
  const std::vector<int32_t> offsets = RandomOffsets(ids.size(), 5, 1);
  Step step;
  ASSERT_OK(step.Make(rows_.get(), ids, offsets));
  std::vector<std::thread> callers;
  for (size_t c = 0; c < 4; ++c) {
    callers.emplace_back([&, c] {
      for (size_t begin = c * 1000; begin < ids.size(); begin += 4000) {
        ASSERT_OK(step.step->Put(
            0, begin, Span<const int64_t>(ids.data() + begin, 1000)));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  ASSERT_OK(step.step->Start(0, offsets));
  ASSERT_OK(step.Finish());
  rows_.reset();
  GpuStepUnknown unknown;
  ASSERT_OK(step.step->Settle(0, &unknown));
  EXPECT_EQ(static_cast<int64_t>(ids.size()), unknown.num_ids_of_step);
  std::vector<int64_t> got(ids.size());
  std::vector<int32_t> got_offsets(offsets.size());
  std::vector<RowHandle> handles(ids.size());
  GpuStepIds brought;
  brought.ids = got.data();
  brought.offsets = got_offsets.data();
  brought.handles = handles.data();
  ASSERT_OK(step.step->BringIds(0, &brought));
  EXPECT_TRUE(ids == got);
  EXPECT_TRUE(offsets == got_offsets);
}

// Keys with rows.
class KnownKeysTest : public StepKeysTest {
 protected:
  // Creates rows for these keys.
  void Insert(const std::vector<int64_t>& keys) {
    for (int64_t key : keys) {
      RowHandle row = next_;
      if (free_.empty()) {
        ++next_;
      } else {
        row = free_.back();
        free_.pop_back();
      }
      ASSERT_OK(rows_->NewKeyedRow(key, row, 0));
      ASSERT_TRUE(index_.emplace(key, row).second) << key;
    }
  }
  void Forget(const std::vector<int64_t>& keys) {
    std::vector<RowHandle> handles;
    for (int64_t key : keys) {
      handles.push_back(index_.at(key));
      index_.erase(key);
    }
    rows_->ForgetKeys(keys);
    rows_->Forget(handles);
    free_.insert(free_.end(), handles.begin(), handles.end());
  }
  // Returns the keys without a row among distinct ids, each in its own sample.
  std::vector<int64_t> UnknownAmong(const std::vector<int64_t>& ids) {
    std::vector<int32_t> offsets;
    for (size_t i = 0; i <= ids.size(); ++i) offsets.push_back(i);
    return LookUp(rows_.get(), ids, offsets, 100, index_);
  }

  Index index_;
  std::vector<RowHandle> free_;
  RowHandle next_ = 0;
};

TEST_F(KnownKeysTest, KeysWithRowsAreFound) {
  const std::vector<int64_t> ids = {5, kMin, -1, kMin + 1, 0, kMax, 7};
  const std::vector<int64_t> absent = {5, 0};
  EXPECT_EQ(ids, UnknownAmong(ids));
  Insert({kMin, -1, kMin + 1, kMax, 7});
  EXPECT_EQ(absent, UnknownAmong(ids));
  Insert({0});
  EXPECT_EQ(std::vector<int64_t>{5}, UnknownAmong(ids));
}

TEST_F(KnownKeysTest, ForgottenKeysAreUnknown) {
  const std::vector<int64_t> ids = {3, kMin, -1, kMin + 1, 0, kMax, 7};
  Insert(ids);
  EXPECT_EQ(std::vector<int64_t>(), UnknownAmong(ids));
  // Twice the same key: a caller may forget a key more than once.
  rows_->ForgetKeys(std::vector<int64_t>{-1, 99, -1});
  Forget({kMin, -1, 0, kMax});
  const std::vector<int64_t> gone = {kMin, -1, 0, kMax};
  EXPECT_EQ(gone, UnknownAmong(ids));
  // They come back with other rows.
  Insert({0, kMax, kMin, -1});
  EXPECT_EQ(std::vector<int64_t>(), UnknownAmong(ids));
  rows_->Clear();
  index_.clear();
  EXPECT_EQ(ids, UnknownAmong(ids));
}

TEST_F(KnownKeysTest, KeysWhoseHashesMeetAreKeptApart) {
  const KeyedHash hash = KeyedHash::FromSeed(6);
  const ScopedHashForTesting given(hash);
  std::vector<int64_t> one_place, others;
  for (uint64_t i = 0; i < 300; ++i) {
    one_place.push_back(hash.KeyOf(0xFFFFFFFFFFFF0000ULL | i));
    others.push_back(hash.KeyOf(0xFFFFFFFFFFFF8000ULL | i));
  }
  Insert(one_place);
  EXPECT_EQ(std::vector<int64_t>(), UnknownAmong(one_place));
  EXPECT_EQ(others, UnknownAmong(others));
  // Deleted slots in the probe sequence, partly filled again.
  const std::vector<int64_t> some(one_place.begin(), one_place.begin() + 100);
  Forget(some);
  std::vector<int64_t> both = one_place;
  both.insert(both.end(), others.begin(), others.begin() + 50);
  std::vector<int64_t> expected = some;
  expected.insert(expected.end(), others.begin(), others.begin() + 50);
  EXPECT_EQ(expected, UnknownAmong(both));
  Insert({others.begin(), others.begin() + 50});
  EXPECT_EQ(some, UnknownAmong(both));
}

// More keys than there were slots at first, and more inserts and erases than
// slots that were never used.
TEST_F(KnownKeysTest, KeysComeAndGo) {
  std::mt19937_64 random(3);
  std::vector<int64_t> on_host;
  for (int round = 0; round < 30; ++round) {
    std::vector<int64_t> ids = on_host;
    for (int i = 0; i < 600; ++i) {
      const int64_t key = static_cast<int64_t>(random());
      if (index_.count(key) != 0) continue;
      Insert({key});
      ids.push_back(key);
    }
    std::shuffle(ids.begin(), ids.end(), random);
    ASSERT_EQ(std::vector<int64_t>(), UnknownAmong(ids)) << round;
    const std::vector<int64_t> gone(ids.begin(), ids.begin() + ids.size() / 2);
    on_host.assign(ids.begin() + ids.size() / 2, ids.end());
    Forget(gone);
    ASSERT_EQ(gone, UnknownAmong(gone)) << round;
  }
}

TEST_F(KnownKeysTest, TablesLookedUpByManyAtOnce) {
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < 1500; ++i) keys.push_back(i * 1000003 - 500);
  Insert(keys);
  std::vector<std::thread> callers;
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&, c] {
      std::mt19937_64 random(c);
      for (int round = 0; round < 10; ++round) {
        std::vector<int64_t> ids;
        for (int i = 0; i < 900; ++i) ids.push_back(keys[random() % 1500]);
        LookUp(rows_.get(), ids, RandomOffsets(900, 3, round), 200, index_);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST_F(KnownKeysTest, KeysAreKnownFromTheirRowsOn) {
  std::vector<int64_t> keys = {kMin, kMin + 1, kMax, 0, -1};
  for (int64_t i = 1; i < 1000; ++i) keys.push_back(i << 33);
  for (size_t begin = 0; begin < keys.size(); begin += 250) {
    const std::vector<int64_t> some(
        keys.begin() + begin,
        keys.begin() + std::min(begin + 250, keys.size()));
    Insert(some);
    // Half of the time the step itself writes the new rows and keys.
    if (begin % 500 == 0) ASSERT_OK(rows_->Flush());
    EXPECT_EQ(std::vector<int64_t>(), UnknownAmong(some)) << begin;
  }
  EXPECT_EQ((std::vector<int64_t>{-2, 1}), UnknownAmong({-2, keys[7], 1}));
  EXPECT_EQ(std::vector<int64_t>(), UnknownAmong(keys));
}

TEST_F(KnownKeysTest, KeysThatAreQueuedAreForgottenToo) {
  Insert({5, 6, 7});
  Forget({6});
  EXPECT_EQ(std::vector<int64_t>{6}, UnknownAmong({5, 6, 7}));
  Insert({6});
  ASSERT_OK(rows_->Flush());
  EXPECT_EQ(std::vector<int64_t>(), UnknownAmong({5, 6, 7}));
}

// The row of each inserted key is trained; the other keys have no row.
TEST_F(KnownKeysTest, UpdatesGetTheRowsOfInsertedKeys) {
  const std::vector<int64_t> ids = {10, 11, 12, 13, 10};
  Insert({11, 13});
  Step step;
  ASSERT_OK(step.Make(rows_.get(), ids, {0, 1, 2, 3, 4, 5}));
  ASSERT_OK(step.Put(ids, 5));
  ASSERT_OK(step.step->Start(0, {}));
  ASSERT_OK(step.Finish());
  GpuStepUnknown unknown;
  ASSERT_OK(step.step->Settle(0, &unknown));
  ASSERT_EQ(2u, unknown.keys.size());
  EXPECT_EQ(10, unknown.keys[0]);
  EXPECT_EQ(2, unknown.counts[0]);
  EXPECT_EQ(12, unknown.keys[1]);
  const std::vector<float> grads = {1, 2, 4, 8, 16}, hyper = {1.0f};
  GpuStepUpdate update;
  update.table = rows_.get();
  const auto apply = [&] {
    std::unique_ptr<DeviceGradients> put;
    EV_RETURN_IF_ERROR(rows_->StartGradients(grads.data(), 5, &put));
    if (put->needs_put()) {
      EV_RETURN_IF_ERROR(put->Put(0, 5, grads.data()));
    }
    update.put_grads = put.get();
    std::unique_ptr<GpuMetaUpdates> meta_updates;
    return step.step->Update("SGD", hyper,
                             Span<const GpuStepUpdate>(&update, 1), nullptr,
                             &meta_updates);
  };
  // Twice without the other keys, then with a row for one of them.
  const std::vector<RowHandle> none = {kNoRow, kNoRow};
  update.unknown_handles = none;
  ASSERT_OK(apply());
  ASSERT_OK(apply());
  Insert({10});
  const std::vector<RowHandle> inserted = {index_.at(10), kNoRow};
  update.unknown_handles = inserted;
  ASSERT_OK(apply());
  std::vector<float> values(3);
  ASSERT_OK(rows_->Read(std::vector<RowHandle>{0, 1, 2}, 0, values.data()));
  EXPECT_EQ((std::vector<float>{1 - 6, 1 - 24, 1 - 17}), values);
  std::vector<int64_t> got(5);
  std::vector<int32_t> offsets(6);
  std::vector<RowHandle> handles(5);
  GpuStepIds brought;
  brought.ids = got.data();
  brought.offsets = offsets.data();
  brought.handles = handles.data();
  ASSERT_OK(step.step->BringIds(0, &brought));
  EXPECT_EQ((std::vector<RowHandle>{2, 0, kNoRow, 1, 2}), handles);
}

}  // namespace
}  // namespace ev
