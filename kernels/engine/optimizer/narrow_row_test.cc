// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tests updates of rows with narrow values. row_rule_test.cc tests the rules.

#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/float_math.h"
#include "kernels/engine/base/random_rounding.h"
#include "kernels/engine/optimizer/row_rule.h"
#include "kernels/engine/testing/guarded_array.h"

namespace ev {
namespace {

struct RuleCase {
  std::string name;
  std::vector<float> hyper;
  std::vector<float> slots;  // initial values
};

// A rule of each kind of loop: without slots, with some, with another loop for
// most rows, and with one number per row.
const RuleCase kCases[] = {
    {"SGD", {0.1f}, {}},
    {"Adagrad", {0.1f}, {0.1f}},
    {"Adagrad", {0.1f, 0.5f}, {0.1f}},  // with a factor of the gradients
    {"Ftrl", {0.1f, 0.02f, 0.03f, 0.0f, -0.5f}, {0.1f, 0.0f}},
    {"AdagradDecay", {0.1f, 3.0f, 0.9f, 0.1f, 0.0f}, {0.1f, 0.0f}},
    {"AdagradDecay", {0.1f, 3.0f, 0.9f, 0.1f, 7.0f}, {0.1f, 0.0f}},
    {"RowWiseAdagrad", {0.1f, 1e-7f}, {0.1f}},
    {"RowWiseAdagrad", {0.1f, 1e-7f, 0.5f}, {0.1f}},
};

// Rows with narrow values: the rule computes as for their float32 copies, and
// rounds the values once. Values and slots of an odd dim have guarded ends.
TEST(NarrowRowTest, EveryRuleComputesInFloat32AndRoundsOnce) {
  for (const FloatType type : {FloatType::kFloat16, FloatType::kBFloat16}) {
    for (const RuleCase& c : kCases) {
      for (const int64_t dim : {1, 3, 4, 16, 29}) {
        std::unique_ptr<const RowRule> rule;
        const Status made = MakeRowRule(c.name, c.hyper, &rule);
        ASSERT_TRUE(made.ok()) << made.message();
        const int64_t width = rule->is_per_row() ? 1 : dim;
        const int64_t value_floats = (dim + 1) / 2;
        std::vector<float> wide(dim + c.slots.size() * width);
        std::vector<float> row(value_floats + c.slots.size() * width);
        std::vector<int64_t> wide_offsets, offsets;
        std::vector<float> grad;
        for (int64_t j = 0; j < dim; ++j) {
          grad.push_back(0.3f * static_cast<float>(j % 7) - 0.8f);
          Float16 half;
          BFloat16 brain;
          const float value = 0.125f * static_cast<float>(j + 1);
          Narrow(value, &half);
          Narrow(value, &brain);
          ASSERT_EQ(value, Widen(half));
          ASSERT_EQ(value, Widen(brain));
          wide[j] = value;
          reinterpret_cast<uint16_t*>(row.data())[j] =
              type == FloatType::kFloat16 ? half.bits : brain.bits;
        }
        for (size_t k = 0; k < c.slots.size(); ++k) {
          wide_offsets.push_back(dim + k * width);
          offsets.push_back(value_floats + k * width);
          std::fill_n(&wide[wide_offsets[k]], width, c.slots[k]);
          std::fill_n(&row[offsets[k]], width, c.slots[k]);
        }
        testing::GuardedArray<float> guarded(row);
        float* rows[] = {wide.data(), guarded.data()};
        RowBlock block;
        block.grads = grad.data();
        block.num_rows = 1;
        block.dim = dim;
        block.rows = &rows[0];
        block.slot_offsets = wide_offsets.data();
        rule->Apply(block);
        block.rows = &rows[1];
        block.slot_offsets = offsets.data();
        block.value_type = type;
        rule->Apply(block);
        for (int64_t j = 0; j < dim; ++j) {
          const uint16_t bits =
              reinterpret_cast<const uint16_t*>(guarded.data())[j];
          ASSERT_EQ(bits, type == FloatType::kFloat16 ? ToFloat16(wide[j])
                                                      : ToBFloat16(wide[j]))
              << c.name << " " << dim << " " << j;
        }
        for (size_t k = 0; k < c.slots.size(); ++k) {
          for (int64_t j = 0; j < width; ++j) {
            ASSERT_EQ(guarded.data()[offsets[k] + j], wide[wide_offsets[k] + j])
                << c.name;
          }
        }
      }
    }
  }
}

// Rows of ordinary numbers, and rows with a zero, a subnormal or too large a
// number, take different paths.
TEST(NarrowRowTest, RowsAreRoundedLikeSingleNumbers) {
  std::unique_ptr<const RowRule> rule;
  ASSERT_TRUE(MakeRowRule("SGD", std::vector<float>{1.0f}, &rule).ok());
  std::mt19937 random(5);
  for (const FloatType type : {FloatType::kFloat16, FloatType::kBFloat16}) {
    for (const int64_t dim : {1, 7, 16, 40, 64, 128}) {
      for (uint64_t row = 0; row < 200; ++row) {
        // Zero values; a step leads to the number to be rounded.
        std::vector<float> value((dim + 1) / 2), grad(dim);
        for (float& g : grad) {
          g = std::ldexp(
              static_cast<float>(random()) / (1u << 31) - 1.0f,
              row % 2 == 0 ? -3 : static_cast<int>(random() % 45) - 28);
        }
        const uint64_t salt = RoundingSalt(UpdateSalt(3, row), 17);
        testing::GuardedArray<float> guarded(value);
        float* const at = guarded.data();
        int64_t overflows = 0, expected_overflows = 0;
        RowBlock block;
        block.rows = &at;
        block.grads = grad.data();
        block.num_rows = 1;
        block.dim = dim;
        block.value_type = type;
        block.salts = &salt;
        block.overflows = &overflows;
        rule->Apply(block);
        for (int64_t j = 0; j < dim; ++j) {
          const float exact = 0.0f - grad[j];
          const uint32_t bits = RandomBitsOfColumn(salt, j);
          const uint32_t expected = type == FloatType::kFloat16
                                        ? RoundRandomlyToFloat16(exact, bits)
                                        : RoundRandomlyToBFloat16(exact, bits);
          ASSERT_EQ(reinterpret_cast<const uint16_t*>(at)[j], expected)
              << exact << " " << j;
          if ((expected & 0x7FFF) == 0x7C00 && type == FloatType::kFloat16) {
            expected_overflows = 1;
          }
        }
        ASSERT_EQ(overflows, expected_overflows);
      }
    }
  }
}

}  // namespace
}  // namespace ev
