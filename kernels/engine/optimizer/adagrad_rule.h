// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Adagrad, as TensorFlow's SparseApplyAdagrad; there is no epsilon:
//
//   a += g * g
//   w -= lr * g / sqrt(a)
//
// A zero accumulator with a zero gradient gives NaN, as in TensorFlow.

#ifndef KERNELS_ENGINE_OPTIMIZER_ADAGRAD_RULE_H_
#define KERNELS_ENGINE_OPTIMIZER_ADAGRAD_RULE_H_

#include "kernels/engine/optimizer/rule.h"

namespace ev {

struct AdagradRule {
  static constexpr const char* kName = "Adagrad";
  static constexpr int kNumSlots = 1;  // a
  static constexpr int kNumHyper = 1;  // lr
  float learning_rate;

  static AdagradRule FromHyper(const float* hyper) {
    return AdagradRule{hyper[0]};
  }
  static const char* CheckHyper(const float*) { return nullptr; }

  EV_HOST_DEVICE void operator()(float grad, float* value,
                                 float* accumulator) const {
    *accumulator += grad * grad;
    *value -= learning_rate * grad / RuleSqrt(*accumulator);
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_ADAGRAD_RULE_H_
