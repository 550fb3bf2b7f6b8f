// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/message.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sok {
namespace {

// The status of a message from ranks 0 and 1 with these fingerprints.
ev::Status ParseBetween(int64_t mine, int64_t theirs) {
  const MessageFormat format = {1, false, mine};
  const std::vector<int64_t> message = {mine, 0, theirs, 1, 42};
  const std::vector<int32_t> splits = {2, 3};
  MessageLayout layout;
  return MessageLayout::Parse(format, message, splits, &layout);
}

TEST(MessageTest, EqualFingerprintsFit) {
  EXPECT_TRUE(ParseBetween(77, 77).ok());
  EXPECT_TRUE(ParseBetween(-77, -77).ok());
}

TEST(MessageTest, AnotherLookupIsNamed) {
  const std::string message = ParseBetween(4 * 9, 4 * 10).message();
  EXPECT_NE(message.find("rank 1 sent the keys of another lookup"),
            std::string::npos)
      << message;
}

TEST(MessageTest, AnotherExchangeTypeIsNamed) {
  const std::string message =
      ParseBetween(FingerprintWith(-9, 0), FingerprintWith(-9, 2)).message();
  EXPECT_NE(message.find("rank 1 exchanges rows as bfloat16, this rank as "
                         "float32"),
            std::string::npos)
      << message;
  EXPECT_NE(message.find("exchange_dtype"), std::string::npos) << message;
}

}  // namespace
}  // namespace sok
