// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Row rules: the formulas of optimizers. Each rule is one struct in its own
// file <stem>_rule.h. Nearly all are elementwise, a pure function of one
// element's gradient, value and slots, and EV_HOST_DEVICE so that nvcc compiles
// the same lines for the GPU.
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
// A PER-ROW rule has one number per row in its slot, and kPerRow = true. It
// first adds the sum of the squares of the row's gradient (row_squares.h) to
// that number, which gives the rate of the row's elements:
//
//   EV_HOST_DEVICE float Accumulate(float accumulator, float squares,
//                                   int64_t dim) const;
//   EV_HOST_DEVICE float Rate(float accumulator) const;
//   template <typename T>  // float, or a vector of floats
//   EV_HOST_DEVICE void operator()(T grad, float rate, T* value) const;
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
#include <type_traits>

#include "kernels/engine/base/host_device.h"

namespace ev {

// The correctly rounded square root, on the CPU and (with nvcc's default
// -prec-sqrt=true) on the GPU.
EV_HOST_DEVICE float RuleSqrt(float x) { return sqrtf(x); }

// Whether a rule is a per-row rule.
template <typename Rule, typename = void>
struct IsPerRow : std::false_type {};
template <typename Rule>
struct IsPerRow<Rule, typename std::enable_if<Rule::kPerRow>::type>
    : std::true_type {};

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_RULE_H_
