// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// DeepRec's AdamAsync: Adam with powers of beta per variable instead of per
// model, so that asynchronous workers do not share two hot scalars. The caller
// keeps the powers and passes them as hyperparameters.
//
// With sparse_rmsprop, rows are updated as by RMSProp, without momentum and
// without bias correction; m does not change:
//
//   v = v * beta2 + g * g * (1 - beta2)
//   w -= lr * g / (sqrt(v) + epsilon)
//
// Without sparse_rmsprop the rule is exactly Adam (adam_rule.h).

#ifndef KERNELS_ENGINE_OPTIMIZER_ADAM_ASYNC_RULE_H_
#define KERNELS_ENGINE_OPTIMIZER_ADAM_ASYNC_RULE_H_

#include "kernels/engine/optimizer/adam_rule.h"
#include "kernels/engine/optimizer/rule.h"

namespace ev {

// kSparseRmsProp is a compile-time choice so that either loop vectorises.
template <bool kSparseRmsProp>
struct AdamAsyncRule {
  static constexpr const char* kName = "AdamAsync";
  static constexpr int kNumSlots = 2;  // m, v
  static constexpr int kNumHyper = 7;  // as Adam, sparse_rmsprop (0/1)
  AdamRule adam;
  float learning_rate;

  // hyper: as Adam, then sparse_rmsprop (0 or 1).
  static AdamAsyncRule FromHyper(const float* hyper) {
    return AdamAsyncRule{AdamRule::FromHyper(hyper), hyper[0]};
  }
  static const char* CheckHyper(const float* hyper) {
    return hyper[6] == 0.0f || hyper[6] == 1.0f
               ? nullptr
               : "sparse_rmsprop: expected 0 or 1";
  }

  EV_HOST_DEVICE void operator()(float grad, float* value, float* m,
                                 float* v) const {
    if (kSparseRmsProp) {
      *v = *v * adam.beta2 + (grad * grad) * (1.0f - adam.beta2);
      *value -= learning_rate * grad / (RuleSqrt(*v) + adam.epsilon);
    } else {
      adam(grad, value, m, v);
    }
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_ADAM_ASYNC_RULE_H_
