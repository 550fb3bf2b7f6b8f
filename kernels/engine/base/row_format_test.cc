// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/row_format.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace ev {
namespace {

constexpr RowType kPacked[] = {RowType::kFloat16, RowType::kUint8};

// Packs and unpacks one row; key 7.
Status RoundTrip(const RowFormat& format, const std::vector<float>& row,
                 std::vector<float>* out) {
  const int64_t key = 7;
  std::vector<float> stored(format.width(), -1.0f);
  EV_RETURN_IF_ERROR(PackRows(format, Span<const int64_t>(&key, 1), row.data(),
                              stored.data()));
  Serial serial;
  out->assign(row.size(), -1.0f);
  UnpackRows(format, 1, stored.data(), out->data(), &serial);
  return Status::OK();
}

TEST(RowFormatTest, SizesAndTexts) {
  EXPECT_EQ(RowFormat(64).width(), 64);
  EXPECT_EQ(RowFormat(64, RowType::kFloat16).width(), 32);
  EXPECT_EQ(RowFormat(64, RowType::kUint8).width(), 17);
  EXPECT_EQ(RowFormat(1, RowType::kFloat16).width(), 1);
  EXPECT_EQ(RowFormat(1, RowType::kUint8).width(), 2);
  EXPECT_EQ(RowFormat(17, RowType::kUint8).width(), 6);
  for (const char* text : {"64", "17 uint8 64", "32 float16 63"}) {
    RowFormat format;
    EXPECT_TRUE(ParseFormatText(text, &format)) << text;
    EXPECT_EQ(FormatText(format), text);
  }
  for (const char* text : {"", "0", "-3", "x", "17 uint8", "16 uint8 64",
                           "17 int8 64", "64 float33 64"}) {
    RowFormat format;
    EXPECT_FALSE(ParseFormatText(text, &format)) << text;
  }
}

// The bytes, worked out by hand: offset -1 and scale 2 / 255 above.
TEST(RowFormatTest, BytesOfAUint8Row) {
  const std::vector<float> row = {-1.0f, 1.0f, 0.0f, 0.5f, -1.0f};
  const int64_t key = 7;
  std::vector<uint8_t> stored(12, 99);
  ASSERT_TRUE(PackRows(RowFormat(5, RowType::kUint8),
                       Span<const int64_t>(&key, 1), row.data(),
                       reinterpret_cast<float*>(stored.data()))
                  .ok());
  // 2 / 255 = 0x2004.04 as float16, so 0x2005 = 0.007847; 1 / 0.007847 = 127.4.
  EXPECT_EQ(stored, (std::vector<uint8_t>{0, 255, 127, 191, 0, 0, 0, 0, 0x05,
                                          0x20, 0x00, 0xBC}));
}

TEST(RowFormatTest, NumbersAreNearAndWithinTheRowsRange) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const int dim : {1, 2, 3, 4, 16, 17, 128}) {
    for (const float size : {1e-30f, 1e-6f, 1e-3f, 0.1f, 1.0f, 1000.0f}) {
      for (const float centre : {0.0f, 1.0f, -30.0f}) {
        std::vector<float> row(dim), out;
        for (float& x : row) x = centre + size * normal(random);
        const float least = *std::min_element(row.begin(), row.end());
        const float most = *std::max_element(row.begin(), row.end());
        ASSERT_TRUE(RoundTrip(RowFormat(dim, RowType::kUint8), row, &out).ok());
        // Half a step, where the offset is up to one float16 below the minimum
        // and the scale up to one above; the smallest float16 is 6e-8.
        const float low = std::fabs(least) * 0.001f;
        const float step = (most - least + low) / 255 * 1.001f + 6e-8f;
        for (int j = 0; j < dim; ++j) {
          EXPECT_NEAR(out[j], row[j],
                      step * 0.5001f + std::fabs(row[j]) * 1e-6f)
              << dim << " " << size << " " << centre;
        }
        ASSERT_TRUE(
            RoundTrip(RowFormat(dim, RowType::kFloat16), row, &out).ok());
        for (int j = 0; j < dim; ++j) {
          EXPECT_EQ(out[j], FromFloat16(ToFloat16(row[j])));
        }
      }
    }
  }
}

TEST(RowFormatTest, ConstantRows) {
  for (const float value :
       {0.0f, -0.0f, 0.1f, -0.1f, 1.0f, -65504.0f, 65504.0f, 1e-8f, -1e-8f}) {
    std::vector<float> out;
    ASSERT_TRUE(RoundTrip(RowFormat(6, RowType::kUint8),
                          std::vector<float>(6, value), &out)
                    .ok())
        << value;
    for (const float x : out) {
      EXPECT_NEAR(x, value, 6e-8f + std::fabs(value) * 1e-6f);
    }
  }
}

// The offset is then 65504, and the step 4496 / 255.
TEST(RowFormatTest, AMinimumAboveFloat16) {
  std::vector<float> out;
  ASSERT_TRUE(
      RoundTrip(RowFormat(2, RowType::kUint8), {70000.0f, 66000.0f}, &out)
          .ok());
  EXPECT_NEAR(out[0], 70000.0f, 9.0f);
  EXPECT_NEAR(out[1], 66000.0f, 9.0f);
}

TEST(RowFormatTest, NumbersThatCannotBeStoredAreRefusedByKey) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const RowType type : kPacked) {
    const RowFormat format(3, type);
    std::vector<float> out;
    for (const float bad : {inf, -inf, std::nanf(""), -70000.0f, 1e30f}) {
      const Status status = RoundTrip(format, {0.5f, bad, 0.25f}, &out);
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << bad;
      EXPECT_NE(
          status.message().find("key 7: expected a row of finite numbers"),
          std::string::npos)
          << status.message();
      EXPECT_NE(status.message().find(RowTypeName(type)), std::string::npos);
    }
    EXPECT_TRUE(RoundTrip(format, {0.5f, 1.0f, 0.25f}, &out).ok());
  }
}

}  // namespace
}  // namespace ev
