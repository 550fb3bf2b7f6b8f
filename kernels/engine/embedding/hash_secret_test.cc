// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tables place keys by a secret that each process draws. Nothing may depend on
// it: the same training gives the same bits under any secret.

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/keyed_hash.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/update/pooled_update.h"
#include "kernels/engine/embedding/update/row_update.h"
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

const std::vector<std::string> kSlots = {"Adagrad"};

// All results that a caller sees, as bytes.
class Record {
 public:
  template <typename T>
  void Add(const std::vector<T>& values) {
    const int64_t size = values.size();
    bytes_.append(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes_.append(reinterpret_cast<const char*>(values.data()),
                  values.size() * sizeof(T));
  }
  void Add(const TableSnapshot& snapshot) {
    Add(snapshot.keys);
    Add(snapshot.values);
    for (const std::vector<float>& slot : snapshot.slots) Add(slot);
    Add(snapshot.versions);
    Add(snapshot.frequencies);
    Add(snapshot.partition_offset);
    Add(snapshot.filtered_keys);
    Add(snapshot.filtered_versions);
    Add(snapshot.filtered_frequencies);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

std::shared_ptr<EmbeddingTable> MakeTable(int64_t max_rows,
                                          CacheStrategy strategy,
                                          int64_t threshold) {
  TableOptions options;
  options.name = "t";
  options.dim = 2;
  testing::PutUnderTest(&options);
  options.record_version = options.record_frequency = true;
  options.capacity.max_rows = max_rows;
  options.capacity.strategy = strategy;
  if (threshold > 0) {
    options.admission.filter = AdmissionOptions::Filter::kCounter;
    options.admission.threshold = threshold;
  }
  const auto table = std::make_shared<EmbeddingTable>(options);
  EXPECT_TRUE(table->Initialize(std::vector<float>{0, 1, 2, 3}, 2).ok());
  return table;
}

// A training step: a lookup, whose output is recorded, and an update.
void Step(const std::shared_ptr<EmbeddingTable>& table, const Keys& ids,
          int64_t step, Parallel* parallel, Record* record) {
  const int64_t n = ids.size();
  std::vector<int64_t> splits;
  for (int64_t i = 0; i < n; i += 3) splits.push_back(i);
  splits.push_back(n);
  PooledInput in;
  in.table = table.get();
  in.combiner = Combiner::kMean;
  in.batch_size = splits.size() - 1;
  in.num_ids = n;
  in.ids64 = ids.data();
  in.row_splits = splits.data();
  std::vector<float> output(in.batch_size * 2);
  std::shared_ptr<const LookupPlan> plan;
  ASSERT_OK(PooledForward(std::vector<PooledInput>{in}, {table},
                          std::vector<float*>{output.data()}, parallel, &plan));
  record->Add(output);
  for (size_t i = 0; i < output.size(); ++i) output[i] = 1 + i % 5 - output[i];
  std::vector<float> sums(UniqueKeys(*plan, 0).size() * 2);
  ASSERT_OK(PooledBackward(*plan, std::vector<const float*>{output.data()},
                           std::vector<float*>{sums.data()}, parallel));
  record->Add(Keys(UniqueKeys(*plan, 0).begin(), UniqueKeys(*plan, 0).end()));
  record->Add(sums);
  UpdateInput update;
  update.table = table.get();
  update.keys = UniqueKeys(*plan, 0);
  update.grads = sums.data();
  update.plan = plan.get();
  const std::vector<std::vector<SlotSpec>> slots = {{{"Adagrad", 0.1f}}};
  ASSERT_OK(ApplyRule("Adagrad", std::vector<float>{0.5f},
                      std::vector<UpdateInput>{update}, slots, step, parallel));
}

void AddExport(const EmbeddingTable& table, Record* record) {
  TableSnapshot snapshot;
  ASSERT_OK(table.Export(kSlots, &snapshot));
  record->Add(snapshot);
}

// Trains a table too large to consider all rows for eviction, a small one, and
// one with a filter.
void Train(Parallel* parallel, Record* record) {
  std::mt19937_64 random(17);
  const auto ids = [&](size_t n, uint64_t range) {
    Keys keys(n);
    for (int64_t& key : keys) {
      key = static_cast<int64_t>(random() % range * 0x10001) - 500;
    }
    return keys;
  };
  const auto large = MakeTable(6000, CacheStrategy::kLfu, 0);
  const auto small = MakeTable(200, CacheStrategy::kLru, 0);
  const auto filtered = MakeTable(0, CacheStrategy::kLfu, 2);
  for (int64_t step = 0; step < 6; ++step) {
    Step(large, ids(5000, 20000), step, parallel, record);
    Step(small, ids(300, 1000), step, parallel, record);
    Step(filtered, ids(2000, 3000), step, parallel, record);
    // Evicted keys are recorded in their order.
    const Keys asked = ids(100, 100000);
    Keys gone;
    std::vector<float> out(asked.size() * 2), gone_values;
    for (const auto& table : {large, small}) {
      ASSERT_OK(
          table->ReadAndEvict(asked, step, out.data(), &gone, &gone_values));
      EXPECT_TRUE(!gone.empty() || step == 0);
      record->Add(out);
      record->Add(gone);
      record->Add(gone_values);
    }
  }
  // Too long for one task.
  Step(filtered, ids(150000, 4000), 6, parallel, record);
  int64_t evicted;
  ASSERT_OK(filtered->EvictStale(9, 4, &evicted));
  record->Add(Keys{evicted});
  ASSERT_OK(large->EvictWeak(0.4f, &evicted));
  record->Add(Keys{evicted});
  Step(large, ids(5000, 20000), 7, parallel, record);
  for (const auto& table : {large, small, filtered}) {
    AddExport(*table, record);
    record->Add(Keys{table->size(), table->stats().evicted_rows,
                     table->stats().index_bytes});
  }
}

TEST(HashSecretTest, ResultsDoNotDependOnTheSecret) {
  testing::ThreadPool pool(3);
  Record drawn;
  Train(nullptr, &drawn);
  EXPECT_GT(drawn.bytes().size(), size_t{100000});
  for (uint64_t seed = 0; seed < 3; ++seed) {
    const ScopedHashForTesting given(KeyedHash::FromSeed(seed));
    Record record;
    Train(seed == 0 ? &pool : nullptr, &record);
    EXPECT_TRUE(record.bytes() == drawn.bytes()) << seed;
  }
}

}  // namespace
}  // namespace ev
