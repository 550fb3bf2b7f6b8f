// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Adadelta, as TensorFlow's SparseApplyAdadelta:
//
//   a = a * rho + g * g * (1 - rho)
//   u = sqrt(au + epsilon) / sqrt(a + epsilon) * g
//   w -= u * lr
//   au = au * rho + u * u * (1 - rho)

#ifndef KERNELS_ENGINE_OPTIMIZER_ADADELTA_RULE_H_
#define KERNELS_ENGINE_OPTIMIZER_ADADELTA_RULE_H_

#include "kernels/engine/optimizer/rule.h"

namespace ev {

struct AdadeltaRule {
  static constexpr const char* kName = "Adadelta";
  static constexpr int kNumSlots = 2;  // a, au
  static constexpr int kNumHyper = 3;  // lr, rho, epsilon
  float learning_rate;
  float rho;
  float epsilon;

  // hyper: lr, rho, epsilon.
  static AdadeltaRule FromHyper(const float* hyper) {
    return AdadeltaRule{hyper[0], hyper[1], hyper[2]};
  }
  static const char* CheckHyper(const float*) { return nullptr; }

  EV_HOST_DEVICE void operator()(float grad, float* value, float* accum,
                                 float* accum_update) const {
    *accum = *accum * rho + (grad * grad) * (1.0f - rho);
    const float update =
        RuleSqrt(*accum_update + epsilon) / RuleSqrt(*accum + epsilon) * grad;
    *value -= update * learning_rate;
    *accum_update = *accum_update * rho + (update * update) * (1.0f - rho);
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_ADADELTA_RULE_H_
