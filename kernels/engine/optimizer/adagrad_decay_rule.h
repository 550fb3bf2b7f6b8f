// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// DeepRec's AdagradDecay: Adagrad with an accumulator that decays, so that
// updates do not vanish in training that never ends.
//
//   once for each multiple of decay_step that global_step has reached and this
//   element has not yet applied (decay_power counts those applied):
//     a = max(a * decay_rate, initial_accumulator)
//   a += g * g
//   w -= lr * g / sqrt(a)
//
// A row without a gradient for several periods applies all of their decays in
// its next update, so its accumulator is the same as if each decay had been
// applied on time.

#ifndef KERNELS_ENGINE_OPTIMIZER_ADAGRAD_DECAY_RULE_H_
#define KERNELS_ENGINE_OPTIMIZER_ADAGRAD_DECAY_RULE_H_

#include "kernels/engine/optimizer/rule.h"

namespace ev {

struct AdagradDecayRule {
  static constexpr const char* kName = "AdagradDecay";
  static constexpr int kNumSlots = 2;  // a, decay_power
  static constexpr int kNumHyper = 5;  // lr, decay_step, decay_rate,
                                       // initial_accumulator, global_step
  float learning_rate;
  float decay_rate;
  float floor;    // the initial accumulator
  float periods;  // multiples of decay_step that global_step has reached

  // hyper: lr, decay_step, decay_rate, initial_accumulator, global_step.
  static AdagradDecayRule FromHyper(const float* hyper) {
    const double periods = std::floor(static_cast<double>(hyper[4]) /
                                      static_cast<double>(hyper[1]));
    return AdagradDecayRule{hyper[0], hyper[2], hyper[3],
                            static_cast<float>(periods)};
  }
  static const char* CheckHyper(const float* hyper) {
    if (!(hyper[1] >= 1.0f)) return "decay_step: expected at least 1";
    if (!(hyper[2] > 0.0f && hyper[2] <= 1.0f)) {
      return "decay_rate: expected a number in (0, 1]";
    }
    if (!(hyper[4] >= 0.0f)) return "global_step: expected at least 0";
    return nullptr;
  }

  EV_HOST_DEVICE bool DecayIsDue(float decay_power) const {
    return decay_power < periods;
  }

  // Updates an element whose decay is not due. Branch-free, so a row of such
  // elements vectorises.
  EV_HOST_DEVICE void Update(float grad, float* value,
                             float* accumulator) const {
    *accumulator += grad * grad;
    *value -= learning_rate * grad / RuleSqrt(*accumulator);
  }

  EV_HOST_DEVICE void operator()(float grad, float* value, float* accumulator,
                                 float* decay_power) const {
    if (DecayIsDue(*decay_power)) {
      float a = *accumulator;
      for (float k = *decay_power; k < periods; k += 1.0f) {
        const float decayed = a * decay_rate;
        const float next = decayed < floor ? floor : decayed;
        if (!(next < a)) {  // at the floor, or NaN: nothing more will change
          a = next;
          break;
        }
        a = next;
      }
      *accumulator = a;
      *decay_power = periods;
    }
    Update(grad, value, accumulator);
  }
};

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_ADAGRAD_DECAY_RULE_H_
