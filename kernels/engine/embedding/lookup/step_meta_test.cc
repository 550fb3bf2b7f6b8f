// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares steps of tables that record numbers about their rows, or have a
// filter, with tables in CPU memory, number by number and key by key.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/lookup/step_under_test.h"
#include "kernels/engine/embedding/table_reader.h"
#include "kernels/engine/testing/erased.h"

namespace ev {
namespace {

class StepMetaTest : public StepLookupTest {
 protected:
  // All kinds of recorded numbers and filters; table 7 is plain.
  void Choose(int t, TableOptions* options) override {
    options->counts_on_gpu = t != 3;
    switch (t) {
      case 0:
        options->record_frequency = true;
        break;
      case 1:
        options->record_version = true;
        break;
      case 2:
      case 6:
        options->admission.filter = AdmissionOptions::Filter::kCounter;
        options->admission.threshold = 3;
        options->admission.no_permission = 0.75f;
        options->record_version = t == 6;
        break;
      case 3:
        options->admission.filter = AdmissionOptions::Filter::kBloom;
        options->admission.threshold = 4;
        options->admission.no_permission = -2.0f;
        options->admission.max_keys = 5000;
        options->admission.false_positive = 0.01;
        break;
      case 4:
        options->capacity.max_rows = 60;
        options->capacity.strategy = CacheStrategy::kLru;
        break;
      case 5:
        options->capacity.max_rows = 300;
        options->capacity.strategy = CacheStrategy::kLfu;
        break;
    }
    *options = options->Completed();
  }

  void SetUp() override {
    StepLookupTest::SetUp();
    Cut();
  }

  // Changes are recorded for a table whose rows count, and for one whose rows
  // do not.
  static constexpr size_t kRecorded[] = {0, 8};

  void Cut() {
    for (size_t t : kRecorded) {
      int64_t cpu_cut = 0;
      ASSERT_OK(cpu_tables_[t]->CutChanges(&cpu_cut));
      ASSERT_OK(device_tables_[t]->CutChanges(&cuts_[t]));
      ASSERT_EQ(cpu_cut, cuts_[t]);
    }
  }

  void TrainStep(int seed) {
    step_ = seed + 10;
    Train(Adagrad(), seed);
  }

  static void ExpectSame(const TableSnapshot& a, const TableSnapshot& b,
                         size_t t) {
    EXPECT_EQ(a.keys, b.keys) << t;
    EXPECT_EQ(a.values, b.values) << t;
    EXPECT_EQ(a.slots, b.slots) << t;
    EXPECT_EQ(a.versions, b.versions) << t;
    EXPECT_EQ(a.frequencies, b.frequencies) << t;
    EXPECT_EQ(a.filtered_keys, b.filtered_keys) << t;
    EXPECT_EQ(a.filtered_versions, b.filtered_versions) << t;
    EXPECT_EQ(a.filtered_frequencies, b.filtered_frequencies) << t;
  }

  void ExpectSameNumbers() {
    for (size_t t = 0; t < cpu_tables_.size(); ++t) {
      TableSnapshot a, b;
      ASSERT_OK(cpu_tables_[t]->Export(Slots(), &a));
      ASSERT_OK(device_tables_[t]->Export(Slots(), &b));
      ASSERT_GT(a.keys.size(), 0u);
      ExpectSame(a, b, t);
    }
    ExpectSameChanges();
  }

  void ExpectSameChanges() {
    for (size_t t : kRecorded) {
      TableDelta a, b;
      ASSERT_OK(cpu_tables_[t]->ExportChanges(cuts_[t], Slots(), &a));
      ASSERT_OK(device_tables_[t]->ExportChanges(cuts_[t], Slots(), &b));
      ASSERT_GT(a.changed.keys.size(), 0u);
      EXPECT_EQ(a.replaces, b.replaces) << t;
      EXPECT_EQ(a.erased, b.erased) << t;
      ExpectSame(a.changed, b.changed, t);
      EXPECT_EQ(a.cut, b.cut) << t;
      cuts_[t] = a.cut;
    }
  }

  // Number of ids of all tables, in updates and lookups, that the device found
  // itself.
  int64_t IdsByDevice() const {
    int64_t ids = 0;
    for (const Table& table : device_tables_) ids += table->tier_stats().hits;
    return ids;
  }

  // The same for table t alone.
  std::vector<UpdateInput> UpdatesOnDevice(const std::vector<Batch>& batches,
                                           const LookupPlan& plan, int t) {
    float* const grads = stream_->Allocate(batches[t].grads.size());
    stream_->Fill(batches[t].grads, grads);
    UpdateInput update;
    update.table = device_tables_[t].get();
    update.plan = &plan;
    update.plan_table = t;
    update.pooled_grads = grads;
    update.stream = &on_;
    return {update};
  }

  static std::vector<std::string> Slots() { return {"Adagrad"}; }

  std::map<size_t, int64_t> cuts_;
  std::vector<std::vector<UpdateInput>> updates_;
};

constexpr size_t StepMetaTest::kRecorded[];

// The metadata updates of each update are copied to the CPU for tables with a
// capacity, for one by its options (3), and for one of which only changes are
// recorded (8).
TEST_F(StepMetaTest, OnlySomeTablesNeedTheMetadataUpdatesOfSteps) {
  ASSERT_NE(nullptr, device_tables_[0]->impl()->home->gpu_table());
  for (size_t t : {0, 1, 2, 6}) {
    EXPECT_TRUE(device_tables_[t]->impl()->keeps_counters()) << t;
    EXPECT_FALSE(device_tables_[t]->impl()->needs_meta_updates()) << t;
  }
  for (size_t t : {3, 4, 5, 8}) {
    EXPECT_FALSE(device_tables_[t]->impl()->keeps_counters()) << t;
    EXPECT_TRUE(device_tables_[t]->impl()->needs_meta_updates()) << t;
  }
  EXPECT_FALSE(device_tables_[7]->impl()->keeps_counters());
  EXPECT_FALSE(device_tables_[7]->impl()->needs_meta_updates());
  // Its rows keep their first call, which pending counters do not record.
  TableOptions options;
  options.dim = 4;
  options.record_version = options.counts_on_gpu = true;
  options.capacity.strategy = CacheStrategy::kFifo;
  const Table fifo = MakeTable(9, options, testing::StorageUnderTest());
  EXPECT_FALSE(fifo->impl()->keeps_counters());
  EXPECT_TRUE(fifo->impl()->needs_meta_updates());
}

TEST_F(StepMetaTest, RowsCountWhatTheyCountInCpuMemory) {
  // Keys are new, are then admitted, all have rows, and are evicted.
  for (int seed : {0, 1, 2, 2, 2, 3, 0, 4}) {
    TrainStep(seed);
    ExpectSameNumbers();
  }
  for (size_t t = 0; t < 4; ++t) EXPECT_GT(cpu_tables_[t]->size(), 0) << t;
  EXPECT_GT(cpu_tables_[2]->stats().filtered_keys, 0);
  EXPECT_GT(cpu_tables_[4]->stats().evicted_rows, 0);
  EXPECT_GT(cpu_tables_[5]->stats().evicted_rows, 0);
}

TEST_F(StepMetaTest, IdsOnTheDeviceCountAsMuch) {
  ids_ = Ids::kDevice;
  for (int seed : {0, 1, 1, 2}) TrainStep(seed);
  ExpectSameNumbers();
}

TEST_F(StepMetaTest, TheirUpdatesStayOnTheDevice) {
  if (!testing::CountsIdsByFinder()) GTEST_SKIP() << "counts rows by memory";
  TrainStep(0);
  const std::vector<Batch> batches = Batches(1);
  int64_t num_ids = 0;
  for (const Batch& batch : batches) num_ids += batch.ids.size();
  Plan cpu_plan, device_plan;
  LookUpBoth(batches, &cpu_plan, &device_plan);
  const int64_t before = IdsByDevice();
  UpdateBoth(Adagrad(), batches, *cpu_plan, *device_plan);
  EXPECT_EQ(before + num_ids, IdsByDevice());
}

// A handle in the plan may have become another key's row, so handles are
// fetched.
TEST_F(StepMetaTest, KeysMayBeErasedBeforeTheirUpdate) {
  for (int seed : {0, 1, 1}) TrainStep(seed);
  const std::vector<Batch> batches = Batches(1);
  Plan cpu_plan, device_plan;
  LookUpBoth(batches, &cpu_plan, &device_plan);
  for (size_t t = 0; t < batches.size(); ++t) {
    const std::vector<int64_t> gone(batches[t].ids.begin(),
                                    batches[t].ids.begin() + 20);
    EXPECT_EQ(testing::Erased(cpu_tables_[t].get(), gone),
              testing::Erased(device_tables_[t].get(), gone))
        << t;
  }
  UpdateBoth(Adagrad(), batches, *cpu_plan, *device_plan);
  TrainStep(1);
  ExpectSameNumbers();
}

// While a snapshot is open, handles are fetched, and updates copy rows first.
TEST_F(StepMetaTest, RowsCountOnWhileTablesAreSaved) {
  for (int seed : {0, 1, 1}) TrainStep(seed);
  std::vector<TableSnapshot> before(device_tables_.size());
  std::vector<std::unique_ptr<TableReader>> readers(device_tables_.size());
  // The other tables evict, or have a filter, whose counts are read first:
  // their updates wait.
  for (size_t t : {0, 1, 7, 8}) {
    ASSERT_OK(device_tables_[t]->Export(Slots(), &before[t]));
    ASSERT_OK(TableReader::Open(*device_tables_[t], Slots(), &readers[t]));
  }
  // The thread of a reader makes no other call on the table.
  std::thread([this] {
    const std::vector<Batch> batches = Batches(1);
    step_ = 20;
    Plan cpu_plan, device_plan;
    LookUpBoth(batches, &cpu_plan, &device_plan);
    for (int t : {0, 1, 7, 8}) {
      ASSERT_OK(
          Update(Adagrad(), batches, cpu_tables_, *cpu_plan, false, t, t + 1));
      ASSERT_OK(Update(Adagrad(), batches, device_tables_, *device_plan, true,
                       t, t + 1));
    }
    stream_->Wait();
  }).join();
  for (size_t t = 0; t < device_tables_.size(); ++t) {
    if (readers[t] == nullptr) continue;
    TableSnapshot read;
    ASSERT_OK(readers[t]->Rows([&read](const RowPiece& piece) {
      const auto add = [](const auto& from, auto* to) {
        to->insert(to->end(), from.begin(), from.end());
      };
      add(piece.keys, &read.keys);
      add(piece.columns[0], &read.values);
      add(piece.numbers[kVersion], &read.versions);
      add(piece.numbers[kFrequency], &read.frequencies);
      return Status::OK();
    }));
    EXPECT_EQ(before[t].keys, read.keys) << t;
    EXPECT_EQ(before[t].values, read.values) << t;
    EXPECT_EQ(before[t].versions, read.versions) << t;
    EXPECT_EQ(before[t].frequencies, read.frequencies) << t;
  }
  readers.clear();
  ExpectSameNumbers();
}

TEST_F(StepMetaTest, RowsThatAreEvictedByWhatTheyCountAreTheSame) {
  for (int seed : {0, 1, 2, 3}) TrainStep(seed);
  for (size_t t : {1, 4, 6}) {  // with versions
    int64_t cpu_evicted = 0, device_evicted = 0;
    ASSERT_OK(cpu_tables_[t]->EvictStale(14, 1, &cpu_evicted));
    ASSERT_OK(device_tables_[t]->EvictStale(14, 1, &device_evicted));
    EXPECT_EQ(cpu_evicted, device_evicted) << t;
  }
  TrainStep(1);
  ExpectSameNumbers();
}

// Steps count on the device, other updates in CPU memory. The order of the
// calls, not their global steps, decides which of the two changed a row last.
TEST_F(StepMetaTest, OtherUpdatesCountBesideSteps) {
  for (int seed : {0, 1, 1}) TrainStep(seed);
  const std::vector<Batch> batches = Batches(1);
  for (const int64_t step : {30, 3}) {
    for (size_t t : {0, 1, 2, 6}) {
      std::vector<int64_t> keys;
      for (int64_t id : batches[t].ids) {
        if (keys.size() < 30 &&
            std::find(keys.begin(), keys.end(), id) == keys.end()) {
          keys.push_back(id);
        }
      }
      const std::vector<float> values(keys.size() * Shapes()[t].dim, 0.5f);
      for (const Table& table : {cpu_tables_[t], device_tables_[t]}) {
        ASSERT_OK(table->WriteRows(keys, {}, values.data(), {}, nullptr, step,
                                   &pool_));
      }
    }
    if (step == 30)
      TrainStep(2);  // updates the other rows, and some of the same
  }
  ExpectSameNumbers();
  TrainStep(1);
  ExpectSameNumbers();
}

TEST_F(StepMetaTest, NumbersOfAKeyAreReadWhileTheDeviceHasThem) {
  for (int seed : {0, 1, 1}) {
    TrainStep(seed);
    const std::vector<Batch> batches = Batches(1);
    for (size_t t = 0; t < device_tables_.size(); ++t) {
      const std::vector<int64_t>& keys = batches[t].ids;
      const size_t n = keys.size();
      std::vector<int64_t> of_cpu(2 * n), of_device(2 * n);
      ASSERT_OK(cpu_tables_[t]->GetMeta(keys, &of_cpu[0], &of_cpu[n]));
      ASSERT_OK(device_tables_[t]->GetMeta(keys, &of_device[0], &of_device[n]));
      EXPECT_EQ(of_cpu, of_device) << t;
    }
  }
}

// Only Erase runs between the updates of a row and those of another key in its
// place.
TEST_F(StepMetaTest, ARowIsCountedForItsOwnKey) {
  for (int seed : {0, 1, 1}) TrainStep(seed);
  const std::vector<Batch> batches = Batches(1);
  for (size_t t = 0; t < batches.size(); ++t) {
    EXPECT_EQ(testing::Erased(cpu_tables_[t].get(), batches[t].ids),
              testing::Erased(device_tables_[t].get(), batches[t].ids))
        << t;
  }
  for (int seed : {5, 6, 6}) TrainStep(seed);
  ExpectSameNumbers();
}

// Restored numbers replace those that were counted before.
TEST_F(StepMetaTest, RestoredRowsBeginWithTheirNumbers) {
  for (int seed : {0, 1, 1}) TrainStep(seed);
  std::vector<TableSnapshot> saved(device_tables_.size());
  for (size_t t = 0; t < device_tables_.size(); ++t) {
    ASSERT_OK(cpu_tables_[t]->Export(Slots(), &saved[t]));
  }
  TrainStep(1);
  for (size_t t = 0; t < device_tables_.size(); ++t) {
    const TableSnapshot& from = saved[t];
    const std::vector<const float*> slots(1, from.slots[0].data());
    for (const Table& table : {cpu_tables_[t], device_tables_[t]}) {
      ASSERT_OK(table->Import(from.keys, from.values.data(), Adagrad().slots,
                              slots, from.versions, from.frequencies, 0, 1));
    }
  }
  ExpectSameNumbers();
  TrainStep(1);
  ExpectSameNumbers();
}

TEST_F(StepMetaTest, ChangesAreOfTheTimeInWhichTheyWereMade) {
  for (int seed : {0, 1, 1}) TrainStep(seed);
  Cut();
  TrainStep(2);
  ExpectSameChanges();
  TrainStep(1);
  for (size_t t : kRecorded) {
    int64_t cpu_evicted = 0, device_evicted = 0;
    ASSERT_OK(cpu_tables_[t]->EvictWeak(1.5f, &cpu_evicted));
    ASSERT_OK(device_tables_[t]->EvictWeak(1.5f, &device_evicted));
    EXPECT_EQ(cpu_evicted, device_evicted) << t;
    if (t == 0) {
      EXPECT_GT(cpu_evicted, 0);
    }
  }
  TrainStep(3);
  ExpectSameNumbers();
}

TEST_F(StepMetaTest, RowsAreExportedByTheirLastUpdate) {
  for (int seed : {0, 1, 2}) TrainStep(seed);
  for (size_t t : {1, 6}) {
    TableSnapshot a, b;
    ASSERT_OK(cpu_tables_[t]->ExportNewer(12, Slots(), &a));
    ASSERT_OK(device_tables_[t]->ExportNewer(12, Slots(), &b));
    ASSERT_GT(a.keys.size(), 0u);
    EXPECT_LT(a.keys.size(), static_cast<size_t>(cpu_tables_[t]->size()));
    ExpectSame(a, b, t);
  }
}

// Adds slots while the device has counts.
TEST_F(StepMetaTest, RowsMayBecomeWider) {
  for (int seed : {0, 1, 1}) TrainStep(seed);
  const SlotSpec more{"more", 1.0f};
  for (size_t t = 0; t < device_tables_.size(); ++t) {
    ASSERT_OK(
        cpu_tables_[t]->EnsureSlots(Span<const SlotSpec>(&more, 1), nullptr));
    ASSERT_OK(device_tables_[t]->EnsureSlots(Span<const SlotSpec>(&more, 1),
                                             nullptr));
  }
  TrainStep(1);
  ExpectSameNumbers();
}

TEST_F(StepMetaTest, CallsKeepTheirOrderWhenTheirNumbersWrap) {
  TrainStep(0);
  EmbeddingTable::Impl* const table = device_tables_[1]->impl();
  ASSERT_OK(table->TakeCounters());
  RowHandle row = 0;
  const std::vector<int64_t> key(1, Batches(0)[1].ids[0]);
  table->index.Find(key, &row);
  ASSERT_LT(row, kFirstReservedHandle);
  struct Case {
    uint32_t cpu, counters, now;
    bool is_last;
  };
  for (const Case& of :
       std::vector<Case>{{0, 7, 9, true},
                         {5, 7, 9, true},
                         {8, 7, 9, false},
                         {0xFFFFFFFE, 3, 9, true},
                         {3, 0xFFFFFFFE, 9, false},
                         {0x10, 0x80000020, 0x80000021, true},
                         {0x10, 0xF0000020, 0xF0000021, true}}) {
    RowMeta* const meta = table->rows->Meta(row);
    *meta = RowMeta{100, 4, of.cpu};
    table->AddCounters(row, RowMeta{50, 3, of.counters}, of.now);
    EXPECT_EQ(7u, meta->frequency);
    EXPECT_EQ(of.is_last ? 50u : 100u, meta->version_plus1)
        << of.cpu << ' ' << of.counters;
    EXPECT_EQ(of.is_last ? of.counters : of.cpu, meta->call)
        << of.cpu << ' ' << of.counters;
  }
}

// Tables may have an update op each: the metadata updates of one update are not
// mixed with another's, nor lost if another has none.
TEST_F(StepMetaTest, UpdatesOfOnePlanMayBeMadeAtOnce) {
  TrainStep(0);
  const int n = static_cast<int>(device_tables_.size());
  for (int seed : {1, 2, 3, 1, 2, 3}) {
    step_ = seed + 10;
    const std::vector<Batch> batches = Batches(seed);
    Plan cpu_plan, device_plan;
    LookUpBoth(batches, &cpu_plan, &device_plan);
    for (int t = 0; t < n; ++t) {
      ASSERT_OK(
          Update(Adagrad(), batches, cpu_tables_, *cpu_plan, false, t, t + 1));
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < n; ++t) {
      // Only one thread at a time may enqueue work in the stream.
      updates_.push_back(UpdatesOnDevice(batches, *device_plan, t));
    }
    for (int t = 0; t < n; ++t) {
      threads.emplace_back([this, t] {
        testing::ThreadPool pool(2);
        const std::vector<std::vector<SlotSpec>> slots{Adagrad().slots};
        ASSERT_OK(ApplyRule("Adagrad", Adagrad().hyper, updates_[t], slots,
                            step_, &pool));
      });
    }
    for (std::thread& thread : threads) thread.join();
    updates_.clear();
    stream_->Wait();
  }
  ExpectSameNumbers();
}

// Two lookups, and one call that updates the tables for both.
TEST_F(StepMetaTest, TablesMayBeUpdatedTwiceInOneCall) {
  TrainStep(0);
  for (int seed : {1, 3, 1}) {
    step_ = seed + 10;
    const std::vector<Batch> first = Batches(seed), second = Batches(seed + 1);
    Plan first_cpu, first_device, second_cpu, second_device;
    LookUpBoth(first, &first_cpu, &first_device);
    LookUpBoth(second, &second_cpu, &second_device);
    std::vector<UpdateInput> cpu_updates, device_updates;
    for (const bool is_first : {true, false}) {
      const std::vector<Batch>& batches = is_first ? first : second;
      for (int t = 0; t < static_cast<int>(device_tables_.size()); ++t) {
        device_updates.push_back(UpdatesOnDevice(
            batches, is_first ? *first_device : *second_device, t)[0]);
        cpu_updates.push_back(device_updates.back());
        cpu_updates.back().table = cpu_tables_[t].get();
        cpu_updates.back().plan = is_first ? first_cpu.get() : second_cpu.get();
        cpu_updates.back().pooled_grads = batches[t].grads.data();
        cpu_updates.back().stream = nullptr;
      }
    }
    const std::vector<std::vector<SlotSpec>> slots(cpu_updates.size(),
                                                   Adagrad().slots);
    ASSERT_OK(ApplyRule("Adagrad", Adagrad().hyper, cpu_updates, slots, step_,
                        &pool_));
    ASSERT_OK(ApplyRule("Adagrad", Adagrad().hyper, device_updates, slots,
                        step_, &pool_));
    stream_->Wait();
    ExpectSameNumbers();
  }
}

// Several threads train the same tables while another reads metadata: no count
// is lost.
class StepMetaAtOnceTest : public StepMetaTest {
 protected:
  // Reads the metadata of table 0 again and again.
  void Train(const std::function<void()>& read) {
    TableSnapshot before;
    ASSERT_OK(device_tables_[0]->Export(Slots(), &before));
    std::vector<std::thread> threads;
    for (int k = 0; k < kThreads; ++k) {
      threads.emplace_back([this] {
        testing::ThreadPool pool(2);
        const auto stream = StreamUnderTest::Make();
        for (int step = 0; step < kSteps; ++step) {
          TrainOnDevice(Batches(0), 50, stream.get(), &pool);  // keys have rows
        }
        stream->Wait();
      });
    }
    std::atomic<bool> is_through{false};
    std::thread reads([&] {
      while (!is_through) {
        read();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
    });
    for (std::thread& thread : threads) thread.join();
    is_through = true;
    reads.join();
    TableSnapshot after;
    ASSERT_OK(device_tables_[0]->Export(Slots(), &after));
    const auto sum = [](const std::vector<int64_t>& numbers) {
      return std::accumulate(numbers.begin(), numbers.end(), int64_t{0});
    };
    const int64_t ids = Batches(0)[0].ids.size();
    EXPECT_EQ(sum(before.frequencies) + kThreads * kSteps * ids,
              sum(after.frequencies));
  }

  static constexpr int kThreads = 3, kSteps = 5;
};
constexpr int StepMetaAtOnceTest::kThreads, StepMetaAtOnceTest::kSteps;

TEST_F(StepMetaAtOnceTest, ByKey) {
  TrainStep(0);
  const int64_t ids = device_tables_[0]->tier_stats().hits;
  const std::vector<int64_t> keys(1, Batches(0)[0].ids[0]);
  int64_t last = 0;
  Train([&] {
    int64_t frequency = 0, version = 0;
    ASSERT_OK(device_tables_[0]->GetMeta(keys, &frequency, &version));
    EXPECT_LE(last, frequency);
    last = frequency;
  });
  if (!testing::CountsIdsByFinder()) return;
  // All were steps, in lookups and in updates.
  EXPECT_EQ(ids + 2 * kThreads * kSteps *
                      static_cast<int64_t>(Batches(0)[0].ids.size()),
            device_tables_[0]->tier_stats().hits);
}

// While a table is read, its updates are counted in CPU memory.
TEST_F(StepMetaAtOnceTest, AllOfThem) {
  TrainStep(0);
  Train([&] {
    TableSnapshot between;
    ASSERT_OK(device_tables_[0]->Export(Slots(), &between));
  });
}

}  // namespace
}  // namespace ev
