// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Centered RMSProp, as TensorFlow's SparseApplyCenteredRMSProp: the square of
// the mean gradient is subtracted from the mean square.
//
//   ms = ms * rho + g * g * (1 - rho)
//   mg = mg * rho + g * (1 - rho)
//   mom = mom * momentum + lr * g / sqrt(ms + epsilon - mg * mg)
//   w -= mom

#ifndef KERNELS_ENGINE_OPTIMIZER_CENTERED_RMS_PROP_RULE_H_
#define KERNELS_ENGINE_OPTIMIZER_CENTERED_RMS_PROP_RULE_H_

#include "kernels/engine/optimizer/rule.h"

namespace ev {

struct CenteredRmsPropRule {
  static constexpr const char* kName = "CenteredRMSProp";
  static constexpr int kNumSlots = 3;  // mg, ms, mom
  static constexpr int kNumHyper = 4;  // lr, rho, momentum, epsilon
  float learning_rate;
  float rho;
  float momentum;
  float epsilon;

  // hyper: lr, rho, momentum, epsilon.
  static CenteredRmsPropRule FromHyper(const float* hyper) {
    return CenteredRmsPropRule{hyper[0], hyper[1], hyper[2], hyper[3]};
  }
  static const char* CheckHyper(const float*) { return nullptr; }

  EV_HOST_DEVICE void operator()(float grad, float* value, float* mg, float* ms,
                                 float* mom) const {
    *ms = *ms * rho + (grad * grad) * (1.0f - rho);
    *mg = *mg * rho + grad * (1.0f - rho);
    const float variance = *ms + epsilon - *mg * *mg;
    *mom = *mom * momentum + learning_rate * grad / RuleSqrt(variance);
    *value -= *mom;
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_CENTERED_RMS_PROP_RULE_H_
