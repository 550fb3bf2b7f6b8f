// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests a table with an admission filter: which keys are trained, when, and
// what is counted.

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/pages.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/testing/erased.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/thread_pool.h"
#include "kernels/engine/testing/unique_keys.h"

namespace ev {
namespace {

using testing::UniqueKeys;

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

using Keys = std::vector<int64_t>;
using Filter = AdmissionOptions::Filter;

constexpr float kNoPermission = -5.0f;

TableOptions Options(Filter filter, int64_t threshold) {
  TableOptions options;
  options.name = "t";
  options.dim = 2;
  testing::PutUnderTest(&options);
  options.record_version = true;
  options.admission.filter = filter;
  options.admission.threshold = threshold;
  options.admission.no_permission = kNoPermission;
  options.admission.max_keys = 100000;
  options.admission.false_positive = 1e-6;
  options.admission.counter_bits = 32;
  return options;
}

// Default row of key k: 10 + floormod(k, 3) in each element.
std::shared_ptr<EmbeddingTable> MakeTable(const TableOptions& options) {
  auto table = std::make_shared<EmbeddingTable>(options);
  std::vector<float> rows;
  for (int r = 0; r < 3; ++r) rows.insert(rows.end(), options.dim, 10.0f + r);
  const Status status = table->Initialize(rows, 3);
  EXPECT_TRUE(status.ok()) << status.message();
  return table;
}

float Default(int64_t key) { return 10.0f + ((key % 3) + 3) % 3; }

// Returns the first elements of the rows that a lookup returns.
std::vector<float> Look(const EmbeddingTable& table, const Keys& keys) {
  const int64_t dim = table.options().dim;
  std::vector<float> out(keys.size() * dim);
  EXPECT_TRUE(table.Gather(keys, out.data(), nullptr).ok());
  std::vector<float> first;
  for (size_t i = 0; i < keys.size(); ++i) first.push_back(out[i * dim]);
  return first;
}

// Trains by SGD with rate 1 and gradient 1 for every occurrence, so the
// elements of a trained row fall by the number of its occurrences. Uses a plan,
// as a training step does.
void Train(const std::shared_ptr<EmbeddingTable>& table, const Keys& keys,
           int64_t step, Parallel* parallel = nullptr) {
  const int64_t n = keys.size();
  std::vector<int64_t> splits(n + 1);
  for (int64_t i = 0; i <= n; ++i) splits[i] = i;
  PooledInput in;
  in.table = table.get();
  in.combiner = Combiner::kSum;
  in.batch_size = in.num_ids = n;
  in.ids64 = keys.data();
  in.row_splits = splits.data();
  const int64_t dim = table->options().dim;
  std::vector<float> output(n * dim), ones(n * dim, 1.0f);
  std::shared_ptr<const LookupPlan> plan;
  ASSERT_OK(PooledForward(std::vector<PooledInput>{in}, {table},
                          std::vector<float*>{output.data()}, parallel, &plan));
  std::vector<float> sums(UniqueKeys(*plan, 0).size() * dim);
  ASSERT_OK(PooledBackward(*plan, std::vector<const float*>{ones.data()},
                           std::vector<float*>{sums.data()}, parallel));
  UpdateInput update;
  update.table = table.get();
  update.keys = UniqueKeys(*plan, 0);
  update.grads = sums.data();
  update.plan = plan.get();
  ASSERT_OK(ApplyRule("SGD", std::vector<float>{1.0f},
                      std::vector<UpdateInput>{update},
                      std::vector<std::vector<SlotSpec>>(1), step, parallel));
}

// The same without a plan.
void TrainPlain(EmbeddingTable* table, const Keys& keys, int64_t step,
                Parallel* parallel = nullptr) {
  const std::vector<float> ones(keys.size() * table->options().dim, 1.0f);
  UpdateInput update;
  update.table = table;
  update.keys = keys;
  update.grads = ones.data();
  ASSERT_OK(ApplyRule("SGD", std::vector<float>{1.0f},
                      std::vector<UpdateInput>{update},
                      std::vector<std::vector<SlotSpec>>(1), step, parallel));
}

struct Meta {
  std::vector<int64_t> frequencies, versions;
};
Meta MetaOf(const EmbeddingTable& table, const Keys& keys) {
  Meta meta;
  meta.frequencies.resize(keys.size());
  meta.versions.resize(keys.size());
  EXPECT_TRUE(
      table.GetMeta(keys, meta.frequencies.data(), meta.versions.data()).ok());
  return meta;
}

class AdmissionTest : public ::testing::TestWithParam<Filter> {};

INSTANTIATE_TEST_SUITE_P(Filters, AdmissionTest,
                         ::testing::Values(Filter::kCounter, Filter::kBloom));

TEST_P(AdmissionTest, TheOccurrenceThatReachesTheThresholdIsTrained) {
  const auto table = MakeTable(Options(GetParam(), 3));
  const Keys batch = {1, 2, 1, 3, 4, 2, 1, 3, 2, 1};  // 4, 3, 2 and 1 times
  const Keys keys = {1, 2, 3, 4};
  EXPECT_EQ(Look(*table, keys), std::vector<float>(4, kNoPermission));
  Train(table, batch, 0);
  // Keys 1 and 2 are trained in the same step, starting from their default
  // rows.
  EXPECT_EQ(Look(*table, keys),
            (std::vector<float>{Default(1) - 4, Default(2) - 3, kNoPermission,
                                kNoPermission}));
  EXPECT_EQ(table->size(), 2);
  EXPECT_EQ(MetaOf(*table, keys).frequencies, (Keys{4, 3, 2, 1}));
  Train(table, batch, 1);
  EXPECT_EQ(Look(*table, keys),
            (std::vector<float>{Default(1) - 8, Default(2) - 6, Default(3) - 2,
                                kNoPermission}));
  EXPECT_EQ(MetaOf(*table, keys).frequencies, (Keys{8, 6, 4, 2}));
  Train(table, batch, 2);
  EXPECT_EQ(Look(*table, keys)[3], Default(4) - 1);
  EXPECT_EQ(MetaOf(*table, keys).frequencies, (Keys{12, 9, 6, 3}));
  EXPECT_EQ(MetaOf(*table, keys).versions, (Keys{2, 2, 2, 2}));
}

TEST_P(AdmissionTest, LookupsNeitherInsertNorCount) {
  const auto table = MakeTable(Options(GetParam(), 2));
  for (int i = 0; i < 5; ++i) Look(*table, {1, 1, 2});
  Train(table, {1}, 0);
  EXPECT_EQ(table->size(), 0);
  EXPECT_EQ(MetaOf(*table, {1, 2}).frequencies, (Keys{1, 0}));
}

TEST_P(AdmissionTest, WithoutAPlanTheResultIsTheSame) {
  const auto table = MakeTable(Options(GetParam(), 3));
  TrainPlain(table.get(), {7, 7}, 0);
  EXPECT_EQ(Look(*table, {7})[0], kNoPermission);
  TrainPlain(table.get(), {7, 8}, 1);
  EXPECT_EQ(Look(*table, {7, 8}),
            (std::vector<float>{Default(7) - 1, kNoPermission}));
  EXPECT_EQ(MetaOf(*table, {7, 8}).frequencies, (Keys{3, 1}));
}

TEST_P(AdmissionTest, ATableThatComesTwiceIsCountedInOrder) {
  const auto table = MakeTable(Options(GetParam(), 2));
  const Keys keys = {5};
  const std::vector<float> ones = {1.0f, 1.0f};
  UpdateInput update;
  update.table = table.get();
  update.keys = keys;
  update.grads = ones.data();
  ASSERT_OK(ApplyRule("SGD", std::vector<float>{1.0f},
                      std::vector<UpdateInput>{update, update},
                      std::vector<std::vector<SlotSpec>>(2), 0, nullptr));
  EXPECT_EQ(Look(*table, keys)[0], Default(5) - 1);
}

TEST_P(AdmissionTest, AdmitServesTheGenericOptimizerPath) {
  const auto table = MakeTable(Options(GetParam(), 3));
  std::vector<int32_t> admitted;
  const Keys keys = {1, 2, 3};
  ASSERT_OK(table->Admit(keys, Keys{1, 3, 2}.data(), 0, &admitted));
  EXPECT_EQ(admitted, std::vector<int32_t>{1});
  EXPECT_EQ(table->size(), 1);
  EXPECT_EQ(MetaOf(*table, keys).frequencies[0], 1);
  EXPECT_EQ(MetaOf(*table, keys).frequencies[2], 2);
  ASSERT_OK(table->Admit(keys, nullptr, 1, &admitted));
  EXPECT_EQ(admitted, (std::vector<int32_t>{1, 2}));
  // ReadRows returns what a new row would be, regardless of the filter.
  std::vector<float> values(2 * 3);
  ASSERT_OK(table->ReadRows(keys, {}, values.data(), {}, nullptr));
  EXPECT_EQ(values[0], Default(1));
  // A write admits.
  ASSERT_OK(
      table->WriteRows(Keys{1}, {}, values.data(), {}, nullptr, 4, nullptr));
  EXPECT_EQ(table->size(), 3);
  EXPECT_EQ(Look(*table, {1})[0], Default(1));
  EXPECT_EQ(table->stats().filtered_keys, 0);
}

TEST_P(AdmissionTest, WithoutAFilterAdmitTakesAllAndInsertsNone) {
  const auto table = MakeTable(Options(Filter::kNone, 3));
  std::vector<int32_t> admitted;
  ASSERT_OK(table->Admit(Keys{4, 9}, nullptr, 0, &admitted));
  EXPECT_EQ(admitted, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(table->size(), 0);
  EXPECT_EQ(Look(*table, {4})[0], Default(4));
}

TEST_P(AdmissionTest, ThreadsDoNotChangeWhatIsAdmitted) {
  // The Bloom filter is so small that keys often share counters.
  TableOptions options = Options(GetParam(), 4);
  options.admission.max_keys = 500;
  options.admission.false_positive = 0.2;
  testing::ThreadPool pool(4);
  const auto alone = MakeTable(options);
  const auto together = MakeTable(options);
  std::mt19937_64 random(5);
  for (int step = 0; step < 6; ++step) {
    Keys batch(20000);
    for (int64_t& key : batch) {
      key = static_cast<int64_t>(random() % 9000) - 4500;
    }
    if (step % 2 == 0) {
      Train(alone, batch, step);
      Train(together, batch, step, &pool);
    } else {
      TrainPlain(alone.get(), batch, step);
      TrainPlain(together.get(), batch, step, &pool);
    }
  }
  TableSnapshot a, b;
  ASSERT_OK(alone->Export({}, &a));
  ASSERT_OK(together->Export({}, &b));
  EXPECT_GT(a.keys.size(), 1000u);
  EXPECT_EQ(a.keys, b.keys);
  EXPECT_EQ(a.values, b.values);
  EXPECT_EQ(a.frequencies, b.frequencies);
  EXPECT_EQ(a.versions, b.versions);
  EXPECT_EQ(a.filtered_keys, b.filtered_keys);
  EXPECT_EQ(a.filtered_frequencies, b.filtered_frequencies);
  EXPECT_EQ(a.filtered_versions, b.filtered_versions);
}

TEST_P(AdmissionTest, ConcurrentUpdatesLoseNoOccurrence) {
  const int kThreads = 4, kRounds = 50;
  const auto table = MakeTable(Options(GetParam(), 30));
  Keys keys;
  for (int64_t key = 0; key < 64; ++key) keys.push_back(key * 977);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) TrainPlain(table.get(), keys, i);
    });
  }
  threads.emplace_back([&] {
    for (int i = 0; i < kRounds; ++i) {
      MetaOf(*table, keys);
      Look(*table, keys);
      TableSnapshot snapshot;
      ASSERT_OK(table->Export({}, &snapshot));
    }
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(table->size(), 64);
  EXPECT_EQ(table->stats().filtered_keys, 0);
  const Meta meta = MetaOf(*table, keys);
  // A Bloom filter is read after all keys of a batch were added: the count that
  // a row starts with may include two concurrent batches.
  const int64_t slack = GetParam() == Filter::kBloom ? kThreads - 1 : 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    EXPECT_GE(meta.frequencies[i], kThreads * kRounds);
    EXPECT_LE(meta.frequencies[i], kThreads * kRounds + slack);
  }
}

TEST(CounterFilterTest, EveryKeyAgainstAModel) {
  const int64_t kThreshold = 5;
  const auto table = MakeTable(Options(Filter::kCounter, kThreshold));
  std::map<int64_t, int64_t> seen;
  std::map<int64_t, float> rows;
  std::mt19937_64 random(3);
  const Keys extremes = {0, -1, std::numeric_limits<int64_t>::min(),
                         std::numeric_limits<int64_t>::max()};
  for (int step = 0; step < 60; ++step) {
    Keys batch;
    for (int i = 0; i < 200; ++i) {
      const uint64_t x = random() % 900;
      batch.push_back(x < extremes.size()
                          ? extremes[x]
                          : static_cast<int64_t>(x * x) - 300000);
    }
    Train(table, batch, step);
    std::map<int64_t, int64_t> times;
    for (const int64_t key : batch) ++times[key];
    for (const auto& entry : times) {
      seen[entry.first] += entry.second;
      if (seen[entry.first] < kThreshold) continue;
      auto at = rows.emplace(entry.first, Default(entry.first)).first;
      at->second -= entry.second;
    }
  }
  ASSERT_EQ(table->size(), static_cast<int64_t>(rows.size()));
  EXPECT_EQ(table->stats().filtered_keys,
            static_cast<int64_t>(seen.size() - rows.size()));
  for (const auto& entry : seen) {
    const auto row = rows.find(entry.first);
    EXPECT_EQ(Look(*table, {entry.first})[0],
              row == rows.end() ? kNoPermission : row->second);
    EXPECT_EQ(MetaOf(*table, {entry.first}).frequencies[0], entry.second);
  }
}

TEST(CounterFilterTest, TrainingContinuesAfterExportAndImport) {
  const auto table = MakeTable(Options(Filter::kCounter, 3));
  Train(table, {1, 1, 1, -2, 3, 3}, 4);
  TableSnapshot snapshot;
  ASSERT_OK(table->Export({}, &snapshot));
  EXPECT_EQ(snapshot.keys, Keys{1});
  EXPECT_EQ(snapshot.filtered_keys, (Keys{3, -2}));  // 3 and 998 mod 1000
  EXPECT_EQ(snapshot.filtered_frequencies, (Keys{2, 1}));
  EXPECT_EQ(snapshot.filtered_versions, (Keys{4, 4}));
  ASSERT_EQ(snapshot.filtered_partition_offset.size(), 1001u);
  EXPECT_EQ(snapshot.filtered_partition_offset[3], 0);
  EXPECT_EQ(snapshot.filtered_partition_offset[4], 1);
  EXPECT_EQ(snapshot.filtered_partition_offset[1000], 2);

  const auto restored = MakeTable(Options(Filter::kCounter, 3));
  const auto import = [&](EmbeddingTable* to, int part, int num_parts) {
    ASSERT_OK(to->Import(snapshot.keys, snapshot.values.data(), {}, {},
                         snapshot.versions, snapshot.frequencies, part,
                         num_parts));
    ASSERT_OK(
        to->ImportFiltered(snapshot.filtered_keys, snapshot.filtered_versions,
                           snapshot.filtered_frequencies, part, num_parts));
  };
  import(restored.get(), 0, 1);
  for (const auto& each : {table, restored}) Train(each, {3, -2}, 5);
  TableSnapshot a, b;
  ASSERT_OK(table->Export({}, &a));
  ASSERT_OK(restored->Export({}, &b));
  EXPECT_EQ(a.keys, b.keys);
  EXPECT_EQ(a.values, b.values);
  EXPECT_EQ(a.frequencies, b.frequencies);
  EXPECT_EQ(a.filtered_keys, b.filtered_keys);
  EXPECT_EQ(a.filtered_frequencies, b.filtered_frequencies);

  // Part 0 of 2 imports only the even remainders.
  const auto part = MakeTable(Options(Filter::kCounter, 3));
  import(part.get(), 0, 2);
  EXPECT_EQ(part->size(), 0);
  EXPECT_EQ(part->stats().filtered_keys, 1);
  EXPECT_EQ(MetaOf(*part, {-2, 3}).frequencies, (Keys{1, 0}));
}

std::atomic<int64_t> allocations_left{0};

TEST_P(AdmissionTest, AnUpdateThatFailsCountsNothing) {
  int failures = 0;
  for (int64_t allowed = 0; allowed < 60; ++allowed) {
    const auto table = MakeTable(Options(GetParam(), 3));
    // Key k has occurred k % 5 times; 3 and 4 have rows.
    Keys batch, keys;
    for (int64_t key = 0; key < 200; ++key) {
      batch.insert(batch.end(), key % 5, key);
    }
    Train(table, batch, 4);
    // Many keys are new; some have occurred often enough to be admitted.
    Keys more = batch;
    for (int64_t key = 0; key < 9000; ++key) {
      more.insert(more.end(), 1 + key % 4, key);
      keys.push_back(key);
    }
    const Meta before = MetaOf(*table, keys);
    const std::vector<float> rows = Look(*table, keys);
    const TableStats stats = table->stats();
    const std::vector<float> ones(more.size() * 2, 1.0f);
    UpdateInput update;
    update.table = table.get();
    update.keys = more;
    update.grads = ones.data();
    allocations_left = allowed;
    SetAllocationHookForTesting([](size_t) { return allocations_left-- > 0; });
    const Status status = ApplyRule(
        "SGD", std::vector<float>{1.0f}, std::vector<UpdateInput>{update},
        std::vector<std::vector<SlotSpec>>(1), 5, nullptr);
    SetAllocationHookForTesting(nullptr);
    if (status.ok()) break;
    ++failures;
    ASSERT_EQ(status.code(), StatusCode::kResourceExhausted);
    const Meta after = MetaOf(*table, keys);
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(after.frequencies[i], before.frequencies[i])
          << "key " << keys[i] << ", " << status.message();
    }
    ASSERT_EQ(after.versions, before.versions);
    ASSERT_EQ(Look(*table, keys), rows);
    ASSERT_EQ(table->size(), stats.rows);
    ASSERT_EQ(table->stats().filtered_keys, stats.filtered_keys);
    ASSERT_EQ(table->stats().inserted_rows, stats.inserted_rows);
  }
  EXPECT_GT(failures, 0);
}

TEST_P(AdmissionTest, AnotherThresholdAtImport) {
  const auto lower = MakeTable(Options(GetParam(), 2));
  // A row stays, with a count of at least the threshold. A counted key is
  // admitted by the new threshold, unless it has a row by now.
  ASSERT_OK(lower->Import(Keys{1}, std::vector<float>{7, 7}.data(), {}, {}, {},
                          Keys{1}, 0, 1));
  ASSERT_OK(
      lower->ImportFiltered(Keys{5, 6, 1}, Keys{8, 9, 9}, Keys{2, 1, 9}, 0, 1));
  EXPECT_EQ(lower->size(), 2);
  EXPECT_EQ(Look(*lower, {1, 5, 6}),
            (std::vector<float>{7, Default(5), kNoPermission}));
  EXPECT_EQ(MetaOf(*lower, {1, 5, 6}).frequencies, (Keys{2, 2, 1}));
  EXPECT_EQ(MetaOf(*lower, {5}).versions, Keys{8});
  // Without a filter counts are dropped.
  const auto none = MakeTable(Options(Filter::kNone, 0));
  ASSERT_OK(none->ImportFiltered(Keys{5, 6}, {}, {}, 0, 1));
  EXPECT_EQ(none->size(), 0);
}

TEST(CounterFilterTest, EraseAndClearForgetWhatWasCounted) {
  const auto table = MakeTable(Options(Filter::kCounter, 3));
  Train(table, {1, 1, 2, 2, 9, 9, 9}, 0);
  EXPECT_EQ(testing::Erased(table.get(), Keys{1, 9}), 1);
  EXPECT_EQ(table->stats().filtered_keys, 1);
  Train(table, {1, 2}, 1);
  EXPECT_EQ(Look(*table, {1, 2}),
            (std::vector<float>{kNoPermission, Default(2) - 1}));
  ASSERT_OK(table->Clear());
  EXPECT_EQ(table->stats().filtered_keys, 0);
  Train(table, {1, 1}, 2);
  EXPECT_EQ(table->size(), 0);
}

TEST(CounterFilterTest, CountersOfAdmittedKeysAreUsedAgain) {
  const auto table = MakeTable(Options(Filter::kCounter, 2));
  int64_t bytes = 0;
  for (int round = 0; round < 40; ++round) {
    Keys keys(5000);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = round * 5000 + i;
    Train(table, keys, 0);
    EXPECT_EQ(table->stats().filtered_keys, 5000);
    if (round == 0) bytes = table->stats().filter_bytes;
    Train(table, keys, 1);
    EXPECT_EQ(table->stats().filtered_keys, 0);
  }
  Train(table, {-1}, 2);
  EXPECT_LE(table->stats().filter_bytes, 2 * bytes);
}

TEST(AdmissionOptionsTest, InvalidOptionsAreErrors) {
  const auto initialize = [](const TableOptions& options) {
    EmbeddingTable table(options);
    return table.Initialize(std::vector<float>(2, 0.0f), 1);
  };
  TableOptions options = Options(Filter::kCounter, 0);
  EXPECT_EQ(initialize(options).code(), StatusCode::kInvalidArgument);
  EXPECT_NE(initialize(options).message().find("table 't'"), std::string::npos);
  options = Options(Filter::kBloom, 300);
  options.admission.counter_bits = 8;
  EXPECT_EQ(initialize(options).code(), StatusCode::kInvalidArgument);
  options.admission.counter_bits = 16;
  ASSERT_OK(initialize(options));
  options.admission.false_positive = 1.5;
  EXPECT_EQ(initialize(options).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace ev
