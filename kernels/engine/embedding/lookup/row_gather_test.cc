// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares GatherRows, and the update by gradients of its keys on the device,
// with the same calls in CPU memory. Tables whose batches are long enough are
// in one step of the device.

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/planned_table.h"
#include "kernels/engine/embedding/lookup/row_lookup.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/rows/gpu_compute.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/stream_under_test.h"
#include "kernels/engine/testing/thread_pool.h"
#include "kernels/engine/testing/unique_keys.h"

namespace ev {
namespace {

using testing::StreamUnderTest;
using testing::UniqueCounts;
using testing::UniqueKeys;

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

using Tables = std::vector<std::shared_ptr<EmbeddingTable>>;

// Options of table t: it records nothing about its rows, how often keys occur,
// or something else per table, and some tables have a filter.
enum class Recorded { kNone, kFrequency, kOfAllKinds };

// The table whose input has no occurrences.
constexpr size_t kWithoutOccurrences = 5;

void Choose(Recorded recorded, size_t t, TableOptions* options) {
  options->record_frequency = recorded == Recorded::kFrequency;
  options->counts_on_gpu = t % 2 == 0;
  if (recorded != Recorded::kOfAllKinds) return;
  AdmissionOptions* const admission = &options->admission;
  switch (t) {
    case 0:
      options->record_frequency = true;
      break;
    case 1:
      admission->filter = AdmissionOptions::Filter::kCounter;
      admission->threshold = 7;
      admission->no_permission = 0.75f;
      options->record_version = true;
      break;
    case 2:
      admission->filter = AdmissionOptions::Filter::kBloom;
      admission->threshold = 9;
      admission->no_permission = -2.0f;
      admission->max_keys = 200000;
      admission->false_positive = 0.01;
      break;
    case 3:
      options->capacity.max_rows = 700;
      options->capacity.strategy = CacheStrategy::kLfu;
      break;
    case 4:  // does not count, and gets occurrences
      options->record_version = true;
      break;
    default:  // plain, and gets no occurrences
      break;
  }
  *options = options->Completed();
}

Tables MakeTables(RowStorage storage, const std::vector<int64_t>& dims,
                  Recorded recorded) {
  Tables tables;
  for (int64_t dim : dims) {
    TableOptions options;
    options.name = "dim" + std::to_string(dim);
    options.dim = dim;
    options.storage = storage;
    // Used by HBM_DRAM: 64 rows without slots in the device's memory.
    options.memory_bytes = 64 * options.dim * sizeof(float);
    Choose(recorded, tables.size(), &options);
    tables.push_back(std::make_shared<EmbeddingTable>(options));
    std::vector<float> rows(3 * dim);
    for (size_t i = 0; i < rows.size(); ++i) rows[i] = 0.5f + i % 7;
    const Status status = tables.back()->Initialize(rows, 3);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  return tables;
}

// Keys of each table from several ranks; all ranks send one of the keys.
struct Batch {
  std::vector<std::vector<int64_t>> keys, starts, occurrences;
  std::vector<std::vector<float>> grads;
  const bool counts;

  Batch(const Tables& tables, int64_t most, int ranks, int seed,
        bool counts = false)
      : counts(counts) {
    std::mt19937_64 random(seed);
    std::normal_distribution<float> normal;
    for (const auto& table : tables) {
      std::vector<int64_t> of_table, first = {0};
      for (int r = 0; r < ranks; ++r) {
        const int64_t n = random() % (most + 1);
        for (int64_t i = 0; i < n; ++i) {
          // Distinct within a rank; some are keys of other ranks too.
          of_table.push_back(i * 3 + r * (i % 2) - 10);
        }
        first.push_back(of_table.size());
      }
      keys.push_back(of_table);
      starts.push_back(first);
      occurrences.emplace_back();
      for (size_t i = 0; i < of_table.size(); ++i) {
        occurrences.back().push_back(1 + (i * 7 + seed) % 5);
      }
      grads.emplace_back(of_table.size() * table->options().dim);
      for (float& g : grads.back()) g = normal(random);
    }
  }

  std::vector<RowsInput> Inputs(const Tables& tables) const {
    std::vector<RowsInput> inputs(tables.size());
    for (size_t t = 0; t < tables.size(); ++t) {
      inputs[t].table = tables[t].get();
      inputs[t].keys = keys[t];
      if (counts && t != kWithoutOccurrences)
        inputs[t].occurrences = occurrences[t].data();
    }
    return inputs;
  }
};

struct Rule {
  std::string name;
  std::vector<float> hyper;
  std::vector<SlotSpec> slots;
};

Status Apply(const Rule& rule, const Tables& tables, const LookupPlan& plan,
             const std::vector<const float*>& grads, const DeviceStream* stream,
             int64_t step, Parallel* parallel) {
  std::vector<UpdateInput> updates(tables.size());
  for (size_t t = 0; t < tables.size(); ++t) {
    updates[t].table = tables[t].get();
    updates[t].plan = &plan;
    updates[t].plan_table = static_cast<int>(t);
    if (stream == nullptr) {
      updates[t].keys = UniqueKeys(plan, static_cast<int>(t));
      updates[t].grads = grads[t];
    } else {
      updates[t].pooled_grads = grads[t];
      updates[t].stream = stream;
    }
  }
  const std::vector<std::vector<SlotSpec>> slots(tables.size(), rule.slots);
  return ApplyRule(rule.name, rule.hyper, updates, slots, step, parallel);
}

class RowGatherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    stream_ = StreamUnderTest::Make();
    on_ = stream_->stream();
    Renew(Recorded::kNone);
  }

  void Renew(Recorded recorded) {
    device_tables_ = MakeTables(testing::StorageUnderTest(), dims_, recorded);
    cpu_tables_ = MakeTables(RowStorage::kDram, dims_, recorded);
  }

  // Expects both tables to have the same keys, rows and slots, and the same
  // number of rows and of keys that a filter keeps out.
  void ExpectSameTables() {
    std::vector<std::string> slots;
    for (const SlotSpec& slot : rule_.slots) slots.push_back(slot.name);
    for (size_t t = 0; t < cpu_tables_.size(); ++t) {
      TableSnapshot a, b;
      ASSERT_OK(cpu_tables_[t]->Export(slots, &a));
      ASSERT_OK(device_tables_[t]->Export(slots, &b));
      ASSERT_GT(a.keys.size(), 0u);
      EXPECT_EQ(a.keys, b.keys);
      EXPECT_EQ(a.values, b.values);
      EXPECT_EQ(a.slots, b.slots);
      EXPECT_EQ(a.frequencies, b.frequencies) << t;
      EXPECT_EQ(a.versions, b.versions) << t;
      EXPECT_EQ(a.filtered_keys, b.filtered_keys) << t;
      EXPECT_EQ(a.filtered_frequencies, b.filtered_frequencies) << t;
      EXPECT_EQ(a.filtered_versions, b.filtered_versions) << t;
    }
  }

  // Number of ids of all tables, in updates and lookups, that the device found
  // itself.
  int64_t IdsByDevice() const {
    int64_t ids = 0;
    for (const auto& table : device_tables_) ids += table->tier_stats().hits;
    return ids;
  }

  // Runs a step of the tables in CPU memory. Returns all rows, and keeps
  // distinct keys and their gradients.
  std::vector<float> StepOnCpu(const Batch& batch, int64_t step,
                               const std::function<void()>& between = nullptr) {
    std::vector<std::vector<float>> rows;
    std::vector<RowGradients> grads;
    for (size_t t = 0; t < cpu_tables_.size(); ++t) {
      rows.emplace_back(batch.grads[t].size());
      RowGradients grad;
      grad.starts = {0, static_cast<int64_t>(batch.keys[t].size())};
      grad.pieces = {batch.grads[t].data()};
      grads.push_back(grad);
    }
    std::shared_ptr<const LookupPlan> plan;
    Status status = LookupRows(
        batch.Inputs(cpu_tables_), cpu_tables_,
        [&](int t, int64_t begin, int64_t end, const float* const* found) {
          CopyRows(found, 0, end - begin, dims_[t],
                   rows[t].data() + begin * dims_[t]);
        },
        &pool_, &plan);
    EXPECT_TRUE(status.ok()) << status.message();
    sums_.clear();
    unique_.clear();
    std::vector<float*> out;
    std::vector<const float*> in;
    std::vector<float> all;
    for (size_t t = 0; t < cpu_tables_.size(); ++t) {
      const Span<const int64_t> keys = UniqueKeys(*plan, static_cast<int>(t));
      unique_.emplace_back(keys.begin(), keys.end());
      sums_.emplace_back(keys.size() * dims_[t]);
      out.push_back(sums_[t].data());
      in.push_back(sums_[t].data());
      all.insert(all.end(), rows[t].begin(), rows[t].end());
    }
    status = SumRowGradients(*plan, grads, out, &pool_);
    EXPECT_TRUE(status.ok()) << status.message();
    if (between) between();
    status = Apply(rule_, cpu_tables_, *plan, in, nullptr, step, &pool_);
    EXPECT_TRUE(status.ok()) << status.message();
    return all;
  }

  // Runs a step on the device, with each rank's rows in a piece of its own.
  // Calls 'between' between lookup and update.
  std::vector<float> StepOnDevice(
      const Batch& batch, int64_t step,
      const std::function<void(const LookupPlan&)>& between = nullptr) {
    std::vector<RowPlaces> places(device_tables_.size());
    std::vector<std::vector<int64_t>> sizes(device_tables_.size());
    for (size_t t = 0; t < device_tables_.size(); ++t) {
      places[t].starts = batch.starts[t];
      for (size_t p = 1; p < batch.starts[t].size(); ++p) {
        const int64_t n =
            (batch.starts[t][p] - batch.starts[t][p - 1]) * dims_[t];
        sizes[t].push_back(n);
        places[t].pieces.push_back(stream_->Allocate(n));
        // The stream writes late (stream_under_test.h), so rows written before
        // it would be lost. One such write per table, since each of them waits.
        if (p > 1) continue;
        stream_->Fill(std::vector<float>(n, 77.0f), places[t].pieces.back());
      }
    }
    std::shared_ptr<const LookupPlan> plan;
    Status status = GatherRows(batch.Inputs(device_tables_), device_tables_,
                               places, on_, &pool_, &plan);
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<float> all;
    std::vector<const float*> grads;
    stream_->Wait();
    for (size_t t = 0; t < device_tables_.size(); ++t) {
      for (size_t p = 0; p < sizes[t].size(); ++p) {
        const std::vector<float> rows =
            stream_->Peek(places[t].pieces[p], sizes[t][p]);
        all.insert(all.end(), rows.begin(), rows.end());
      }
      float* const grad = stream_->Allocate(batch.grads[t].size());
      stream_->Fill(batch.grads[t], grad);
      grads.push_back(grad);
    }
    if (between) between(*plan);
    status = Apply(rule_, device_tables_, *plan, grads, &on_, step, &pool_);
    EXPECT_TRUE(status.ok()) << status.message();
    return all;
  }

  static void ExpectAStep(const LookupPlan& plan) {
    ASSERT_NE(nullptr, plan.planned(0).step);
    for (int t = 0; t < plan.num_tables(); ++t) {
      EXPECT_TRUE(plan.planned(t).step_finds_rows);
      EXPECT_EQ(plan.planned(0).step, plan.planned(t).step);
    }
  }

  std::vector<int64_t> dims_ = {4, 3, 16, 1, 8, 5};
  Tables device_tables_, cpu_tables_;
  Rule rule_ = {"Adagrad", {0.5f}, {{"Adagrad", 0.1f}}};
  std::vector<std::vector<int64_t>> unique_;
  std::vector<std::vector<float>> sums_;
  testing::ThreadPool pool_{3};
  std::unique_ptr<StreamUnderTest> stream_;
  DeviceStream on_;
};

TEST_F(RowGatherTest, StepsGiveTheBitsOfThoseInCpuMemory) {
  for (Recorded recorded :
       {Recorded::kNone, Recorded::kFrequency, Recorded::kOfAllKinds}) {
    Renew(recorded);
    const bool counts = recorded != Recorded::kNone;
    int64_t step = 0;
    // Few keys, with none of some tables; many; more than one task
    // deduplicates.
    for (int64_t most : {3, 40, 900, 60000}) {
      for (int ranks : {1, 2, 5}) {
        const Batch batch(cpu_tables_, most, ranks, 100 + step, counts);
        const std::vector<float> cpu_rows = StepOnCpu(batch, step);
        EXPECT_EQ(cpu_rows, StepOnDevice(batch, step)) << "step " << step;
        ++step;
      }
    }
    ExpectSameTables();
  }
}

TEST_F(RowGatherTest, TablesAreOneStepOfTheDevice) {
  for (Recorded recorded : {Recorded::kNone, Recorded::kOfAllKinds}) {
    Renew(recorded);
    const Batch batch(cpu_tables_, 60000, 5, 31, recorded != Recorded::kNone);
    int64_t num_keys = 0;
    for (const auto& keys : batch.keys) num_keys += keys.size();
    for (int64_t step = 0; step < 3; ++step) {
      const std::vector<float> cpu_rows = StepOnCpu(batch, step);
      int64_t before = 0;
      EXPECT_EQ(cpu_rows,
                StepOnDevice(batch, step, [&](const LookupPlan& plan) {
                  ExpectAStep(plan);
                  before = IdsByDevice();
                }));
      if (testing::CountsIdsByFinder()) {
        EXPECT_EQ(before + num_keys, IdsByDevice());  // so is the update
      }
    }
    ExpectSameTables();
  }
}

// Keys from 20 ranks, which a GPU lists apart from those of up to 16 ranks, and
// counts that are negative or above 2^31 - 1.
TEST_F(RowGatherTest, KeysOfManyRanksCountWhatTheyStandFor) {
  Renew(Recorded::kOfAllKinds);
  for (int64_t step = 0; step < 4; ++step) {
    Batch batch(cpu_tables_, 3000, 20, 41, /*counts=*/true);
    for (auto& occurrences : batch.occurrences) {
      for (size_t i = 0; i < occurrences.size(); i += 97) occurrences[i] = -3;
      for (size_t i = 0; i < occurrences.size(); i += 101) {
        occurrences[i] = int64_t{1} << (i % 2 == 0 ? 40 : 30);
      }
    }
    const std::vector<float> cpu_rows = StepOnCpu(batch, step);
    EXPECT_EQ(cpu_rows, StepOnDevice(batch, step, ExpectAStep)) << step;
    ExpectSameTables();
  }
}

// If all keys have rows, occurrences are grouped before the update, and again
// if a key turns out to be new.
TEST_F(RowGatherTest, KeysThatAreKnownCountWhatTheyStandFor) {
  for (Recorded recorded : {Recorded::kFrequency, Recorded::kOfAllKinds}) {
    Renew(recorded);
    const Batch known(cpu_tables_, 900, 6, 47, /*counts=*/true);
    const Batch other(cpu_tables_, 1100, 6, 48, /*counts=*/true);
    int64_t step = 0;
    for (const Batch* batch :
         {&known, &known, &known, &known, &other, &known, &other, &other}) {
      const std::vector<float> cpu_rows = StepOnCpu(*batch, step);
      EXPECT_EQ(cpu_rows, StepOnDevice(*batch, step)) << step;
      ExpectSameTables();
      ++step;
    }
  }
}

// The second lookup of a table is in a second step.
TEST_F(RowGatherTest, TablesThatComeTwiceCountTheirKeysTwice) {
  for (Recorded recorded : {Recorded::kNone, Recorded::kOfAllKinds}) {
    Renew(recorded);
    for (Tables* tables : {&cpu_tables_, &device_tables_}) {
      tables->push_back((*tables)[1]);
    }
    dims_.push_back(dims_[1]);
    const Batch batch(cpu_tables_, 900, 6, 53, recorded != Recorded::kNone);
    for (int64_t step = 0; step < 4; ++step) {
      const std::vector<float> cpu_rows = StepOnCpu(batch, step);
      EXPECT_EQ(cpu_rows,
                StepOnDevice(batch, step, [&](const LookupPlan& plan) {
                  EXPECT_EQ(plan.planned(0).step, plan.planned(1).step);
                  for (int t : {0, 1, 6}) {
                    EXPECT_TRUE(plan.planned(t).step_finds_rows);
                  }
                  EXPECT_NE(plan.planned(0).step, plan.planned(6).step);
                }));
    }
    ExpectSameTables();
    dims_.pop_back();
  }
}

// A rule without kernels for steps.
TEST_F(RowGatherTest, OtherRulesCountToo) {
  Renew(Recorded::kOfAllKinds);
  rule_ = {
      "Adadelta", {0.5f, 0.9f, 1e-6f}, {{"accum", 0.0f}, {"update", 0.0f}}};
  for (int64_t step = 0; step < 4; ++step) {
    const Batch batch(cpu_tables_, 900, 6, 59 + step / 2, /*counts=*/true);
    const std::vector<float> cpu_rows = StepOnCpu(batch, step);
    EXPECT_EQ(cpu_rows, StepOnDevice(batch, step)) << step;
  }
  ExpectSameTables();
}

// Optimizers outside the engine need distinct keys and their occurrences.
TEST_F(RowGatherTest, CountsMayBeInCpuMemory) {
  Renew(Recorded::kOfAllKinds);
  for (int64_t step = 0; step < 3; ++step) {
    const Batch batch(cpu_tables_, 900, 6, 43, /*counts=*/true);
    std::vector<std::map<int64_t, int64_t>> counts(cpu_tables_.size());
    for (size_t t = 0; t < cpu_tables_.size(); ++t) {
      for (size_t i = 0; i < batch.keys[t].size(); ++i) {
        counts[t][batch.keys[t][i]] +=
            t == kWithoutOccurrences ? 1 : batch.occurrences[t][i];
      }
    }
    const std::vector<float> cpu_rows = StepOnCpu(batch, step);
    EXPECT_EQ(cpu_rows, StepOnDevice(batch, step, [&](const LookupPlan& plan) {
                ExpectAStep(plan);
                for (size_t t = 0; t < device_tables_.size(); ++t) {
                  const int number = static_cast<int>(t);
                  const auto keys = UniqueKeys(plan, number);
                  std::map<int64_t, int64_t> found;
                  for (size_t u = 0; u < keys.size(); ++u) {
                    found[keys[u]] = UniqueCounts(plan, number)[u];
                  }
                  EXPECT_EQ(counts[t], found) << t;
                }
              }));
  }
  ExpectSameTables();
}

TEST_F(RowGatherTest, KeysThatComeWhileAStepIsUnderWayAreFound) {
  // A second lookup of the same keys, before and after the update of the first.
  for (Recorded recorded : {Recorded::kNone, Recorded::kFrequency}) {
    Renew(recorded);
    const Batch batch(cpu_tables_, 900, 4, 37, recorded != Recorded::kNone);
    const std::vector<float> cpu_rows = StepOnCpu(batch, 0);
    std::vector<float> between;
    EXPECT_EQ(cpu_rows, StepOnDevice(batch, 0, [&](const LookupPlan&) {
                between = StepOnDevice(batch, 0);
              }));
    EXPECT_EQ(cpu_rows, between);
    StepOnCpu(batch, 0);  // as the first was applied after the second
    ExpectSameTables();
    EXPECT_EQ(StepOnCpu(batch, 1), StepOnDevice(batch, 1));
    ExpectSameTables();
  }
}

TEST_F(RowGatherTest, KeysThatAreErasedBeforeTheUpdateGetRowsAgain) {
  for (Recorded recorded :
       {Recorded::kNone, Recorded::kFrequency, Recorded::kOfAllKinds}) {
    Renew(recorded);
    for (int64_t step = 0; step < 3; ++step) {
      const Batch batch(cpu_tables_, 900, 3, 17, recorded != Recorded::kNone);
      const auto erase = [&](const Tables& tables) {
        for (size_t t = 0; t < tables.size(); ++t) {
          const Span<const int64_t> keys(batch.keys[t]);
          tables[t]->Erase(keys.subspan(0, keys.size() / 3));
        }
      };
      const std::vector<float> cpu_rows =
          StepOnCpu(batch, step, [&] { erase(cpu_tables_); });
      EXPECT_EQ(cpu_rows, StepOnDevice(batch, step, [&](const LookupPlan&) {
                  erase(device_tables_);
                }));
    }
    ExpectSameTables();
  }
}

TEST_F(RowGatherTest, SumsAreFormedOnTheCpuToo) {
  const Batch batch(cpu_tables_, 900, 3, 23);
  StepOnCpu(batch, 0);
  const std::vector<std::vector<int64_t>> keys = unique_;
  const std::vector<std::vector<float>> sums = sums_;
  StepOnDevice(batch, 0, [&](const LookupPlan& plan) {
    std::vector<RowGradients> grads(device_tables_.size());
    std::vector<std::vector<float>> formed;
    std::vector<float*> out;
    for (size_t t = 0; t < device_tables_.size(); ++t) {
      const int number = static_cast<int>(t);
      EXPECT_EQ(keys[t].size(), UniqueKeys(plan, number).size());
      grads[t].starts = {0, static_cast<int64_t>(batch.keys[t].size())};
      grads[t].pieces = {batch.grads[t].data()};
      formed.emplace_back(sums[t].size());
      out.push_back(formed.back().data());
    }
    ASSERT_OK(SumRowGradients(plan, grads, out, &pool_));
    EXPECT_EQ(sums, formed);
    for (size_t t = 0; t < device_tables_.size(); ++t) {
      const Span<const int64_t> device_keys =
          UniqueKeys(plan, static_cast<int>(t));
      EXPECT_EQ(keys[t],
                std::vector<int64_t>(device_keys.begin(), device_keys.end()));
    }
  });
  ExpectSameTables();
}

TEST_F(RowGatherTest, TablesWithoutKeys) {
  std::vector<RowPlaces> places(device_tables_.size());
  for (RowPlaces& place : places) place.starts = {0};
  std::vector<RowsInput> inputs(device_tables_.size());
  for (size_t t = 0; t < inputs.size(); ++t)
    inputs[t].table = device_tables_[t].get();
  std::shared_ptr<const LookupPlan> plan;
  ASSERT_OK(GatherRows(inputs, device_tables_, places, on_, &pool_, &plan));
  EXPECT_EQ(static_cast<int>(device_tables_.size()), plan->num_tables());
}

TEST_F(RowGatherTest, BadPlacesAreRefused) {
  const std::vector<int64_t> keys = {5, 6, 7};
  RowsInput input;
  input.table = device_tables_[0].get();
  input.keys = keys;
  RowPlaces places;
  places.pieces = {stream_->Allocate(12)};
  std::shared_ptr<const LookupPlan> plan;
  for (const std::vector<int64_t>& starts :
       std::vector<std::vector<int64_t>>{{0, 2}, {1, 3}, {0, 1, 3}, {}}) {
    places.starts = starts;
    const Status status =
        GatherRows(std::vector<RowsInput>{input}, {},
                   std::vector<RowPlaces>{places}, on_, &pool_, &plan);
    EXPECT_EQ(StatusCode::kInvalidArgument, status.code());
    EXPECT_NE(std::string::npos, status.message().find("'dim4'"));
  }
  places.starts = {0, 3};
  EXPECT_EQ(
      StatusCode::kInvalidArgument,
      GatherRows(std::vector<RowsInput>{input}, {}, {}, on_, &pool_, &plan)
          .code());
  input.table = cpu_tables_[0].get();
  const Status status =
      GatherRows(std::vector<RowsInput>{input}, {},
                 std::vector<RowPlaces>{places}, on_, &pool_, &plan);
  EXPECT_EQ(StatusCode::kFailedPrecondition, status.code());
  EXPECT_NE(std::string::npos, status.message().find("'dim4'"));
}

}  // namespace
}  // namespace ev
