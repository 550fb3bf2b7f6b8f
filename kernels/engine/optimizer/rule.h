// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What a row rule is. Every rule is one struct in its own file <stem>_rule.h:
// elementwise, a pure function of one element's gradient, value and slots, and
// EV_HOST_DEVICE so that nvcc compiles the same lines for the GPU.
//
//   struct AdagradRule {
//     static constexpr const char* kName = "Adagrad";
//     static constexpr int kNumSlots = 1;   // accumulator
//     static constexpr int kNumHyper = 1;   // lr
//     float learning_rate;
//     // REQUIRES: CheckHyper accepted hyper[0 .. kNumHyper).
//     static AdagradRule FromHyper(const float* hyper);
//     // Null, or what is wrong with the hyperparameters.
//     static const char* CheckHyper(const float* hyper);
//     // value and slots: this element's state, updated in place.
//     EV_HOST_DEVICE void operator()(float grad, float* value,
//                                    float* accumulator) const;
//   };
//
// Each rule's header names its slots and its hyperparameters, in their order.
// To add a rule: its header, a line in rule_list.h and one in BUILD.
//
// The formulas follow TensorFlow 1.15's *sparse* kernels (or, for Adam, its
// Python for sparse gradients), operation by operation: where a stock kernel is
// written v*b + g*(1 - b) so is the rule here, not v + (g - v)*(1 - b). Every
// operation is rounded once to float (no contraction, no approximate square
// root), so the CPU and the GPU give the same bits. What is left against stock
// TensorFlow is the last bit of its own square root, which its vector code
// approximates.
//
// All rules are lazy: a row without a gradient in a step does not change, its
// moments do not decay.

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
