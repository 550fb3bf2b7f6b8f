// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Gradient descent, as TensorFlow's ResourceScatterSub of lr * g:
//
//   w -= lr * g

#ifndef KERNELS_ENGINE_OPTIMIZER_SGD_RULE_H_
#define KERNELS_ENGINE_OPTIMIZER_SGD_RULE_H_

#include "kernels/engine/optimizer/rule.h"

namespace ev {

struct SgdRule {
  static constexpr const char* kName = "SGD";
  static constexpr int kNumSlots = 0;
  static constexpr int kNumHyper = 1;  // lr
  float learning_rate;

  static SgdRule FromHyper(const float* hyper) { return SgdRule{hyper[0]}; }
  static const char* CheckHyper(const float*) { return nullptr; }

  EV_HOST_DEVICE void operator()(float grad, float* value) const {
    *value -= learning_rate * grad;
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_SGD_RULE_H_
