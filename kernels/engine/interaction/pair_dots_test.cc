// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/interaction/pair_dots.h"

#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/testing/thread_pool.h"
#include "kernels/engine/testing/vectors_under_test.h"

namespace ev {
namespace {

using testing::NarrowedTo;
using testing::NarrowNumbers;
using testing::VectorsUnderTest;

struct Shape {
  int64_t samples, vectors, dim;
};

class PairDotsTest : public ::testing::TestWithParam<Shape> {
 protected:
  PairDotsTest()
      : made_(GetParam().samples, GetParam().vectors, GetParam().dim) {}

  VectorsUnderTest made_;
};

TEST_P(PairDotsTest, AgreesWithDoubles) {
  Serial serial;
  ASSERT_TRUE(made_.RunOnCpu(&serial).ok());
  made_.ExpectNear(made_.dots, made_.grads);
}

TEST_P(PairDotsTest, SameBitsWhateverTheThreads) {
  Serial serial;
  ASSERT_TRUE(made_.RunOnCpu(&serial).ok());
  const auto dots = made_.dots;
  const auto grads = made_.grads;
  testing::ThreadPool pool(3);
  ASSERT_TRUE(made_.RunOnCpu(&pool).ok());
  EXPECT_EQ(dots, made_.dots);
  EXPECT_EQ(grads, made_.grads);
}

TEST_P(PairDotsTest, NarrowResultsAreThoseOfFloatsRoundedOnce) {
  for (const FloatType type : {FloatType::kFloat16, FloatType::kBFloat16}) {
    made_.RoundTo(type);
    Serial serial;
    ASSERT_TRUE(made_.RunOnCpu(&serial).ok());
    const auto pointer_to = [&](NarrowNumbers* numbers) {
      return MutableFloats(reinterpret_cast<char*>(numbers->data()), type);
    };
    std::vector<NarrowNumbers> x, grads;
    for (const auto& vector : made_.x) x.push_back(NarrowedTo(type, vector));
    grads.assign(x.size(), NarrowNumbers(made_.samples * made_.dim, 0xFFFF));
    std::vector<ConstFloats> vectors;
    std::vector<MutableFloats> to;
    for (size_t v = 0; v < x.size(); ++v) {
      vectors.push_back(
          ConstFloats(reinterpret_cast<const char*>(x[v].data()), type));
      to.push_back(pointer_to(&grads[v]));
    }
    NarrowNumbers slopes = NarrowedTo(type, made_.slopes);
    NarrowNumbers dots(slopes.size(), 0xFFFF);
    const VectorBatch batch = made_.BatchOf(vectors);
    testing::ThreadPool pool(3);
    ASSERT_TRUE(PairDots(batch, pointer_to(&dots), &pool).ok());
    EXPECT_EQ(NarrowedTo(type, made_.dots), dots);
    const MutableFloats given = pointer_to(&slopes);
    ASSERT_TRUE(
        PairDotsGradient(batch, ConstFloats(given.data(), type), to, &pool)
            .ok());
    for (size_t v = 0; v < x.size(); ++v) {
      EXPECT_EQ(NarrowedTo(type, made_.grads[v]), grads[v]);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PairDotsTest,
    ::testing::Values(Shape{0, 3, 4}, Shape{1, 2, 1}, Shape{5, 2, 7},
                      Shape{7, 3, 8}, Shape{33, 5, 16}, Shape{65, 8, 13},
                      Shape{97, 27, 16}, Shape{50, 27, 128}, Shape{9, 40, 130},
                      Shape{2, 4, 1000}, Shape{3, 200, 24}));

TEST(PairDots, OrderOfPairs) {
  // Vector v of the sample is 10^v, so each dot identifies its pair.
  const std::vector<float> vectors = {1.0f, 10.0f, 100.0f, 1000.0f};
  std::vector<ConstFloats> pointers;
  for (const float& x : vectors) pointers.push_back(&x);
  VectorBatch batch;
  batch.vectors = pointers;
  batch.num_samples = batch.dim = 1;
  std::vector<float> dots(batch.num_pairs());
  Serial serial;
  ASSERT_TRUE(PairDots(batch, dots.data(), &serial).ok());
  EXPECT_EQ((std::vector<float>{1e1f, 1e2f, 1e3f, 1e3f, 1e4f, 1e5f}), dots);
}

}  // namespace
}  // namespace ev
