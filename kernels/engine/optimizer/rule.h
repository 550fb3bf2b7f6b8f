// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Row rules: the formulas of optimizers. Each rule is one struct in its own
// file <stem>_rule.h. It is elementwise, a pure function of one element's
// gradient, value and slots, and EV_HOST_DEVICE so that nvcc compiles the same
// lines for the GPU.
//
//   struct AdagradRule {
//     static constexpr const char* kName = "Adagrad";
//     static constexpr int kNumSlots = 1;   // accumulator
//     static constexpr int kNumHyper = 1;   // lr
//     float learning_rate;
//     // REQUIRES: CheckHyper accepted hyper[0 .. kNumHyper).
//     static AdagradRule FromHyper(const float* hyper);
//     // Returns null, or what is wrong with the hyperparameters.
//     static const char* CheckHyper(const float* hyper);
//     // value and slots: this element's state, updated in place.
//     EV_HOST_DEVICE void operator()(float grad, float* value,
//                                    float* accumulator) const;
//   };
//
// Each rule's header names its slots and its hyperparameters, in their order.
// To add a rule, add its header, a line in rule_list.h and a line in BUILD.
//
// The formulas follow TensorFlow 1.15's *sparse* kernels (for Adam, its Python
// code for sparse gradients) operation by operation: v*b + g*(1 - b) of a stock
// kernel is not rewritten as v + (g - v)*(1 - b). Every operation is rounded
// once to float (no contraction, no approximate square root), so the CPU and
// the GPU compute the same bits. The only difference from stock TensorFlow is
// the last bit of a square root, which its vector code approximates.
//
// All rules are lazy: a row without a gradient in a step does not change, and
// its moments do not decay.

#ifndef KERNELS_ENGINE_OPTIMIZER_RULE_H_
#define KERNELS_ENGINE_OPTIMIZER_RULE_H_

#include <cmath>

#include "kernels/engine/base/host_device.h"

namespace ev {

// The correctly rounded square root, on the CPU and (with nvcc's default
// -prec-sqrt=true) on the GPU.
EV_HOST_DEVICE float RuleSqrt(float x) { return sqrtf(x); }

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_RULE_H_
