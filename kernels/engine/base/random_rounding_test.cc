// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/random_rounding.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/row_math.h"

namespace ev {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct ToFloat16Randomly {
  using Number = Float16;
  template <typename U, typename F>
  static U Round(F f, U bits) {
    return RoundRandomlyToFloat16(f, bits);
  }
};
struct ToBFloat16Randomly {
  using Number = BFloat16;
  template <typename U, typename F>
  static U Round(F f, U bits) {
    return RoundRandomlyToBFloat16(f, bits);
  }
};

template <typename Rounding>
class RandomRoundingTest : public ::testing::Test {
 protected:
  using Number = typename Rounding::Number;

  static float Rounded(float f, uint32_t bits) {
    const uint32_t rounded = Rounding::Round(f, bits);
    EXPECT_LT(rounded, 65536u);
    Number number;
    number.bits = static_cast<uint16_t>(rounded);
    return Widen(number);
  }
};

using Roundings = ::testing::Types<ToFloat16Randomly, ToBFloat16Randomly>;
TYPED_TEST_SUITE(RandomRoundingTest, Roundings);

TYPED_TEST(RandomRoundingTest, MeansAreTheNumbers) {
  constexpr int kCount = 1000000;
  // Ordinary numbers, both signs, a step that nearest rounding drops, and
  // subnormal ones of float16: 2^-24 is its unit.
  const float unit = std::ldexp(1.0f, -24);
  for (const float f :
       {0.1f, -0.1f, 1.0f + 1e-5f, 3.14159f, 1000.3f, -65000.7f, 2e-5f, -3e-5f,
        6.09e-5f, unit * 0.3f, unit * -7.9f, unit * 1023.5f, 1e-8f}) {
    std::set<float> found;
    double sum = 0;
    for (int i = 0; i < kCount; ++i) {
      const uint32_t bits =
          RandomBitsOfColumn(RoundingSalt(UpdateSalt(7, i), 12345), 3);
      const float rounded = this->Rounded(f, bits);
      found.insert(rounded);
      sum += rounded;
    }
    ASSERT_LE(found.size(), 2u) << f;
    const double low = *found.begin(), high = *found.rbegin();
    EXPECT_LE(low, f);
    EXPECT_GE(high, f);
    if (found.size() == 1) {
      EXPECT_EQ(low, f);
      continue;
    }
    const double chance = (f - low) / (high - low);
    const double sigma =
        (high - low) * std::sqrt(chance * (1 - chance) / kCount);
    EXPECT_NEAR(sum / kCount, f, 4 * sigma) << low << " " << high;
  }
}

TYPED_TEST(RandomRoundingTest, NeighboursAreTheNearestOnes) {
  // The rounded number and its other neighbour enclose every float.
  for (uint64_t u = 0; u < uint64_t{1} << 32; u += 65521) {
    const uint32_t bits = static_cast<uint32_t>(u);
    float f;
    std::memcpy(&f, &bits, sizeof(f));
    const float low = this->Rounded(f, 0);
    const float high = this->Rounded(f, 0xFFFFu);
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(low) && std::isnan(high)) << bits;
      EXPECT_EQ(std::signbit(low), std::signbit(f));
      continue;
    }
    typename TestFixture::Number number;
    Narrow(f, &number);
    const float nearest = Widen(number);
    if (std::isinf(low)) {  // beyond the power of two above the largest number
      EXPECT_TRUE(std::isinf(nearest)) << f;
      continue;
    }
    ASSERT_LE(std::fabs(low), std::fabs(f)) << f;
    ASSERT_GE(std::fabs(high), std::fabs(nearest)) << f;
    ASSERT_TRUE(nearest == low || nearest == high ||
                std::fabs(f) < 1e-7f)  // a chance below 2^-17 is none
        << f << " " << low << " " << high << " " << nearest;
    if (f == nearest) {
      ASSERT_EQ(low, f);
      ASSERT_EQ(high, f);
    }
  }
}

TYPED_TEST(RandomRoundingTest, SpecialNumbersStay) {
  for (const uint32_t bits : {0u, 0x1234u, 0xFFFFu}) {
    for (const float f : {0.0f, 1.0f, -2.5f, kInfinity, -kInfinity}) {
      EXPECT_EQ(this->Rounded(f, bits), f);
    }
    EXPECT_TRUE(std::signbit(this->Rounded(-0.0f, bits)));
    EXPECT_TRUE(std::isnan(this->Rounded(std::nanf(""), bits)));
  }
  EXPECT_EQ(this->Rounded(-std::numeric_limits<float>::max(), 0xFFFFu),
            -kInfinity);
}

TYPED_TEST(RandomRoundingTest, VectorsAreLikeSingleNumbers) {
  for (uint64_t u = 0; u < uint64_t{1} << 32; u += 4 * 65519) {
    F4 floats;
    U4 bits_of;
    for (uint32_t k = 0; k < 4; ++k) {
      const uint32_t bits = static_cast<uint32_t>(u + k * 65519);
      float f;
      std::memcpy(&f, &bits, sizeof(f));
      floats[k] = f;
      bits_of[k] = RandomBitsOfColumn(u, k);
    }
    const U4 found = TypeParam::Round(F4(floats), bits_of);
    for (int k = 0; k < 4; ++k) {
      const uint32_t bits = bits_of[k];
      EXPECT_EQ(found[k], TypeParam::Round(float(floats[k]), bits))
          << floats[k];
    }
  }
}

TEST(RandomBitsTest, EveryBitIsFairAndIndependentOfTheOthers) {
  // Columns of one row, rows of one update, and updates of one row.
  constexpr int kCount = 1 << 18;
  for (int way = 0; way < 3; ++way) {
    std::vector<int> ones(16), pairs(16);
    uint32_t before = 0;
    for (int i = 0; i < kCount; ++i) {
      const uint64_t salt =
          RoundingSalt(UpdateSalt(99, way == 2 ? i : 5), way == 1 ? i : 77);
      const uint32_t bits =
          RandomBitsOfColumn(salt, static_cast<uint32_t>(way == 0 ? i : 2));
      for (int b = 0; b < 16; ++b) {
        ones[b] += bits >> b & 1;
        pairs[b] += (bits ^ before) >> b & 1;
      }
      before = bits;
    }
    for (int b = 0; b < 16; ++b) {
      EXPECT_NEAR(ones[b], kCount / 2, 5 * 256) << way << " " << b;
      EXPECT_NEAR(pairs[b], kCount / 2, 5 * 256) << way << " " << b;
    }
  }
}

}  // namespace
}  // namespace ev
