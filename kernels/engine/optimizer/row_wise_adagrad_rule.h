// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Adagrad with one accumulator per row, often called exact row-wise Adagrad:
//
//   a += sum of g * g over the row / dim
//   w -= lr / (sqrt(a) + epsilon) * g
//
// The accumulator takes a dim-th of the memory of Adagrad's. With epsilon 0, a
// zero accumulator with a zero gradient gives NaN.

#ifndef KERNELS_ENGINE_OPTIMIZER_ROW_WISE_ADAGRAD_RULE_H_
#define KERNELS_ENGINE_OPTIMIZER_ROW_WISE_ADAGRAD_RULE_H_

#include <cstdint>

#include "kernels/engine/optimizer/rule.h"

namespace ev {

struct RowWiseAdagradRule {
  static constexpr const char* kName = "RowWiseAdagrad";
  static constexpr bool kPerRow = true;
  static constexpr int kNumSlots = 1;  // a
  static constexpr int kNumHyper = 2;  // lr, epsilon
  float learning_rate;
  float epsilon;

  static RowWiseAdagradRule FromHyper(const float* hyper) {
    return RowWiseAdagradRule{hyper[0], hyper[1]};
  }
  static const char* CheckHyper(const float* hyper) {
    return hyper[1] >= 0.0f ? nullptr : "epsilon: expected at least 0";
  }

  EV_HOST_DEVICE float Accumulate(float accumulator, float squares,
                                  int64_t dim) const {
    return accumulator + squares / static_cast<float>(dim);
  }
  EV_HOST_DEVICE float Rate(float accumulator) const {
    return learning_rate / (RuleSqrt(accumulator) + epsilon);
  }
  template <typename T>
  EV_HOST_DEVICE void operator()(T grad, float rate, T* value) const {
    *value -= rate * grad;
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_ROW_WISE_ADAGRAD_RULE_H_
