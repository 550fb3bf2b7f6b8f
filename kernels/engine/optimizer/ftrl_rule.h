// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// FTRL-proximal, as TensorFlow's SparseApplyFtrl and SparseApplyFtrlV2 (V2 adds
// l2_shrinkage):
//
//   gs = g + 2 * l2_shrinkage * w
//   n' = n + g * g
//   z += gs - (n'^-lr_power - n^-lr_power) / lr * w
//   w = (clamp(z, -l1, l1) - z) / (n'^-lr_power / lr + 2 * l2)
//   n = n'

#ifndef KERNELS_ENGINE_OPTIMIZER_FTRL_RULE_H_
#define KERNELS_ENGINE_OPTIMIZER_FTRL_RULE_H_

#include "kernels/engine/optimizer/rule.h"

namespace ev {

// kSquareRoot: lr_power is -0.5, the default. No power is computed then, and
// the loop vectorises.
template <bool kSquareRoot>
struct FtrlRule {
  static constexpr const char* kName = "Ftrl";
  static constexpr int kNumSlots = 2;  // n, z
  static constexpr int kNumHyper = 5;  // lr, l1, l2, l2_shrinkage, lr_power
  float learning_rate;
  float l1;
  float l2_twice;
  float shrinkage_twice;
  float power;  // -lr_power

  // hyper: lr, l1, l2, l2_shrinkage, lr_power.
  static FtrlRule FromHyper(const float* hyper) {
    return FtrlRule{hyper[0], hyper[1], 2.0f * hyper[2], 2.0f * hyper[3],
                    -hyper[4]};
  }
  static const char* CheckHyper(const float* hyper) {
    if (!(hyper[0] > 0.0f)) return "learning_rate: expected a positive number";
    if (!(hyper[1] >= 0.0f)) return "l1: expected at least 0";
    if (!(hyper[2] >= 0.0f)) return "l2: expected at least 0";
    if (!(hyper[3] >= 0.0f)) return "l2_shrinkage: expected at least 0";
    if (!(hyper[4] <= 0.0f)) return "lr_power: expected at most 0";
    return nullptr;
  }

  EV_HOST_DEVICE float Power(float x) const {
    return kSquareRoot ? RuleSqrt(x) : powf(x, power);
  }

  EV_HOST_DEVICE void operator()(float grad, float* value, float* accumulator,
                                 float* linear) const {
    const float shrunk = grad + shrinkage_twice * *value;
    const float n = *accumulator + grad * grad;
    const float root = Power(n);
    const float sigma = (root - Power(*accumulator)) / learning_rate;
    const float z = *linear + (shrunk - sigma * *value);
    float clamped = z < l1 ? z : l1;
    clamped = clamped < -l1 ? -l1 : clamped;
    *value = (clamped - z) / (root / learning_rate + l2_twice);
    *linear = z;
    *accumulator = n;
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_FTRL_RULE_H_
