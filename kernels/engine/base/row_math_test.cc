// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Conversions of eight numbers have the bits of those of one number, which
// wire_type_test of the exchange compares with the definition of the formats.

#include "kernels/engine/base/row_math.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

template <typename Number>
class RowMathTest : public ::testing::Test {};

using NarrowNumbers = ::testing::Types<Float16, BFloat16>;
TYPED_TEST_SUITE(RowMathTest, NarrowNumbers);

TYPED_TEST(RowMathTest, EveryNarrowNumberWidensLikeASingleOne) {
  // At an odd address, too.
  std::vector<TypeParam> numbers(9);
  for (uint32_t first = 0; first < 65536; first += 8) {
    for (uint32_t k = 0; k < 8; ++k) {
      numbers[k + 1].bits = static_cast<uint16_t>(first + k);
    }
    const F8 wide = Load8(numbers.data() + 1);
    for (int k = 0; k < 8; ++k) {
      const float expected = Widen(numbers[k + 1]), found = wide[k];
      ASSERT_EQ(std::isnan(expected), std::isnan(found));
      if (std::isnan(expected)) continue;
      ASSERT_EQ(0, std::memcmp(&expected, &found, sizeof(float)))
          << numbers[k + 1].bits;
    }
  }
}

TYPED_TEST(RowMathTest, FloatsRoundLikeASingleOne) {
  TypeParam rounded[9];
  // An odd stride reaches all exponents, and all last bits.
  constexpr uint32_t kStride = 65521;
  for (uint64_t first = 0; first < (uint64_t{1} << 32); first += 8 * kStride) {
    F8 floats;
    for (uint32_t k = 0; k < 8; ++k) {
      const uint32_t bits = static_cast<uint32_t>(first + k * kStride);
      float f;
      std::memcpy(&f, &bits, sizeof(f));
      floats[k] = f;
    }
    Store8(rounded + 1, floats);
    for (int k = 0; k < 8; ++k) {
      TypeParam expected;
      Narrow(floats[k], &expected);
      if (std::isnan(floats[k])) {
        ASSERT_TRUE(std::isnan(Widen(rounded[k + 1])));
        continue;
      }
      ASSERT_EQ(expected.bits, rounded[k + 1].bits) << first << " " << k;
    }
  }
}

// The conversions of processors without such instructions.
TEST(RowMathInFoursTest, EveryFloat16ConvertsLikeASingleOne) {
  for (uint32_t bits = 0; bits < 65536; bits += 8) {
    Float16 numbers[8], again[8];
    for (uint32_t k = 0; k < 8; ++k) {
      numbers[k].bits = static_cast<uint16_t>(bits + k);
    }
    const F8 wide = WidenInFours(numbers);
    StoreFours(again, wide, [](F4 four) { return RoundToFloat16<U4>(four); });
    for (int k = 0; k < 8; ++k) {
      const float expected = Widen(numbers[k]);
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(wide[k]) && std::isnan(Widen(again[k])));
        continue;
      }
      ASSERT_EQ(expected, wide[k]);
      ASSERT_EQ(numbers[k].bits, again[k].bits);
    }
  }
}

}  // namespace
}  // namespace ev
