// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Updates of rows on a device by keys that occur once and keys that occur up to
// a million times in a batch. The sum of a key's gradients is formed in the
// order of its occurrences, wherever it is formed, so it has the bits of a
// loop.

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/optimizer/row_rule.h"
#include "kernels/engine/rows/gpu_row_home.h"
#include "kernels/engine/testing/storage_under_test.h"
#include "kernels/engine/testing/stream_under_test.h"

namespace ev {
namespace {

#define ASSERT_OK(expression)                             \
  do {                                                    \
    const Status ev_status_ = (expression);               \
    ASSERT_TRUE(ev_status_.ok()) << ev_status_.message(); \
  } while (0)

// kFactors: the mean of the ids of a sample, so that its gradient has a factor.
enum class Scale { kNone, kFactors };

struct RuleCase {
  const char* name;
  std::vector<float> hyper;
  int num_slots;
};

const RuleCase kAdagrad = {"Adagrad", {0.1f}, 1};
const RuleCase kRowWise = {"RowWiseAdagrad", {0.1f, 1e-8f}, 1};

// Keys with these numbers of occurrences, in random samples. Key u is that of
// row u.
struct Batch {
  int64_t dim, num_samples;
  std::vector<int32_t> keys, offsets;  // by sample
  std::vector<int32_t> ends, samples;  // by key
  std::vector<float> factors, grads;

  // sample(u, i): the sample of occurrence i of key u.
  template <typename SampleOf>
  Batch(const std::vector<int32_t>& runs, int64_t samples_in, int64_t dim_in,
        const SampleOf& sample)
      : dim(dim_in), num_samples(samples_in) {
    std::vector<std::vector<int32_t>> keys_of(num_samples);
    int32_t end = 0;
    for (size_t u = 0; u < runs.size(); ++u) {
      std::vector<int32_t> of_key;
      for (int32_t i = 0; i < runs[u]; ++i) of_key.push_back(sample(u, i));
      std::sort(of_key.begin(), of_key.end());
      for (int32_t s : of_key) keys_of[s].push_back(static_cast<int32_t>(u));
      samples.insert(samples.end(), of_key.begin(), of_key.end());
      ends.push_back(end += runs[u]);
    }
    offsets.push_back(0);
    for (const std::vector<int32_t>& of_sample : keys_of) {
      keys.insert(keys.end(), of_sample.begin(), of_sample.end());
      offsets.push_back(static_cast<int32_t>(keys.size()));
      const float n = static_cast<float>(of_sample.size());
      factors.push_back(of_sample.empty() ? 1.0f : 1.0f / n);
    }
    std::mt19937 random(static_cast<unsigned>(dim + runs.size()));
    std::normal_distribution<float> normal;
    for (int64_t i = 0; i < num_samples * dim; ++i) {
      grads.push_back(normal(random));
    }
  }
  Batch(const std::vector<int32_t>& runs, int64_t samples_in, int64_t dim_in)
      : Batch(runs, samples_in, dim_in, Random(samples_in, dim_in)) {}

  static std::function<int32_t(size_t, int32_t)> Random(int64_t num_samples,
                                                        int64_t dim) {
    const auto random = std::make_shared<std::mt19937>(dim);
    return [random, num_samples](size_t, int32_t) {
      return static_cast<int32_t>((*random)() % num_samples);
    };
  }

  std::vector<float> Sums(Scale scale) const {
    std::vector<float> sums;
    for (size_t u = 0; u < ends.size(); ++u) {
      const int32_t begin = u == 0 ? 0 : ends[u - 1];
      for (int64_t c = 0; c < dim; ++c) {
        float sum = 0.0f;
        for (int32_t i = begin; i < ends[u]; ++i) {
          float grad = grads[samples[i] * dim + c];
          if (scale == Scale::kFactors) grad = grad * factors[samples[i]];
          sum = i == begin ? grad : sum + grad;
        }
        sums.push_back(sum);
      }
    }
    return sums;
  }
};

std::unique_ptr<const RowRule> MakeRule(const RuleCase& rule) {
  std::unique_ptr<const RowRule> made;
  EXPECT_TRUE(MakeRowRule(rule.name, rule.hyper, &made).ok());
  return made;
}

class HotKeysTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!testing::WhyNoGpu().empty()) GTEST_SKIP() << testing::WhyNoGpu();
  }

  // Rows 0 to n - 1 are updated by samples, rows n to 2 n - 1 by sums.
  void MakeRows(int64_t n, int64_t dim, const RuleCase& rule) {
    dim_ = dim;
    const std::vector<float> row(dim, 0.5f);
    GpuRowHomeOptions options;
    options.dim = dim;
    options.default_rows = row;
    ASSERT_OK(MakeGpuRowHome(options, &rows_));
    const int64_t width = MakeRule(rule)->is_per_row() ? 1 : dim;
    ASSERT_OK(rows_->Relayout(
        std::vector<SlotShape>(rule.num_slots, SlotShape{0.1f, width})));
    handles_.resize(2 * n);
    std::iota(handles_.begin(), handles_.end(), RowHandle{0});
    for (RowHandle handle : handles_) ASSERT_OK(rows_->NewRow(handle, 0));
  }

  Span<const RowHandle> BySamples() const {
    return Span<const RowHandle>(handles_.data(), handles_.size() / 2);
  }
  Span<const RowHandle> BySums() const {
    return Span<const RowHandle>(handles_.data() + handles_.size() / 2,
                                 handles_.size() / 2);
  }

  // Looks the batch up and updates it, in a step. handles: those of the keys at
  // the lookup and at the update. grads: in memory of the stream's device;
  // null: those of the batch.
  Status Apply(const Batch& batch, Scale scale, const RuleCase& rule,
               const std::vector<RowHandle>& handles,
               const std::vector<RowHandle>& updated,
               const float* grads = nullptr,
               testing::StreamUnderTest* framework = nullptr) {
    std::vector<RowHandle> of_ids, of_updated;
    for (int32_t key : batch.keys) {
      of_ids.push_back(handles[key]);
      of_updated.push_back(updated[key]);
    }
    std::vector<float> outputs(batch.grads.size());
    DeviceStream stream;
    if (framework != nullptr) stream = framework->stream();
    const DeviceStream* const on = framework == nullptr ? nullptr : &stream;
    GpuStepTable table;
    table.table = rows_.get();
    table.num_ids = of_ids.size();
    table.num_samples = batch.num_samples;
    table.is_narrow = table.are_handles = true;
    table.combiner =
        scale == Scale::kFactors ? Combiner::kMean : Combiner::kSum;
    table.out = framework == nullptr ? outputs.data()
                                     : framework->Allocate(outputs.size());
    std::shared_ptr<GpuStep> step;
    EV_RETURN_IF_ERROR(
        rows_->StartStep(std::vector<GpuStepTable>{table}, on, &step));
    const auto* const put = reinterpret_cast<const int32_t*>(of_ids.data());
    EV_RETURN_IF_ERROR(
        step->Put(0, 0, Span<const int32_t>(put, of_ids.size())));
    EV_RETURN_IF_ERROR(step->Start(0, batch.offsets));
    EV_RETURN_IF_ERROR(step->Pool());
    if (on == nullptr) EV_RETURN_IF_ERROR(step->TakeOutput(0));
    GpuStepUpdate update;
    update.table = rows_.get();
    update.handles = of_updated;
    update.grads = grads;
    std::unique_ptr<DeviceGradients> copied;
    if (on == nullptr) {
      EV_RETURN_IF_ERROR(rows_->StartGradients(batch.grads.data(),
                                               batch.num_samples, &copied));
      if (copied->needs_put()) {
        EV_RETURN_IF_ERROR(
            copied->Put(0, batch.num_samples, batch.grads.data()));
      }
      update.put_grads = copied.get();
    }
    std::unique_ptr<GpuMetaUpdates> meta_updates;
    return step->Update(rule.name, rule.hyper,
                        std::vector<GpuStepUpdate>{update}, on, &meta_updates);
  }

  void ExpectTheSameBits(const Batch& batch, Scale scale, const RuleCase& rule,
                         const float* grads = nullptr,
                         testing::StreamUnderTest* framework = nullptr) {
    MakeRows(batch.ends.size(), batch.dim, rule);
    std::vector<int> columns(rule.num_slots);
    std::iota(columns.begin(), columns.end(), 0);
    const std::vector<RowHandle> handles(BySamples().begin(),
                                         BySamples().end());
    for (int step = 0; step < 2; ++step) {
      ASSERT_OK(Apply(batch, scale, rule, handles, handles, grads, framework));
      ASSERT_OK(rows_->Apply(*MakeRule(rule), BySums(), columns,
                             batch.Sums(scale).data(), nullptr));
    }
    for (int column = 0; column <= rule.num_slots; ++column) {
      const bool is_per_row = column > 0 && MakeRule(rule)->is_per_row();
      const size_t n = batch.ends.size() * (is_per_row ? 1 : batch.dim);
      std::vector<float> got(n), want(n);
      ASSERT_OK(rows_->Read(BySamples(), column, got.data()));
      ASSERT_OK(rows_->Read(BySums(), column, want.data()));
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(0, std::memcmp(&got[i], &want[i], sizeof(float)))
            << got[i] << " instead of " << want[i] << ", column " << column
            << " key " << i / batch.dim << " of "
            << batch.ends[i / batch.dim] -
                   (i / batch.dim == 0 ? 0 : batch.ends[i / batch.dim - 1])
            << " occurrences, element " << i % batch.dim << " of " << batch.dim;
      }
    }
  }

  int64_t dim_ = 0;
  std::unique_ptr<GpuRowHome> rows_;
  std::vector<RowHandle> handles_;
};

// Numbers around those at which sums may be split.
const std::vector<int32_t>& Runs() {
  static const std::vector<int32_t>* const runs = new std::vector<int32_t>{
      3,   1,   256, 100, 2,   255, 257, 16,  17,  64,  63,  65,  1,
      127, 128, 129, 192, 320, 383, 384, 385, 511, 512, 513, 640, 4096};
  return *runs;
}

TEST_F(HotKeysTest, RowsOfAnyWidth) {
  for (int64_t dim :
       {1, 2, 3, 4, 5, 8, 16, 20, 31, 32, 33, 36, 64, 100, 256, 257}) {
    const Batch batch(Runs(), 700, dim);
    for (Scale scale : {Scale::kNone, Scale::kFactors}) {
      SCOPED_TRACE(static_cast<int>(scale));
      ASSERT_NO_FATAL_FAILURE(ExpectTheSameBits(batch, scale, kAdagrad));
      ASSERT_NO_FATAL_FAILURE(ExpectTheSameBits(batch, scale, kRowWise));
    }
  }
}

TEST_F(HotKeysTest, EveryRule) {
  const std::vector<RuleCase> rules = {
      {"SGD", {0.1f}, 0},
      {"Momentum", {0.1f, 0.9f, 0.0f}, 1},
      {"Momentum", {0.1f, 0.9f, 1.0f}, 1},
      {"AdagradDecay", {0.1f, 2.0f, 0.9f, 0.1f, 7.0f}, 2},
      {"Adam", {0.1f, 0.9f, 0.999f, 1e-8f, 0.9f, 0.999f}, 2},
      {"AdamAsync", {0.1f, 0.9f, 0.999f, 1e-8f, 0.9f, 0.999f, 0.0f}, 2},
      {"AdamAsync", {0.1f, 0.9f, 0.999f, 1e-8f, 0.9f, 0.999f, 1.0f}, 2},
      {"AdamW", {0.1f, 0.9f, 0.999f, 1e-8f, 0.9f, 0.999f, 0.01f}, 2},
      {"Ftrl", {0.1f, 0.01f, 0.01f, 0.0f, -0.5f}, 2},
      {"Ftrl", {0.1f, 0.01f, 0.01f, 0.0f, -0.4f}, 2},
      {"RMSProp", {0.1f, 0.9f, 0.1f, 1e-7f}, 2},
      {"CenteredRMSProp", {0.1f, 0.9f, 0.1f, 1e-7f}, 3},
      {"Adadelta", {0.1f, 0.9f, 1e-7f}, 2},
  };
  const Batch batch({1, 700, 20, 3000, 300}, 900, 6);
  for (const RuleCase& rule : rules) {
    SCOPED_TRACE(rule.name);
    ASSERT_NO_FATAL_FAILURE(ExpectTheSameBits(batch, Scale::kFactors, rule));
  }
}

TEST_F(HotKeysTest, AMillionOccurrences) {
  for (int64_t dim : {1, 16, 40}) {
    const Batch batch({5, 100000, 1, 1000000, 10000, 64000, 2}, 4000, dim);
    ASSERT_NO_FATAL_FAILURE(ExpectTheSameBits(batch, Scale::kNone, kAdagrad));
  }
}

TEST_F(HotKeysTest, OnlyHotKeysAndMoreThanAreSummedAtOnce) {
  const Batch batch(std::vector<int32_t>(1500, 300), 2000, 36);
  ASSERT_NO_FATAL_FAILURE(ExpectTheSameBits(batch, Scale::kFactors, kAdagrad));
}

TEST_F(HotKeysTest, AHotKeyWithoutARowIsPassedOver) {
  const Batch batch({600, 1000, 2, 700}, 100, 8);
  ASSERT_NO_FATAL_FAILURE(MakeRows(4, 8, kAdagrad));
  const std::vector<RowHandle> handles = {AbsentAs(0), 1, 2, AbsentAs(0)};
  const std::vector<RowHandle> updated = {AbsentAs(0), 1, 2, kNoRow};
  const std::vector<int> columns = {0};
  ASSERT_OK(Apply(batch, Scale::kNone, kAdagrad, handles, updated));
  std::vector<float> sums = batch.Sums(Scale::kNone);
  const std::vector<RowHandle> two = {5, 6};
  ASSERT_OK(rows_->Apply(*MakeRule(kAdagrad), two, columns, sums.data() + 8,
                         nullptr));
  std::vector<float> got(8 * 8);
  ASSERT_OK(rows_->Read(handles_, 0, got.data()));
  const std::vector<float> untouched(8, 0.5f);
  EXPECT_EQ(0, std::memcmp(untouched.data(), got.data(), 32));
  EXPECT_EQ(0, std::memcmp(got.data() + 5 * 8, got.data() + 8, 2 * 32));
  EXPECT_NE(0, std::memcmp(untouched.data(), got.data() + 8, 32));
  EXPECT_EQ(0, std::memcmp(untouched.data(), got.data() + 3 * 8, 32));
}

TEST_F(HotKeysTest, SignsAndInfinities) {
  Batch batch({400, 400, 400}, 3, 2,
              [](size_t u, int32_t) { return static_cast<int32_t>(u); });
  batch.grads = {-0.0f, 1e-41f, INFINITY, 3e38f, 0.0f, -INFINITY};
  ASSERT_NO_FATAL_FAILURE(
      ExpectTheSameBits(batch, Scale::kNone, {"SGD", {0.1f}, 0}));
}

// A framework's tensor may start at any address.
TEST_F(HotKeysTest, GradientsOnTheDeviceThatAreNotAligned) {
  for (int64_t dim : {4, 16, 64}) {
    const Batch batch(Runs(), 300, dim);
    const auto framework = testing::StreamUnderTest::Make();
    float* const grads = framework->Allocate(batch.grads.size() + 1);
    std::vector<float> shifted = {0.0f};
    shifted.insert(shifted.end(), batch.grads.begin(), batch.grads.end());
    framework->Fill(shifted, grads);
    ASSERT_NO_FATAL_FAILURE(ExpectTheSameBits(batch, Scale::kNone, kAdagrad,
                                              grads + 1, framework.get()));
  }
}

}  // namespace
}  // namespace ev
