// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// (API sketch.) Every row rule is one struct in its own file <stem>_rule.h:
// elementwise, a pure function, EV_HOST_DEVICE so that nvcc compiles the same
// lines for the GPU.
//
//   struct AdagradRule {
//     static constexpr int kNumSlots = 1;          // accumulator
//     float learning_rate;
//     // value, slots: this element's current state, updated in place.
//     EV_HOST_DEVICE void operator()(float grad, float* value, float* slot0) const;
//   };
//
// The rules by name, their slots and their hyperparameters (the order of the
// 'hyper' span) are listed here and in docs/optimizers.md:
//
// name           slots                       hyper
// SGD            -                           lr
// Momentum       momentum                    lr, momentum, nesterov (0/1)
// Adagrad        accumulator                 lr
// AdagradDecay   accumulator, decay_power    lr, decay_step, decay_rate, initial_accumulator, global_step
// Adam           m, v                        lr, beta1, beta2, epsilon, beta1_power, beta2_power
// AdamAsync      m, v                        lr, beta1, beta2, epsilon, beta1_power, beta2_power, sparse_rmsprop (0/1)
// AdamW          m, v                        lr, beta1, beta2, epsilon, beta1_power, beta2_power, weight_decay
// Ftrl           accumulator, linear         lr, l1, l2, l2_shrinkage, lr_power
// RMSProp        ms, momentum                lr, decay(rho), momentum, epsilon
// CenteredRMSProp mg, ms, momentum           lr, decay(rho), momentum, epsilon
// Adadelta       accum, accum_update         lr, rho, epsilon

#ifndef KERNELS_ENGINE_OPTIMIZER_RULE_H_
#define KERNELS_ENGINE_OPTIMIZER_RULE_H_

#ifdef __CUDACC__
#define EV_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define EV_HOST_DEVICE inline
#endif

#endif  // KERNELS_ENGINE_OPTIMIZER_RULE_H_
