// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/combine/combiner_names.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace ev {
namespace {

TEST(CombinerNamesTest, EachNameIsThatOfOneCombiner) {
  std::set<std::string> names;
  for (Combiner combiner : kCombiners) {
    const std::string name = CombinerName(combiner);
    EXPECT_TRUE(names.insert(name).second) << name << " comes twice";
    // A combiner that differs from the one ParseCombiner must set.
    Combiner parsed =
        combiner == Combiner::kSum ? Combiner::kMean : Combiner::kSum;
    EXPECT_TRUE(ParseCombiner(name, &parsed).ok()) << name;
    EXPECT_EQ(combiner, parsed) << name;
  }
}

TEST(CombinerNamesTest, AnUnknownNameIsRefusedWithTheKnownOnes) {
  Combiner combiner = Combiner::kSqrtN;
  const Status status = ParseCombiner("median", &combiner);
  EXPECT_EQ(StatusCode::kInvalidArgument, status.code());
  EXPECT_EQ("a combiner: expected sum, mean, sqrtn or max, got 'median'",
            status.message());
  EXPECT_EQ(Combiner::kSqrtN, combiner);
}

TEST(CombinerNamesTest, TheAttributeListsAll) {
  EXPECT_EQ("combiners: list({'sum', 'mean', 'sqrtn', 'max'})",
            CombinersAttr());
}

TEST(CombinerTest, OnlyMaxSelectsAndMeansDivide) {
  for (const Combiner combiner : kCombiners) {
    EXPECT_EQ(combiner == Combiner::kMax, Selects(combiner));
    EXPECT_EQ(combiner == Combiner::kMean || combiner == Combiner::kSqrtN,
              Divides(combiner));
  }
}

}  // namespace
}  // namespace ev
