// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// AdamW: Adam with decoupled weight decay (Loshchilov and Hutter). The decay is
// scaled by the step's learning rate with bias correction, as in DeepRec's
// tables. It reads the value before the step and does not enter the moments. It
// is lazy: a row decays only in steps in which it has a gradient.
//
//   m, v, lr_t as Adam
//   w -= lr_t * m / (sqrt(v) + epsilon) + lr_t * weight_decay * w

#ifndef KERNELS_ENGINE_OPTIMIZER_ADAM_W_RULE_H_
#define KERNELS_ENGINE_OPTIMIZER_ADAM_W_RULE_H_

#include "kernels/engine/optimizer/adam_rule.h"
#include "kernels/engine/optimizer/rule.h"

namespace ev {

struct AdamWRule {
  static constexpr const char* kName = "AdamW";
  static constexpr int kNumSlots = 2;  // m, v
  static constexpr int kNumHyper = 7;  // as Adam, weight_decay
  AdamRule adam;
  float decay;  // lr_t * weight_decay

  // hyper: as Adam, then weight_decay.
  static AdamWRule FromHyper(const float* hyper) {
    const AdamRule adam = AdamRule::FromHyper(hyper);
    return AdamWRule{adam, adam.step_size * hyper[6]};
  }
  static const char* CheckHyper(const float*) { return nullptr; }

  EV_HOST_DEVICE void operator()(float grad, float* value, float* m,
                                 float* v) const {
    adam.Moments(grad, m, v);
    *value -=
        adam.step_size * *m / (RuleSqrt(*v) + adam.epsilon) + decay * *value;
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_ADAM_W_RULE_H_
