// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Adam, as tf.train.AdamOptimizer applies a sparse gradient, but lazy: only
// rows with a gradient change, while stock TensorFlow also decays the moments
// of all other rows.
//
//   lr_t = lr * sqrt(1 - beta2_power) / (1 - beta1_power)
//   m = m * beta1 + g * (1 - beta1)
//   v = v * beta2 + g * g * (1 - beta2)
//   w -= lr_t * m / (sqrt(v) + epsilon)

#ifndef KERNELS_ENGINE_OPTIMIZER_ADAM_RULE_H_
#define KERNELS_ENGINE_OPTIMIZER_ADAM_RULE_H_

#include "kernels/engine/optimizer/rule.h"

namespace ev {

struct AdamRule {
  static constexpr const char* kName = "Adam";
  static constexpr int kNumSlots = 2;  // m, v
  static constexpr int kNumHyper = 6;  // lr, beta1, beta2, epsilon,
                                       // beta1_power, beta2_power
  float step_size;                     // lr_t
  float beta1;
  float beta2;
  float epsilon;

  // hyper: lr, beta1, beta2, epsilon, beta1_power, beta2_power.
  static AdamRule FromHyper(const float* hyper) {
    return AdamRule{hyper[0] * RuleSqrt(1.0f - hyper[5]) / (1.0f - hyper[4]),
                    hyper[1], hyper[2], hyper[3]};
  }
  static const char* CheckHyper(const float*) { return nullptr; }

  // Updates only the moments. Shared by the rules that are built on Adam.
  EV_HOST_DEVICE void Moments(float grad, float* m, float* v) const {
    *m = *m * beta1 + grad * (1.0f - beta1);
    *v = *v * beta2 + (grad * grad) * (1.0f - beta2);
  }

  EV_HOST_DEVICE void operator()(float grad, float* value, float* m,
                                 float* v) const {
    Moments(grad, m, v);
    *value -= step_size * *m / (RuleSqrt(*v) + epsilon);
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_ADAM_RULE_H_
