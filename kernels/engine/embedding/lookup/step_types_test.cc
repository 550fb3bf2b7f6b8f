// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests steps with narrow outputs and gradients. Compares with tables in CPU
// memory, bit by bit; their types are tested in pooled_types_test.cc.

#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/embedding/lookup/step_under_test.h"

namespace ev {
namespace {

class StepTypesTest : public StepLookupTest,
                      public ::testing::WithParamInterface<FloatType> {
 protected:
  void SetUp() override {
    StepLookupTest::SetUp();
    type_ = GetParam();
  }
};

TEST_P(StepTypesTest, OutputsAndGradientsMayBeNarrow) {
  for (int step = 0; step < 4; ++step) Train(Adagrad(), step);
  ExpectSameTables({"Adagrad"});
  Train(Momentum(), 1);
  ExpectSameTables({"Adagrad", "Momentum"});
}

// CPU memory's rows show that the factor acts: row_rule_test.cc.
TEST_P(StepTypesTest, AFactorMayFollowTheHyperparameters) {
  Rule adagrad = Adagrad(), momentum = Momentum();
  adagrad.hyper.push_back(1.0f / 128);
  momentum.hyper.push_back(0.3f);
  for (int step = 0; step < 3; ++step) Train(adagrad, step);
  Train(momentum, 1);
  ExpectSameTables({"Adagrad", "Momentum"});
}

TEST_P(StepTypesTest, GradientsNeedNotBeAligned) {
  grads_offset_ = 1;
  for (int step = 0; step < 3; ++step) Train(Adagrad(), step);
  ExpectSameTables({"Adagrad"});
}

TEST_P(StepTypesTest, IdsMayBeOnTheDevice) {
  ids_ = Ids::kDevice;
  for (int step = 0; step < 3; ++step) Train(Adagrad(), step);
  ExpectSameTables({"Adagrad"});
}

// A table may be trained with another type in each step.
TEST_P(StepTypesTest, TypesMayChangeFromStepToStep) {
  Train(Adagrad(), 0);
  type_ = FloatType::kFloat32;
  Train(Adagrad(), 1);
  type_ = GetParam();
  Train(Adagrad(), 1);
  ExpectSameTables({"Adagrad"});
}

// Outputs and gradients in host memory are copied to and from the device.
TEST_P(StepTypesTest, OutputsAndGradientsMayBeInHostMemory) {
  for (int step = 0; step < 4; ++step) {
    const std::vector<Batch> batches = Batches(step);
    std::vector<std::vector<float>> outputs[2];
    for (int k = 0; k < 2; ++k) {
      const std::vector<Table>& tables = k == 0 ? cpu_tables_ : device_tables_;
      Plan plan;
      std::vector<float*> pointers;
      for (const Batch& batch : batches) {
        outputs[k].emplace_back(batch.grads.size(), 77.0f);
      }
      for (auto& output : outputs[k]) pointers.push_back(output.data());
      const std::vector<MutableFloats> typed = Typed(pointers);
      ASSERT_OK(PooledForward(Inputs(batches, tables, false), tables,
                              Span<const MutableFloats>(typed), &pool_, &plan));
      ASSERT_OK(Update(Adagrad(), batches, tables, *plan, false, 0,
                       static_cast<int>(tables.size())));
    }
    EXPECT_EQ(outputs[0], outputs[1]);
  }
  ExpectSameTables({"Adagrad"});
}

INSTANTIATE_TEST_SUITE_P(Types, StepTypesTest,
                         ::testing::Values(FloatType::kFloat32,
                                           FloatType::kFloat16,
                                           FloatType::kBFloat16));

}  // namespace
}  // namespace ev
