// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/wire_type.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace sok {
namespace {

float Decode(WireType type, uint16_t bits) {
  float f;
  FromWire(&bits, 1, type, &f);
  return f;
}

uint16_t Encode(WireType type, float f) {
  uint16_t bits;
  ToWire(&f, 1, type, &bits);
  return bits;
}

// Decodes a number by the definition of its format.
double Meaning(WireType type, uint16_t bits) {
  const int mantissa_bits = type == WireType::kFloat16 ? 10 : 7;
  const int exponent_bits = 15 - mantissa_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 0) {
    return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  }
  return sign * std::ldexp(mantissa + (1 << mantissa_bits),
                           exponent - bias - mantissa_bits);
}

class WireTypeTest : public ::testing::TestWithParam<WireType> {};

TEST_P(WireTypeTest, EveryValueSurvives) {
  const uint16_t infinity = GetParam() == WireType::kFloat16 ? 0x7C00 : 0x7F80;
  for (int i = 0; i < 65536; ++i) {
    const uint16_t bits = static_cast<uint16_t>(i);
    const float f = Decode(GetParam(), bits);
    if ((bits & 0x7FFF) > infinity) {
      EXPECT_TRUE(std::isnan(f)) << i;
      EXPECT_TRUE(std::isnan(Decode(GetParam(), Encode(GetParam(), f)))) << i;
      continue;
    }
    ASSERT_EQ(Encode(GetParam(), f), bits) << i;
    if ((bits & 0x7FFF) < infinity) {
      ASSERT_EQ(static_cast<double>(f), Meaning(GetParam(), bits)) << i;
    } else {
      ASSERT_TRUE(std::isinf(f));
    }
  }
}

// Numbers between two neighbours round to the nearer one, and to the even one
// from the middle.
TEST_P(WireTypeTest, RoundsToNearestEven) {
  const uint16_t infinity = GetParam() == WireType::kFloat16 ? 0x7C00 : 0x7F80;
  for (uint16_t bits = 0; bits + 1 < infinity; ++bits) {
    const double low = Meaning(GetParam(), bits);
    const double high = Meaning(GetParam(), bits + 1);
    const float middle = static_cast<float>((low + high) / 2);
    if (static_cast<double>(middle) != (low + high) / 2) continue;
    const uint16_t even = bits & 1 ? bits + 1 : bits;
    ASSERT_EQ(Encode(GetParam(), middle), even) << bits;
    ASSERT_EQ(Encode(GetParam(), -middle), even | 0x8000) << bits;
    const float above =
        std::nextafter(middle, std::numeric_limits<float>::infinity());
    ASSERT_EQ(Encode(GetParam(), above), bits + 1) << bits;
    const float below = std::nextafter(middle, 0.0f);
    ASSERT_EQ(Encode(GetParam(), below), bits) << bits;
  }
}

TEST_P(WireTypeTest, LimitsAndSpecialValues) {
  const float infinite = std::numeric_limits<float>::infinity();
  EXPECT_EQ(Decode(GetParam(), Encode(GetParam(), infinite)), infinite);
  EXPECT_EQ(Decode(GetParam(), Encode(GetParam(), -infinite)), -infinite);
  EXPECT_EQ(Encode(GetParam(), -0.0f), 0x8000);
  uint32_t all_ones = 0x7FFFFFFF;
  float nan;
  std::memcpy(&nan, &all_ones, sizeof(nan));
  EXPECT_TRUE(std::isnan(Decode(GetParam(), Encode(GetParam(), nan))));
  uint32_t low_bit = 0x7F800001;
  std::memcpy(&nan, &low_bit, sizeof(nan));
  EXPECT_TRUE(std::isnan(Decode(GetParam(), Encode(GetParam(), nan))));
  const float big = std::numeric_limits<float>::max();
  EXPECT_EQ(Decode(GetParam(), Encode(GetParam(), big)), infinite);
}

INSTANTIATE_TEST_SUITE_P(Narrow, WireTypeTest,
                         ::testing::Values(WireType::kFloat16,
                                           WireType::kBFloat16));

TEST(Float16, OverflowsAt65520) {
  EXPECT_EQ(Encode(WireType::kFloat16, 65519.0f), 0x7BFF);
  EXPECT_EQ(Encode(WireType::kFloat16, 65520.0f), 0x7C00);
  EXPECT_EQ(Encode(WireType::kFloat16, 1e30f), 0x7C00);
  EXPECT_EQ(Encode(WireType::kFloat16, 0x1p-26f), 0);
}

TEST(Float32, CopiesItsInput) {
  std::mt19937 rng(1);
  std::vector<float> from(37), to(37);
  for (float& f : from) f = static_cast<float>(rng());
  std::vector<char> wire(37 * WireBytes(WireType::kFloat32));
  ToWire(from.data(), 37, WireType::kFloat32, wire.data());
  FromWire(wire.data(), 37, WireType::kFloat32, to.data());
  EXPECT_EQ(from, to);
}

}  // namespace
}  // namespace sok
