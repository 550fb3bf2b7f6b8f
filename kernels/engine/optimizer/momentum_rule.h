// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Momentum, as TensorFlow's SparseApplyMomentum:
//
//   m = m * momentum + g
//   w -= lr * m                              or, with Nesterov's,
//   w -= lr * g + lr * momentum * m

#ifndef KERNELS_ENGINE_OPTIMIZER_MOMENTUM_RULE_H_
#define KERNELS_ENGINE_OPTIMIZER_MOMENTUM_RULE_H_

#include "kernels/engine/optimizer/rule.h"

namespace ev {

// kNesterov is a compile-time choice so that either loop vectorises.
template <bool kNesterov>
struct MomentumRule {
  static constexpr const char* kName = "Momentum";
  static constexpr int kNumSlots = 1;  // m
  static constexpr int kNumHyper = 3;  // lr, momentum, nesterov
  float learning_rate;
  float momentum;

  static MomentumRule FromHyper(const float* hyper) {
    return MomentumRule{hyper[0], hyper[1]};
  }
  static const char* CheckHyper(const float* hyper) {
    return hyper[2] == 0.0f || hyper[2] == 1.0f ? nullptr
                                                : "nesterov: expected 0 or 1";
  }

  EV_HOST_DEVICE void operator()(float grad, float* value, float* m) const {
    *m = *m * momentum + grad;
    if (kNesterov) {
      *value -= learning_rate * grad + (learning_rate * momentum) * *m;
    } else {
      *value -= learning_rate * *m;
    }
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_MOMENTUM_RULE_H_
