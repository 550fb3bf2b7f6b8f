// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// An exchange when memory is short for a moment. A call that fails returns
// ResourceExhausted, and the same call then gives what it gives otherwise.

#include <memory>
#include <string>
#include <vector>

#include "addons/sparse_operation_kit/exchange/admission.h"
#include "addons/sparse_operation_kit/exchange/testing/loopback.h"
#include "gtest/gtest.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/testing/each_shortage.h"
#include "kernels/engine/testing/storage_under_test.h"

namespace sok {
namespace testing {
namespace {

using ev::Combiner;
using ev::Status;
using ev::testing::Fault;
using ev::testing::Numbers;
using ev::testing::RunWithEachShortage;
using ev::testing::Shortage;

constexpr int kNumRanks = 2;

std::vector<TableSpec> Tables() {
  return {{"mean", 2, Combiner::kMean, AllRanks(kNumRanks)},
          {"one", 3, Combiner::kSum, {1}},
          {"most", 4, Combiner::kMax, AllRanks(kNumRanks)}};
}

// The batches of all ranks. Keys are on both ranks, and repeated.
std::vector<std::vector<Bag>> Bags(int64_t first) {
  std::vector<std::vector<Bag>> bags(kNumRanks);
  for (int r = 0; r < kNumRanks; ++r) {
    for (size_t t = 0; t < Tables().size(); ++t) {
      Bag bag;
      bag.splits = {0};
      for (int64_t s = 0; s < 20; ++s) {
        for (int64_t i = 0; i < (s + r) % 4; ++i) {
          bag.ids.push_back(first + (7 * s + 3 * i + 5 * r) % 40);
          if (t == 0) bag.weights.push_back(0.5f + i);
        }
        bag.splits.push_back(bag.ids.size());
      }
      bags[r].push_back(bag);
    }
  }
  return bags;
}

void Add(const std::vector<PerRank<float>>& arrays, Numbers* numbers) {
  for (const auto& of_rank : arrays) {
    for (const auto& array : of_rank) {
      numbers->insert(numbers->end(), array.begin(), array.end());
    }
  }
}

// All rows of all ranks.
void AddRows(LoopbackJob* job, Numbers* numbers) {
  for (int r = 0; r < kNumRanks; ++r) {
    for (size_t t = 0; t < Tables().size(); ++t) {
      ev::TableSnapshot all;
      const Status status = job->table(r, static_cast<int>(t))
                                ->Export(std::vector<std::string>{"A"}, &all);
      EXPECT_TRUE(status.ok()) << status.message();
      for (const auto* integers :
           {&all.keys, &all.versions, &all.frequencies}) {
        numbers->insert(numbers->end(), integers->begin(), integers->end());
      }
      Add({{all.values}, all.slots}, numbers);
    }
  }
}

void TrainOneStep(LoopbackJob* job, Shortage* shortage, int64_t step,
                  Numbers* numbers) {
  const std::vector<int> tables = {2, 0, 1};
  std::vector<PerRank<float>> outputs, pooled;
  shortage->Step("forward",
                 [&] { return job->Forward(Bags(5 * step), &outputs); });
  Add(outputs, numbers);
  std::vector<PerRank<float>> grads(kNumRanks), given(kNumRanks);
  for (int r = 0; r < kNumRanks; ++r) {
    for (int t : tables) {
      grads[r].push_back(outputs[r][t]);
      for (float& x : grads[r].back()) x = 1 - x / 64;
    }
  }
  shortage->Step("backward", [&] { return job->Backward(tables, grads); });
  for (int r = 0; r < kNumRanks; ++r) {
    for (size_t k = 0; k < tables.size(); ++k) {
      given[r].push_back(job->unique_grads(r, static_cast<int>(k)));
    }
  }
  Add(given, numbers);
  shortage->Step("given rows", [&] { return job->PoolGiven(given, &pooled); });
  Add(pooled, numbers);
  const std::vector<ev::SlotSpec> slots = {{"A", 0.25f}};
  shortage->Step("apply",
                 [&] { return job->Apply("Adagrad", {0.5f}, slots, step); });
  AddRows(job, numbers);
}

class ShortageTest : public ::testing::TestWithParam<WireType> {};

TEST_P(ShortageTest, OfTwoSteps) {
  const bool on_cpu = ev::testing::StorageUnderTest() == ev::RowStorage::kDram;
  // The stand-in for a device allocates host memory of its own.
  const Fault fault = on_cpu ? Fault::kHostMemory : Fault::kDeviceMemory;
  const int64_t shortages =
      RunWithEachShortage(fault, [&](Shortage* shortage, Numbers* numbers) {
        ev::Serial serial;
        LoopbackJob::Options options;
        options.num_ranks = kNumRanks;
        options.wire = GetParam();
        options.with_occurrences = true;
        options.parallel = &serial;
        options.updates_tables_apart = !on_cpu;
        options.storage = ev::testing::StorageUnderTest();
        options.around = [shortage](const std::function<Status()>& call) {
          return shortage->Call(call);
        };
        LoopbackJob job(options, Tables(), {0.5f, 1.5f});
        TrainOneStep(&job, shortage, 1, numbers);
        TrainOneStep(&job, shortage, 2, numbers);
      });
  EXPECT_GT(shortages, on_cpu ? 100 : 5);
}

INSTANTIATE_TEST_SUITE_P(Wires, ShortageTest,
                         ::testing::Values(WireType::kFloat32,
                                           WireType::kFloat16));

TEST(AdmissionShortageTest, OfAFilter) {
  if (ev::testing::StorageUnderTest() != ev::RowStorage::kDram) GTEST_SKIP();
  const int64_t shortages = RunWithEachShortage(
      Fault::kHostMemory, [](Shortage* shortage, Numbers* numbers) {
        const std::vector<std::shared_ptr<ev::EmbeddingTable>> tables = {
            LoopbackJob::MakeTable(Tables()[0], false, {1.0f})};
        MessageFormat format;
        format.num_tables = 1;
        const std::vector<int64_t> message = {0, 3, 0, 5, 6, 7};
        const std::vector<int32_t> splits = {6};
        const std::vector<float> ratios = {0.5f};
        std::vector<float> flags(3);
        MessageLayout layout;
        shortage->Step("parse", [&] {
          return shortage->Call([&] {
            return MessageLayout::Parse(format, message, splits, &layout);
          });
        });
        shortage->Step("admit", [&] {
          return shortage->Call([&] {
            return Admit(layout, message.data(), tables, ratios, 3,
                         flags.data());
          });
        });
        numbers->assign(flags.begin(), flags.end());
      });
  EXPECT_GT(shortages, 3);
}

}  // namespace
}  // namespace testing
}  // namespace sok
