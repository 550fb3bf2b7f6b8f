// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/message.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "addons/sparse_operation_kit/exchange/traits.h"

namespace sok {
namespace {

// Parses messages from ranks 0 and 1 with these fingerprints.
ev::Status ParseBetween(int64_t mine, int64_t theirs) {
  const MessageFormat format = {1, false, mine};
  const std::vector<int64_t> message = {mine, 0, 0, theirs, 1, 0, 42};
  const std::vector<int32_t> splits = {3, 4};
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

const TableTraits kUsers = {"sum", "int64", "int32", "Adagrad"};
const TableTraits kItems = {"mean", "int64", "int32", "Adagrad"};

// Returns the error that rank 0 reports for the traits of rank 1.
std::string DifferenceBetween(const std::string& mine,
                              const std::string& theirs) {
  MessageFormat format;
  format.num_tables = 2;
  std::vector<int64_t> message;
  std::vector<int32_t> splits;
  for (const std::string& traits : {mine, theirs}) {
    const size_t begin = message.size();
    message.insert(message.end(),
                   {0, 1, 0, static_cast<int64_t>(traits.size())});
    message.resize(begin + format.header(traits.size()));
    std::memcpy(message.data() + begin + 4, traits.data(), traits.size());
    message.push_back(42);
    splits.push_back(static_cast<int32_t>(message.size() - begin));
  }
  MessageLayout layout;
  EXPECT_TRUE(MessageLayout::Parse(format, message, splits, &layout).ok());
  EXPECT_EQ(message[layout.key_start(1, 0)], 42);
  EXPECT_EQ(layout.traits(1, message.data()), theirs);
  return CheckTraits(layout, message.data(), mine,
                     [](int t) { return t == 0 ? "users" : "items"; })
      .message();
}

std::string Both(const TableTraits& a, const TableTraits& b) {
  const TableTraits tables[] = {a, b};
  return WriteTraits(ev::Span<const TableTraits>(tables, 2));
}

TEST(TraitsTest, EqualOnesFit) {
  EXPECT_EQ(DifferenceBetween(Both(kUsers, kItems), Both(kUsers, kItems)), "");
  EXPECT_EQ(DifferenceBetween(Both(kUsers, kUsers), Both(kUsers, kUsers)), "");
}

TEST(TraitsTest, EqualTablesTakeThePlaceOfOne) {
  const TableTraits table[] = {kUsers};
  EXPECT_EQ(Both(kUsers, kUsers),
            WriteTraits(ev::Span<const TableTraits>(table, 1)));
}

TEST(TraitsTest, BothValuesAreNamed) {
  TableTraits other = kItems;
  other.combiner = "sqrtn";
  EXPECT_EQ(DifferenceBetween(Both(kUsers, kItems), Both(kUsers, other)),
            "lookup over ranks: rank 1 looks up variable 'items' with combiner "
            "'sqrtn', and this rank looks up variable 'items' with combiner "
            "'mean'. All ranks must build the same graph");
  other = kUsers;
  other.ids = "int32";
  EXPECT_NE(DifferenceBetween(Both(kUsers, kUsers), Both(other, kUsers))
                .find("rank 1 looks up variable 'users' by ids of type int32, "
                      "and this rank looks up variable 'users' by ids of type "
                      "int64"),
            std::string::npos);
  other = kUsers;
  other.keys = "int64";
  EXPECT_NE(DifferenceBetween(Both(kUsers, kUsers), Both(other, other))
                .find("rank 1 has variable 'users' with keys of type int64"),
            std::string::npos);
}

TEST(TraitsTest, OptimizerIsComparedWhereBothHaveOne) {
  TableTraits other = kUsers, none = kUsers;
  other.optimizer = "My Adam; mine";
  none.optimizer = "";
  EXPECT_NE(DifferenceBetween(Both(kUsers, kUsers), Both(kUsers, other))
                .find("rank 1 trains variable 'items' by My_Adam__mine, and "
                      "this rank trains variable 'items' by Adagrad"),
            std::string::npos);
  EXPECT_EQ(DifferenceBetween(Both(kUsers, kUsers), Both(none, none)), "");
  EXPECT_EQ(DifferenceBetween(Both(none, kUsers), Both(kUsers, none)), "");
}

TEST(TraitsTest, NoneAreComparedWithNone) {
  EXPECT_EQ(DifferenceBetween("", Both(kUsers, kItems)), "");
  EXPECT_EQ(DifferenceBetween(Both(kUsers, kItems), ""), "");
}

TEST(TraitsTest, OtherTextIsRefused) {
  for (const char* text :
       {"sum", "a b c d;a b c d;a b c d", ";", "a b c d;e"}) {
    EXPECT_NE(DifferenceBetween(Both(kUsers, kItems), text)
                  .find("rank 1 sent a message that is not of this lookup"),
              std::string::npos)
        << text;
  }
}

}  // namespace
}  // namespace sok
