// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares a step's ids, deduplicated by Fetch, with the definition; and tests
// which keys a GPU finds.

#include "kernels/engine/ids/device_distinct.h"

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

// The result of a batch: from the device, or by the definition.
struct Result {
  std::vector<int64_t> keys;
  std::vector<int32_t> counts, samples, inverse;
  std::vector<RowHandle> names;
  std::vector<int64_t> unknown_keys;
};

// The table's index: keys and their rows.
using Index = std::unordered_map<int64_t, RowHandle>;

// Handle of a key without a row.
constexpr RowHandle kAbsent = kFirstReservedHandle;

RowHandle NameOf(const Index& index, int64_t key) {
  const auto found = index.find(key);
  return found == index.end() ? kAbsent : found->second;
}

// One table's step, with outputs in host memory.
struct Step {
  std::shared_ptr<GpuStep> step;
  std::unique_ptr<DeviceDistinct> ids;
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
    EV_RETURN_IF_ERROR(
        rows->StartStep(Span<const GpuStepTable>(&table, 1), nullptr, &step));
    ids = step->Distinct(0);
    return Status::OK();
  }
  // Puts the ids from the back: the order must not matter.
  template <typename Id>
  Status Put(const std::vector<Id>& all, size_t piece) {
    for (size_t end = all.size(); end > 0;) {
      const size_t begin = end > piece ? end - piece : 0;
      const std::vector<Id> part(all.begin() + begin, all.begin() + end);
      EV_RETURN_IF_ERROR(ids->Put(begin, Span<const Id>(part)));
      end = begin;
    }
    return Status::OK();
  }
  Status Finish() {
    EV_RETURN_IF_ERROR(ids->Wait());
    EV_RETURN_IF_ERROR(step->Pool());
    return step->TakeOutput(0);
  }
};

template <typename Id>
Result ByDefinition(const std::vector<Id>& ids,
                    const std::vector<int32_t>& offsets) {
  Result result;
  std::unordered_map<int64_t, size_t> number;
  std::vector<std::vector<int32_t>> samples;
  size_t sample = 0;
  for (size_t i = 0; i < ids.size(); ++i) {
    while (offsets[sample + 1] <= static_cast<int64_t>(i)) ++sample;
    const auto at = number.emplace(ids[i], samples.size());
    if (at.second) {
      result.keys.push_back(ids[i]);
      samples.emplace_back();
    }
    samples[at.first->second].push_back(static_cast<int32_t>(sample));
    result.inverse.push_back(static_cast<int32_t>(at.first->second));
  }
  for (const auto& of_key : samples) {
    result.counts.push_back(static_cast<int32_t>(of_key.size()));
    result.samples.insert(result.samples.end(), of_key.begin(), of_key.end());
  }
  return result;
}

template <typename Id>
void Deduplicate(GpuRowHome* rows, const std::vector<Id>& ids,
                 const std::vector<int32_t>& offsets, size_t piece,
                 Result* result) {
  Step step;
  ASSERT_OK(step.Make(rows, ids, offsets));
  ASSERT_OK(step.Put(ids, piece));
  {
    const std::vector<int32_t> gone_soon = offsets;
    ASSERT_OK(step.ids->Start(gone_soon));
  }
  ASSERT_OK(step.Finish());
  // A row's only float is 1.
  for (size_t sample = 0; sample + 1 < offsets.size(); ++sample) {
    ASSERT_EQ(offsets[sample + 1] - offsets[sample], step.output[sample]);
  }
  DeviceDistinct* const distinct = step.ids.get();
  EXPECT_FALSE(distinct->is_settled());
  ASSERT_OK(distinct->Settle());
  EXPECT_TRUE(distinct->is_settled());
  result->unknown_keys.assign(
      distinct->unknown_keys(),
      distinct->unknown_keys() + distinct->num_unknown());
  ASSERT_OK(distinct->Fetch());
  ASSERT_OK(distinct->Fetch());
  const int64_t unique = distinct->num_unique();
  result->keys.assign(distinct->keys(), distinct->keys() + unique);
  result->counts.assign(distinct->counts(), distinct->counts() + unique);
  result->names.assign(distinct->names(), distinct->names() + unique);
  result->samples.assign(ids.size(), -1);
  ASSERT_OK(distinct->Occurrences(result->samples.data()));
  result->inverse.assign(ids.size(), -1);
  std::vector<int32_t> counts(unique, -1);
  ASSERT_OK(distinct->Inverse(result->inverse.data(), counts.data()));
  EXPECT_TRUE(counts == result->counts);
  ASSERT_OK(distinct->Inverse(nullptr, nullptr));
}

template <typename Id>
Result ExpectDefinition(GpuRowHome* rows, const std::vector<Id>& ids,
                        const std::vector<int32_t>& offsets,
                        size_t piece = 1 << 16, const Index& index = Index()) {
  Result got;
  Deduplicate(rows, ids, offsets, piece, &got);
  const Result expected = ByDefinition(ids, offsets);
  // Not EXPECT_EQ, which would print millions of elements.
  EXPECT_EQ(expected.keys.size(), got.keys.size());
  EXPECT_TRUE(expected.keys == got.keys);
  EXPECT_TRUE(expected.counts == got.counts);
  EXPECT_TRUE(expected.samples == got.samples);
  EXPECT_TRUE(expected.inverse == got.inverse);
  std::vector<RowHandle> names;
  for (int64_t key : expected.keys) names.push_back(NameOf(index, key));
  EXPECT_TRUE(names == got.names);
  std::vector<int64_t> unknown;
  for (int64_t key : expected.keys) {
    if (index.count(key) == 0) unknown.push_back(key);
  }
  EXPECT_TRUE(unknown == got.unknown_keys);
  return got;
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

class DeviceDistinctTest : public ::testing::Test {
 protected:
  void SetUp() override { rows_ = MakeRows(); }
  std::unique_ptr<GpuRowHome> rows_;
};

TEST_F(DeviceDistinctTest, AnyNumberOfIds) {
  for (int64_t n : {1,  2,   3,   4,   5,    31,   32,   33,   63,   64,
                    65, 255, 256, 257, 1023, 1024, 1025, 2047, 2049, 5000}) {
    ExpectDefinition(rows_.get(), Skewed(n, 700, n), RandomOffsets(n, 3, n));
    ExpectDefinition(rows_.get(), Skewed(n, 1 << 30, n), RandomOffsets(n, 1, n),
                     100);
  }
}

TEST_F(DeviceDistinctTest, OneKeyAndOnlyDistinctKeys) {
  for (int64_t n : {1, 40, 1000, 70000}) {
    const std::vector<int32_t> offsets = RandomOffsets(n, 9, 1);
    for (int64_t key : {int64_t{0}, int64_t{-1}, kMin, kMax}) {
      ExpectDefinition(rows_.get(), std::vector<int64_t>(n, key), offsets);
    }
    std::vector<int64_t> ids(n);
    for (int64_t i = 0; i < n; ++i) ids[i] = (n - i) * 1000003;
    ExpectDefinition(rows_.get(), ids, offsets);
  }
}

TEST_F(DeviceDistinctTest, KeysAtTheEndsOfTheRange) {
  std::vector<int64_t> ids;
  for (int round = 0; round < 50; ++round) {
    for (int64_t i = 0; i < 20; ++i) {
      ids.insert(ids.end(), {kMin + i, kMax - i, -i, i, i << 32, -(i << 32)});
    }
  }
  ExpectDefinition(rows_.get(), ids, RandomOffsets(ids.size(), 4, 1));
}

TEST_F(DeviceDistinctTest, NarrowIds) {
  for (int64_t n : {1, 33, 1000, 100000}) {
    std::mt19937 random(n);
    std::vector<int32_t> ids(n);
    for (int32_t& id : ids) id = static_cast<int32_t>(random()) >> 18;
    ids.back() = std::numeric_limits<int32_t>::min();
    ids.front() = std::numeric_limits<int32_t>::max();
    ExpectDefinition(rows_.get(), ids, RandomOffsets(n, 2, 1), 999);
  }
}

TEST_F(DeviceDistinctTest, SamplesWithoutIdsAndOneOfAll) {
  const std::vector<int64_t> ids = Skewed(3000, 100, 1);
  ExpectDefinition(rows_.get(), ids, {0, 3000});
  ExpectDefinition(rows_.get(), ids, {0, 0, 0, 0, 1, 1, 2999, 2999, 3000});
  std::vector<int32_t> offsets(100000, 3000);
  offsets[0] = 0;
  ExpectDefinition(rows_.get(), ids, offsets);
}

TEST_F(DeviceDistinctTest, KeysWhoseHashesMeet) {
  const KeyedHash hash = KeyedHash::FromSeed(5);
  const ScopedHashForTesting given(hash);
  std::vector<int64_t> one_place, one_tag;
  for (uint64_t round = 0; round < 3; ++round) {
    for (uint64_t i = 0; i < 700; ++i) {
      // The last slot of the hash table, so that the probe wraps around.
      one_place.push_back(hash.KeyOf(0xFFFFFFFF00000000ULL | i));
      one_tag.push_back(hash.KeyOf(i << 52 | 0xFFFFFFFFULL));
    }
  }
  ExpectDefinition(rows_.get(), one_place, RandomOffsets(2100, 2, 1));
  ExpectDefinition(rows_.get(), one_tag, RandomOffsets(2100, 2, 1));
}

TEST_F(DeviceDistinctTest, LargeBatches) {
  for (int64_t range : {1000, 100000, 1 << 30}) {
    ExpectDefinition(rows_.get(), Skewed(kLarge, range, 3),
                     RandomOffsets(kLarge, 20, 3));
  }
}

TEST_F(DeviceDistinctTest, TheSameForTheSameBatch) {
  const std::vector<int64_t> ids = Skewed(200000, 60000, 3);
  const std::vector<int32_t> offsets = RandomOffsets(200000, 10, 3);
  Result first, again;
  Deduplicate(rows_.get(), ids, offsets, 1000, &first);
  for (int k = 0; k < 5; ++k) {
    Deduplicate(rows_.get(), ids, offsets, 65536, &again);
    EXPECT_TRUE(first.keys == again.keys);
    EXPECT_TRUE(first.counts == again.counts);
    EXPECT_TRUE(first.samples == again.samples);
  }
}

TEST_F(DeviceDistinctTest, ManyAtOnce) {
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
        ExpectDefinition(rows_.get(), ids, offsets, 500);
        ASSERT_OK(dropped.ids->Start(offsets));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

TEST_F(DeviceDistinctTest, PutByManyAndOutlivesTheRows) {
  const std::vector<int64_t> ids = Skewed(40000, 900, 1);
  const std::vector<int32_t> offsets = RandomOffsets(ids.size(), 5, 1);
  Step step;
  ASSERT_OK(step.Make(rows_.get(), ids, offsets));
  DeviceDistinct* const distinct = step.ids.get();
  std::vector<std::thread> callers;
  for (size_t c = 0; c < 4; ++c) {
    callers.emplace_back([&, c] {
      for (size_t begin = c * 1000; begin < ids.size(); begin += 4000) {
        ASSERT_OK(distinct->Put(begin,
                                Span<const int64_t>(ids.data() + begin, 1000)));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  ASSERT_OK(distinct->Start(offsets));
  ASSERT_OK(step.Finish());
  rows_.reset();
  const Result expected = ByDefinition(ids, offsets);
  ASSERT_OK(distinct->Settle());
  ASSERT_EQ(static_cast<int64_t>(expected.keys.size()),
            distinct->num_unknown());
  EXPECT_TRUE(std::equal(expected.keys.begin(), expected.keys.end(),
                         distinct->unknown_keys()));
  // Fetched by several threads, as updates of one lookup may do.
  callers.clear();
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      std::vector<int32_t> samples(ids.size(), -1);
      ASSERT_OK(distinct->Occurrences(samples.data()));
      EXPECT_TRUE(expected.samples == samples);
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// Keys with rows.
class KnownKeysTest : public DeviceDistinctTest {
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
    return ExpectDefinition(rows_.get(), ids, offsets, 100, index_)
        .unknown_keys;
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
  std::vector<int64_t> here;
  for (int round = 0; round < 30; ++round) {
    std::vector<int64_t> ids = here;
    for (int i = 0; i < 600; ++i) {
      const int64_t key = static_cast<int64_t>(random());
      if (index_.count(key) != 0) continue;
      Insert({key});
      ids.push_back(key);
    }
    std::shuffle(ids.begin(), ids.end(), random);
    ASSERT_EQ(std::vector<int64_t>(), UnknownAmong(ids)) << round;
    const std::vector<int64_t> gone(ids.begin(), ids.begin() + ids.size() / 2);
    here.assign(ids.begin() + ids.size() / 2, ids.end());
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
        ExpectDefinition(rows_.get(), ids, RandomOffsets(900, 3, round), 200,
                         index_);
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
  ASSERT_OK(step.ids->Start({}));
  ASSERT_OK(step.Finish());
  ASSERT_OK(step.ids->Settle());
  ASSERT_EQ(2, step.ids->num_unknown());
  EXPECT_EQ(10, step.ids->unknown_keys()[0]);
  EXPECT_EQ(2, step.ids->unknown_counts()[0]);
  EXPECT_EQ(12, step.ids->unknown_keys()[1]);
  const std::vector<float> grads = {1, 2, 4, 8, 16}, hyper = {1.0f};
  GpuStepUpdate update;
  update.table = rows_.get();
  const auto apply = [&] {
    std::unique_ptr<DeviceGradients> put;
    EV_RETURN_IF_ERROR(rows_->StartGradients(grads.data(), 5, &put));
    if (put->needs_put()) {
      EV_RETURN_IF_ERROR(put->Put(0, Span<const float>(grads)));
    }
    update.put_grads = put.get();
    std::unique_ptr<GpuStepNotes> notes;
    return step.step->Update(
        "SGD", hyper, Span<const GpuStepUpdate>(&update, 1), nullptr, &notes);
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
  ASSERT_OK(step.ids->Fetch());
  ASSERT_EQ(4, step.ids->num_unique());
  EXPECT_EQ((std::vector<RowHandle>{2, 0, kNoRow, 1}),
            std::vector<RowHandle>(step.ids->names(), step.ids->names() + 4));
}

}  // namespace
}  // namespace ev
