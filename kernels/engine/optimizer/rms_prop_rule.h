// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// RMSProp, as TensorFlow's SparseApplyRMSProp (epsilon inside the square root):
//
//   ms = ms * rho + g * g * (1 - rho)
//   mom = mom * momentum + lr * g / sqrt(ms + epsilon)
//   w -= mom

#ifndef KERNELS_ENGINE_OPTIMIZER_RMS_PROP_RULE_H_
#define KERNELS_ENGINE_OPTIMIZER_RMS_PROP_RULE_H_

#include "kernels/engine/optimizer/rule.h"

namespace ev {

struct RmsPropRule {
  static constexpr const char* kName = "RMSProp";
  static constexpr int kNumSlots = 2;  // ms, mom
  static constexpr int kNumHyper = 4;  // lr, rho, momentum, epsilon
  float learning_rate;
  float rho;
  float momentum;
  float epsilon;

  // hyper: lr, rho, momentum, epsilon.
  static RmsPropRule FromHyper(const float* hyper) {
    return RmsPropRule{hyper[0], hyper[1], hyper[2], hyper[3]};
  }
  static const char* CheckHyper(const float*) { return nullptr; }

  EV_HOST_DEVICE void operator()(float grad, float* value, float* ms,
                                 float* mom) const {
    *ms = *ms * rho + (grad * grad) * (1.0f - rho);
    *mom = *mom * momentum + learning_rate * grad / RuleSqrt(*ms + epsilon);
    *value -= *mom;
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_RMS_PROP_RULE_H_
