// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Random vectors and slopes, the engine's results for them in CPU memory, and a
// check against sums of doubles. Also the same vectors as narrow numbers.

#ifndef KERNELS_ENGINE_TESTING_VECTORS_UNDER_TEST_H_
#define KERNELS_ENGINE_TESTING_VECTORS_UNDER_TEST_H_

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/float_math.h"
#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/interaction/pair_dots.h"

namespace ev {
namespace testing {

// The bits of numbers of a narrow type.
using NarrowNumbers = std::vector<uint16_t>;

inline NarrowNumbers NarrowedTo(FloatType type,
                                const std::vector<float>& from) {
  NarrowNumbers to;
  for (const float x : from) {
    to.push_back(type == FloatType::kFloat16 ? ToFloat16(x) : ToBFloat16(x));
  }
  return to;
}
inline std::vector<float> WidenedFrom(FloatType type,
                                      const NarrowNumbers& from) {
  std::vector<float> to;
  for (const uint16_t x : from) {
    to.push_back(type == FloatType::kFloat16 ? FromFloat16(x)
                                             : FromBFloat16(x));
  }
  return to;
}

struct VectorsUnderTest {
  VectorsUnderTest(int64_t samples, int64_t vectors, int64_t dim)
      : samples(samples),
        dim(dim),
        x(vectors, std::vector<float>(samples * dim)),
        slopes(samples * NumPairs(vectors)) {
    std::mt19937 random(static_cast<unsigned>(vectors * 1000 + dim));
    std::uniform_real_distribution<float> draw(-1.0f, 1.0f);
    for (auto& vector : x) {
      for (float& value : vector) value = draw(random);
    }
    for (float& value : slopes) value = draw(random);
  }

  int64_t num_vectors() const { return static_cast<int64_t>(x.size()); }

  Status RunOnCpu(Parallel* parallel) {
    std::vector<ConstFloats> from;
    for (const auto& vector : x) from.push_back(vector.data());
    const VectorBatch batch = BatchOf(from);
    // Elements that are not written stay NaN.
    dots.assign(samples * batch.num_pairs(), NAN);
    grads.assign(x.size(), std::vector<float>(samples * dim, NAN));
    EV_RETURN_IF_ERROR(PairDots(batch, dots.data(), parallel));
    std::vector<MutableFloats> to;
    for (auto& grad : grads) to.push_back(grad.data());
    return PairDotsGradient(batch, slopes.data(), to, parallel);
  }

  VectorBatch BatchOf(const std::vector<ConstFloats>& vectors) const {
    VectorBatch batch;
    batch.vectors = vectors;
    batch.num_samples = samples;
    batch.dim = dim;
    return batch;
  }

  // Rounds vectors and slopes to a narrow type.
  void RoundTo(FloatType type) {
    for (auto& vector : x) vector = WidenedFrom(type, NarrowedTo(type, vector));
    slopes = WidenedFrom(type, NarrowedTo(type, slopes));
  }
  // Rounds them to eighths, so that all sums are exact in float32.
  void RoundToEighths() {
    for (auto& vector : x) {
      for (float& value : vector) value = std::round(value * 8.0f) / 8.0f;
    }
    for (float& slope : slopes) slope = std::round(slope * 8.0f) / 8.0f;
  }

  // Tolerance: values are below 1 and are added in float32.
  void ExpectNear(const std::vector<float>& got_dots,
                  const std::vector<std::vector<float>>& got_grads) const {
    const int64_t n = num_vectors(), pairs = NumPairs(n);
    ASSERT_EQ(slopes.size(), got_dots.size());
    ASSERT_EQ(x.size(), got_grads.size());
    int64_t wrong = 0;
    for (int64_t s = 0; s < samples; ++s) {
      for (int64_t i = 0; i < n; ++i) {
        std::vector<double> grad(dim, 0.0);
        for (int64_t j = 0; j < n; ++j) {
          if (j == i) continue;
          const int64_t pair = i > j ? NumPairs(i) + j : NumPairs(j) + i;
          const double slope = slopes[s * pairs + pair];
          double dot = 0.0;
          for (int64_t d = 0; d < dim; ++d) {
            dot += static_cast<double>(x[i][s * dim + d]) * x[j][s * dim + d];
            grad[d] += slope * x[j][s * dim + d];
          }
          if (j < i && !Near(dot, got_dots[s * pairs + pair], dim)) {
            if (++wrong < 5) {
              ADD_FAILURE() << "dot of sample " << s << ", pair " << i << ", "
                            << j << ": expected " << dot << ", got "
                            << got_dots[s * pairs + pair];
            }
          }
        }
        for (int64_t d = 0; d < dim; ++d) {
          if (Near(grad[d], got_grads[i][s * dim + d], n)) continue;
          if (++wrong < 5) {
            ADD_FAILURE() << "gradient of sample " << s << ", vector " << i
                          << ", float " << d << ": expected " << grad[d]
                          << ", got " << got_grads[i][s * dim + d];
          }
        }
      }
    }
    EXPECT_EQ(0, wrong);
  }

  // False for NaN.
  static bool Near(double expected, float got, int64_t terms) {
    return std::abs(expected - got) <= 1e-6 * (1.0 + std::sqrt(terms) * 4.0);
  }

  int64_t samples, dim;
  std::vector<std::vector<float>> x;
  std::vector<float> slopes;
  std::vector<float> dots;                // set by RunOnCpu
  std::vector<std::vector<float>> grads;  // set by RunOnCpu
};

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_VECTORS_UNDER_TEST_H_
