// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests a combiner that selects ("max") over ranks: the rank that owns the
// batch pools, and the gradient is compared with its definition. A table with a
// sum is looked up beside it.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "addons/sparse_operation_kit/exchange/testing/loopback.h"
#include "gtest/gtest.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/thread_pool.h"
#include "kernels/engine/testing/unique_keys.h"

namespace sok {
namespace testing {
namespace {

using ev::Combiner;

constexpr int64_t kDim = 11;

// Draws from few keys, so that some samples contain a key twice. Some samples
// are empty.
Bag RandomBag(int64_t batch_size, unsigned seed) {
  std::mt19937 random(seed);
  Bag bag;
  bag.splits.push_back(0);
  for (int64_t s = 0; s < batch_size; ++s) {
    const int n = random() % 6;
    for (int i = 0; i < n; ++i) bag.ids.push_back(random() % 12);
    bag.splits.push_back(bag.ids.size());
  }
  return bag;
}

// The rows of this step's keys.
using KeyRows = std::map<int64_t, std::vector<float>>;

class ExchangeMaxTest : public ::testing::TestWithParam<WireType> {
 protected:
  void MakeJob(ev::Parallel* parallel) {
    options_.num_ranks = 2;
    options_.wire = GetParam();
    options_.parallel = parallel;
    options_.storage = ev::testing::StorageUnderTest();
    job_ = std::make_unique<LoopbackJob>(
        options_,
        std::vector<TableSpec>{{"sum", 3, Combiner::kSum, {0, 1}},
                               {"max", kDim, Combiner::kMax, {0, 1}}},
        // Groups of three keys have equal rows, so they tie. No value is above
        // zero.
        std::vector<float>{-1.0f, -0.5f, -2.0f, -1.5f});
  }

  KeyRows RowsOf(const std::vector<std::vector<Bag>>& bags) {
    KeyRows rows;
    for (const auto& of_rank : bags) {
      for (int64_t key : of_rank[1].ids) {
        rows[key].resize(kDim);
        EXPECT_TRUE(
            job_->table(key % 2, 1)
                ->Gather(std::vector<int64_t>{key}, rows[key].data(), nullptr)
                .ok());
      }
    }
    return rows;
  }

  // Compares outputs and the gradients of all keys with results in double
  // precision.
  void ExpectDefinition(const std::vector<std::vector<Bag>>& bags,
                        const KeyRows& rows,
                        const std::vector<PerRank<float>>& outputs,
                        const std::vector<PerRank<float>>& grads,
                        double bound) {
    std::map<int64_t, std::vector<double>> expected;
    for (const auto& row : rows) expected[row.first].resize(kDim);
    for (int r = 0; r < 2; ++r) {
      const Bag& bag = bags[r][1];
      for (int64_t s = 0; s < bag.batch_size(); ++s) {
        for (int64_t c = 0; c < kDim; ++c) {
          std::vector<float> elements;
          for (int64_t i = bag.splits[s]; i < bag.splits[s + 1]; ++i) {
            elements.push_back(rows.at(bag.ids[i])[c]);
          }
          const float largest =
              elements.empty()
                  ? 0.0f
                  : *std::max_element(elements.begin(), elements.end());
          ASSERT_EQ(largest, outputs[r][1][s * kDim + c]) << s << " " << c;
          const double ties =
              std::count(elements.begin(), elements.end(), largest);
          for (size_t k = 0; k < elements.size(); ++k) {
            if (elements[k] != largest) continue;
            expected[bag.ids[bag.splits[s] + k]][c] +=
                grads[r][1][s * kDim + c] / ties;
          }
        }
      }
    }
    size_t found = 0;
    for (int r = 0; r < 2; ++r) {
      const auto keys = ev::testing::UniqueKeys(job_->plan(r), 1);
      for (size_t u = 0; u < keys.size(); ++u, ++found) {
        for (int64_t c = 0; c < kDim; ++c) {
          EXPECT_NEAR(expected.at(keys[u])[c],
                      job_->unique_grads(r, 1)[u * kDim + c], bound)
              << "key " << keys[u] << ", element " << c;
        }
      }
    }
    EXPECT_EQ(expected.size(), found);
  }

  LoopbackJob::Options options_;
  std::unique_ptr<LoopbackJob> job_;
};

TEST_P(ExchangeMaxTest, TheGradientGoesToTheRowsThatHaveTheElement) {
  ev::testing::ThreadPool pool(3);
  for (ev::Parallel* parallel : {static_cast<ev::Parallel*>(nullptr),
                                 static_cast<ev::Parallel*>(&pool)}) {
    MakeJob(parallel);
    // After an update the elements of a row differ, and a narrow wire type
    // changes them, so the table's rows no longer predict the outputs.
    const int steps = GetParam() == WireType::kFloat32 ? 3 : 1;
    for (int step = 0; step < steps; ++step) {
      std::vector<std::vector<Bag>> bags(2);
      for (int r = 0; r < 2; ++r) {
        bags[r] = {RandomBag(20 + r, 10 * step + r),
                   RandomBag(9000 * step * r + 30, 10 * step + r + 5)};
      }
      const KeyRows rows = RowsOf(bags);
      std::vector<PerRank<float>> outputs;
      ev::Status status = job_->Forward(bags, &outputs);
      ASSERT_TRUE(status.ok()) << status.message();
      std::vector<PerRank<float>> grads = outputs;
      std::mt19937 random(step);
      std::normal_distribution<float> normal;
      for (auto& rank : grads) {
        for (auto& grad : rank) {
          for (float& g : grad) g = normal(random);
        }
      }
      status = job_->Backward({0, 1}, grads);
      ASSERT_TRUE(status.ok()) << status.message();
      ExpectDefinition(bags, rows, outputs, grads,
                       GetParam() == WireType::kBFloat16  ? 0.3
                       : GetParam() == WireType::kFloat16 ? 0.05
                                                          : 1e-2);
      ASSERT_TRUE(job_->Apply("SGD", {0.125f}, {}, step).ok());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Wires, ExchangeMaxTest,
                         ::testing::Values(WireType::kFloat32,
                                           WireType::kFloat16,
                                           WireType::kBFloat16));

TEST(ExchangeMaxErrors, AGradientWithoutRowsIsRefused) {
  LoopbackJob::Options options;
  options.storage = ev::testing::StorageUnderTest();
  LoopbackJob job(options, {{"t", 2, Combiner::kMax, {0, 1}}}, {1.0f});
  const Bag bag = {{1, 2}, {0, 2}, {}};
  std::vector<PerRank<float>> outputs;
  ASSERT_TRUE(job.Forward({{bag}, {bag}}, &outputs).ok());
  const float grad[2] = {1.0f, 1.0f};
  float message[4];
  const ev::Status status = PoolGradient(
      job.route(0), nullptr, std::vector<int>{0},
      std::vector<ev::ConstFloats>{grad}, WireType::kFloat32, message, nullptr);
  EXPECT_EQ(ev::StatusCode::kInvalidArgument, status.code());
}

}  // namespace
}  // namespace testing
}  // namespace sok
