// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares rows in GPU memory with rows in CPU memory: the same calls give the
// same bits. The *_gpu_test targets of kernels/engine/embedding run the table's
// own tests on rows in GPU memory.

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/rows/gpu_row_home.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/thread_pool.h"

namespace ev {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

TableOptions Options(int64_t dim, RowStorage storage) {
  TableOptions options;
  options.name = "user";
  options.dim = dim;
  options.record_frequency = options.record_version = true;
  options.storage = storage;
  return options;
}

struct RuleCase {
  const char* name;
  std::vector<float> hyper;
  int num_slots;
  float initial;
  bool exact;  // the same bits as on the CPU; else within 1e-5
  std::string slot_suffix = "";
};

std::vector<RuleCase> Rules() {
  return {
      {"SGD", {0.1f}, 0, 0.0f, true},
      {"Momentum", {0.1f, 0.9f, 0.0f}, 1, 0.0f, true},
      {"Momentum", {0.1f, 0.9f, 1.0f}, 1, 0.0f, true},
      {"Adagrad", {0.1f}, 1, 0.1f, true},
      {"AdagradDecay", {0.1f, 2.0f, 0.9f, 0.1f, 7.0f}, 2, 0.1f, true},
      {"Adam", {0.1f, 0.9f, 0.999f, 1e-8f, 0.9f, 0.999f}, 2, 0.0f, true},
      {"AdamAsync",
       {0.1f, 0.9f, 0.999f, 1e-8f, 0.9f, 0.999f, 0.0f},
       2,
       0.0f,
       true},
      {"AdamAsync",
       {0.1f, 0.9f, 0.999f, 1e-8f, 0.9f, 0.999f, 1.0f},
       2,
       0.0f,
       true},
      {"AdamW",
       {0.1f, 0.9f, 0.999f, 1e-8f, 0.9f, 0.999f, 0.01f},
       2,
       0.0f,
       true},
      {"Ftrl", {0.1f, 0.01f, 0.01f, 0.0f, -0.5f}, 2, 0.1f, true},
      {"Ftrl", {0.1f, 0.01f, 0.01f, 0.0f, -0.4f}, 2, 0.1f, false},
      {"RMSProp", {0.1f, 0.9f, 0.1f, 1e-7f}, 2, 0.5f, true},
      {"CenteredRMSProp", {0.1f, 0.9f, 0.1f, 1e-7f}, 3, 0.5f, true},
      {"Adadelta", {0.1f, 0.9f, 1e-7f}, 2, 0.1f, true},
      {"RowWiseAdagrad", {0.1f, 1e-8f}, 1, 0.1f, true, "@row"},
  };
}

std::string Printed(const ::testing::TestParamInfo<int>& info) {
  return std::string(Rules()[info.param].name) + std::to_string(info.param);
}

class GpuRulesTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!testing::WhyNoGpu().empty()) GTEST_SKIP() << testing::WhyNoGpu();
  }
};

// Updates rows several times, with repeated keys, for several dims.
TEST_P(GpuRulesTest, UpdatesAsTheCpuDoes) {
  const RuleCase rule = Rules()[GetParam()];
  testing::ThreadPool pool(2);
  for (int64_t dim : {1, 3, 4, 16, 40}) {
    std::vector<std::unique_ptr<EmbeddingTable>> tables;
    std::mt19937 random(static_cast<unsigned>(dim));
    std::normal_distribution<float> normal;
    std::vector<float> defaults(7 * dim);
    for (float& x : defaults) x = normal(random);
    std::vector<SlotSpec> slots;
    for (int s = 0; s < rule.num_slots; ++s) {
      slots.push_back(SlotSpec{"slot" + std::to_string(s) + rule.slot_suffix,
                               rule.initial});
    }
    for (RowStorage storage : {RowStorage::kDram, RowStorage::kHbm}) {
      tables.emplace_back(new EmbeddingTable(Options(dim, storage)));
      ASSERT_OK(tables.back()->Initialize(defaults, 7));
    }
    for (int step = 0; step < 4; ++step) {
      std::vector<int64_t> keys(3000);
      for (int64_t& key : keys) key = static_cast<int64_t>(random() % 4000) - 9;
      std::vector<float> grads(keys.size() * dim);
      for (float& g : grads) g = normal(random);
      for (const auto& table : tables) {
        UpdateInput in;
        in.table = table.get();
        in.keys = keys;
        in.grads = grads.data();
        const std::vector<UpdateInput> inputs = {in};
        const std::vector<std::vector<SlotSpec>> all = {slots};
        ASSERT_OK(ApplyRule(rule.name, rule.hyper, inputs, all, step, &pool));
      }
    }
    std::vector<std::string> names;
    for (const SlotSpec& slot : slots) names.push_back(slot.name);
    TableSnapshot cpu, gpu;
    ASSERT_OK(tables[0]->Export(names, &cpu));
    ASSERT_OK(tables[1]->Export(names, &gpu));
    ASSERT_EQ(cpu.keys, gpu.keys);
    EXPECT_EQ(cpu.frequencies, gpu.frequencies);
    EXPECT_EQ(cpu.versions, gpu.versions);
    cpu.slots.push_back(cpu.values);
    gpu.slots.push_back(gpu.values);
    for (size_t s = 0; s < cpu.slots.size(); ++s) {
      for (size_t i = 0; i < cpu.slots[s].size(); ++i) {
        const float a = cpu.slots[s][i], b = gpu.slots[s][i];
        if (rule.exact) {
          ASSERT_EQ(0, std::memcmp(&a, &b, sizeof(a)))
              << a << " " << b << " dim " << dim << " part " << s;
        } else {
          ASSERT_NEAR(a, b, 1e-5f * (1.0f + std::fabs(a)));
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuRulesTest,
                         ::testing::Range(0, static_cast<int>(Rules().size())),
                         Printed);

class GpuRowsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::WhyNoGpu().empty()) GTEST_SKIP() << testing::WhyNoGpu();
  }
};

TEST_F(GpuRowsTest, SlotsThatComeLaterKeepTheRows) {
  // Rows of many pieces: 8 MiB hold 4096 rows of 512 floats.
  constexpr int64_t kDim = 512, kKeys = 9000;
  EmbeddingTable table(Options(kDim, RowStorage::kHbm));
  ASSERT_OK(table.Initialize(std::vector<float>(kDim, 0.5f), 1));
  std::vector<int64_t> keys(kKeys);
  std::vector<float> values(kKeys * kDim);
  for (int64_t i = 0; i < kKeys; ++i) {
    keys[i] = i * 7 - 3;
    for (int64_t d = 0; d < kDim; ++d) values[i * kDim + d] = i + d * 0.25f;
  }
  ASSERT_OK(table.WriteRows(keys, {}, values.data(), {}, nullptr, 1, nullptr));
  const int64_t before = table.stats().row_bytes;
  const std::vector<SlotSpec> slots = {{"m", 2.0f}, {"v", 3.0f}};
  ASSERT_OK(table.EnsureSlots(slots, nullptr));
  EXPECT_GT(table.stats().row_bytes, 2 * before);
  TableSnapshot all;
  ASSERT_OK(table.Export(std::vector<std::string>{"v", "m"}, &all));
  ASSERT_EQ(static_cast<size_t>(kKeys), all.keys.size());
  for (int64_t i = 0; i < kKeys; ++i) {
    const int64_t row = (all.keys[i] + 3) / 7;
    for (int64_t d = 0; d < kDim; d += 73) {
      ASSERT_EQ(row + d * 0.25f, all.values[i * kDim + d]);
      ASSERT_EQ(3.0f, all.slots[0][i * kDim + d]);
      ASSERT_EQ(2.0f, all.slots[1][i * kDim + d]);
    }
  }
}

// Large allocations of GPU memory that succeed before one fails, and whether
// all later ones fail too.
int64_t allocations_left = 0;
bool later_ones_fail = false;

bool AllowSome(size_t bytes) {
  if (bytes < size_t{1} << 20) return true;
  const int64_t left = allocations_left--;
  return left > 0 || (left < 0 && !later_ones_fail);
}

TEST_F(GpuRowsTest, SlotsWithoutMemoryLeaveTheRows) {
  // Rows of five pieces: 8 MiB hold 4096 rows of 512 floats.
  constexpr int64_t kDim = 512, kKeys = 17000;
  std::vector<int64_t> keys(kKeys);
  std::vector<float> values(kKeys * kDim);
  for (int64_t i = 0; i < kKeys; ++i) {
    keys[i] = i;
    for (int64_t d = 0; d < kDim; ++d) values[i * kDim + d] = i + d * 0.25f;
  }
  const std::vector<SlotSpec> slots = {{"m", 2.0f}};
  for (const bool all : {false, true}) {
    later_ones_fail = all;
    EmbeddingTable table(Options(kDim, RowStorage::kHbm));
    ASSERT_OK(table.Initialize(std::vector<float>(kDim, 0.5f), 1));
    ASSERT_OK(
        table.WriteRows(keys, {}, values.data(), {}, nullptr, 1, nullptr));
    TableSnapshot before;
    ASSERT_OK(table.Export(std::vector<std::string>{}, &before));
    const int64_t bytes = table.stats().row_bytes;
    int failures = 0;
    for (int at = 0;; ++at) {
      SCOPED_TRACE(at);
      allocations_left = at;
      gpu::SetDeviceAllocationHookForTesting(&AllowSome);
      const Status status = table.EnsureSlots(slots, nullptr);
      gpu::SetDeviceAllocationHookForTesting(nullptr);
      if (status.ok()) break;
      ++failures;
      ASSERT_EQ(StatusCode::kResourceExhausted, status.code())
          << status.message();
      TableSnapshot after;
      ASSERT_OK(table.Export(std::vector<std::string>{}, &after));
      ASSERT_EQ(before.keys, after.keys);
      ASSERT_TRUE(before.values == after.values);
      // Without memory, pieces that moved back keep what they had moved to.
      if (!all) {
        ASSERT_EQ(bytes, table.stats().row_bytes);
      }
    }
    EXPECT_GE(failures, 5);
    TableSnapshot wide;
    ASSERT_OK(table.Export(std::vector<std::string>{"m"}, &wide));
    ASSERT_EQ(before.keys, wide.keys);
    EXPECT_TRUE(before.values == wide.values);
    EXPECT_EQ(std::vector<float>(kKeys * kDim, 2.0f), wide.slots[0]);
  }
}

bool AllowNone(size_t bytes) { return bytes < size_t{32} << 10; }

TEST_F(GpuRowsTest, WithoutPinnedMemoryAStepFailsAndTheNextOneWorks) {
  constexpr int64_t kDim = 64, kOnGpu = 4096, kKeys = 20000;
  TableOptions options = Options(kDim, RowStorage::kHbmDram);
  options.memory_bytes = kOnGpu * kDim * sizeof(float);
  EmbeddingTable table(options);
  ASSERT_OK(table.Initialize(std::vector<float>(kDim, 0.5f), 1));
  std::vector<int64_t> keys(kKeys);
  std::vector<float> values(kKeys * kDim);
  for (int64_t i = 0; i < kKeys; ++i) {
    keys[i] = i;
    for (int64_t d = 0; d < kDim; ++d) values[i * kDim + d] = i + d * 0.25f;
  }
  const Span<const int64_t> first(keys.data(), kOnGpu);
  ASSERT_OK(table.WriteRows(first, {}, values.data(), {}, nullptr, 1, nullptr));
  gpu::SetDeviceAllocationHookForTesting(&AllowNone);
  const Status status =
      table.WriteRows(keys, {}, values.data(), {}, nullptr, 1, nullptr);
  gpu::SetDeviceAllocationHookForTesting(nullptr);
  ASSERT_EQ(StatusCode::kResourceExhausted, status.code()) << status.message();
  EXPECT_NE(std::string::npos, status.message().find("pinned host memory"))
      << status.message();
  EXPECT_NE(std::string::npos, status.message().find("table 'user'"));
  EXPECT_EQ(kOnGpu, table.size());
  EXPECT_EQ(kOnGpu, table.tier_stats().memory_rows);
  ASSERT_OK(table.WriteRows(keys, {}, values.data(), {}, nullptr, 1, nullptr));
  EXPECT_EQ(kKeys - kOnGpu, table.tier_stats().stored_rows);
  std::vector<float> read(values.size());
  ASSERT_OK(table.Gather(keys, read.data(), nullptr));
  EXPECT_TRUE(values == read);
}

TEST_F(GpuRowsTest, WithoutDeviceMemorySaysWhatIsNeededAndFree) {
  constexpr int64_t kDim = 1 << 24;  // 64 MiB a row
  const std::vector<float> row(kDim, 1.0f);
  GpuRowHomeOptions options;
  options.dim = kDim;
  options.default_rows = row;
  std::unique_ptr<GpuRowHome> rows;
  ASSERT_OK(MakeGpuRowHome(options, &rows));
  Status status;
  RowHandle handle = 0;
  for (; status.ok() && handle < 1 << 14; ++handle) {
    status = rows->NewRow(handle, 0);
  }
  ASSERT_EQ(StatusCode::kResourceExhausted, status.code()) << status.message();
  EXPECT_NE(std::string::npos, status.message().find("needs 67108864 bytes"));
  EXPECT_NE(std::string::npos, status.message().find("are free"));
  rows->Clear();
  // The memory has been freed.
  ASSERT_OK(rows->NewRow(0, 0));
  std::vector<float> out(kDim, 0.0f);
  const std::vector<RowHandle> first = {0};
  ASSERT_OK(rows->Read(first, 0, out.data()));
  EXPECT_EQ(row, out);
}

TEST(GpuRowsErrorTest, WithoutAGpuSaysSo) {
  if (testing::WhyNoGpu().empty()) GTEST_SKIP() << "this process has a GPU";
  EmbeddingTable table(Options(2, RowStorage::kHbm));
  const Status status = table.Initialize(std::vector<float>{1, 2}, 1);
  EXPECT_EQ(StatusCode::kFailedPrecondition, status.code()) << status.message();
  EXPECT_NE(std::string::npos, status.message().find("rows in GPU memory need"))
      << status.message();
  EXPECT_NE(std::string::npos, status.message().find("table 'user'"));
}

}  // namespace
}  // namespace ev
