// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Combiners: how the rows e_i of a sample, with weights w_i, become one row.
//
// Each combiner is a struct with all of its arithmetic, for the CPU and for
// GPUs. The loops are in other files and take the struct as a template
// argument, so that an element costs no call. Members of a struct:
//
//   kName      name in ops and in Python.
//   kDivides   whether a sample's joined rows are divided. If not, Divisor
//              returns 1.
//   kSelects   whether each element of the result is an element of one of the
//              rows, not a sum. The gradient then goes only to the rows that
//              have the element (selected_gradient.h). A GPU does not pool
//              then: the CPU pools, from copies of the rows that are not in CPU
//              memory. (A lookup with weights is pooled in the same way.) A
//              combiner that selects takes no weights.
//   Join       combines the next row, element by element, with the result of
//              the rows before it. The sample's first row is taken unchanged.
//              T: float, or a vector of floats.
//   Term       what a weight adds to the sample's total. An id without a weight
//              adds 1.
//   Divisor    divisor of a sample with that total.
//   WeightGradient  d loss / d w for a weight w. g is the sample's gradient,
//              g_row = g . e, g_out = g . (the sample's result), or 0 if
//              kDivides is false, and divisor is the sample's.
//
// To add a combiner, add a struct to this file, lines to Combiner, kCombiners
// and VisitCombiner, and a line to the table in Python
// (embedding_variable/lookup/combiners.py).

#ifndef KERNELS_ENGINE_COMBINE_COMBINER_H_
#define KERNELS_ENGINE_COMBINE_COMBINER_H_

#include <cmath>
#include <cstdint>

#include "kernels/engine/base/host_device.h"

namespace ev {

// Python and files identify combiners by name; these numbers are never stored.
enum class Combiner {
  kSum,    // sum w_i e_i
  kMean,   // sum w_i e_i / sum w_i
  kSqrtN,  // sum w_i e_i / sqrt(sum w_i^2)
  kMax,    // the largest e_i, element by element
};

constexpr Combiner kCombiners[] = {Combiner::kSum, Combiner::kMean,
                                   Combiner::kSqrtN, Combiner::kMax};

// Base of combiners that add rows.
struct AddsRows {
  static constexpr bool kSelects = false;
  template <typename T>
  static EV_HOST_DEVICE T Join(T joined, T row) {
    return joined + row;
  }
};

// Base of combiners that select. They take no weights, so their total is unused
// and WeightGradient is never called.
struct SelectsElements {
  static constexpr bool kDivides = false;
  static constexpr bool kSelects = true;
  static EV_HOST_DEVICE float Term(float /*w*/) { return 0.0f; }
  static EV_HOST_DEVICE float Divisor(float /*total*/) { return 1.0f; }
  static EV_HOST_DEVICE float WeightGradient(float /*g_row*/, float /*g_out*/,
                                             float /*w*/, float /*divisor*/) {
    return 0.0f;
  }
};

struct SumCombiner : AddsRows {
  static constexpr const char* kName = "sum";
  static constexpr bool kDivides = false;
  static EV_HOST_DEVICE float Term(float w) { return w; }
  static EV_HOST_DEVICE float Divisor(float /*total*/) { return 1.0f; }
  // g . e
  static EV_HOST_DEVICE float WeightGradient(float g_row, float /*g_out*/,
                                             float /*w*/, float /*divisor*/) {
    return g_row;
  }
};

struct MeanCombiner : AddsRows {
  static constexpr const char* kName = "mean";
  static constexpr bool kDivides = true;
  static EV_HOST_DEVICE float Term(float w) { return w; }
  static EV_HOST_DEVICE float Divisor(float total) { return total; }
  // g . (e - out) / sum w
  static EV_HOST_DEVICE float WeightGradient(float g_row, float g_out,
                                             float /*w*/, float divisor) {
    return (g_row - g_out) / divisor;
  }
};

struct SqrtNCombiner : AddsRows {
  static constexpr const char* kName = "sqrtn";
  static constexpr bool kDivides = true;
  static EV_HOST_DEVICE float Term(float w) { return w * w; }
  static EV_HOST_DEVICE float Divisor(float total) { return sqrtf(total); }
  // (g . e - g . out * w / q) / q, q = sqrt(sum w^2)
  static EV_HOST_DEVICE float WeightGradient(float g_row, float g_out, float w,
                                             float divisor) {
    return (g_row - g_out * (w / divisor)) / divisor;
  }
};

// If an element of one row is NaN, so is that element of the result.
struct MaxCombiner : SelectsElements {
  static constexpr const char* kName = "max";
  template <typename T>
  static EV_HOST_DEVICE T Join(T joined, T row) {
    return (row > joined) | (row != row) ? row : joined;
  }
};

// Returns visitor(C()), where C is the struct of the combiner.
template <typename Visitor>
EV_HOST_DEVICE auto VisitCombiner(Combiner combiner, const Visitor& visitor) {
  switch (combiner) {
    case Combiner::kSum:
      break;
    case Combiner::kMean:
      return visitor(MeanCombiner());
    case Combiner::kSqrtN:
      return visitor(SqrtNCombiner());
    case Combiner::kMax:
      return visitor(MaxCombiner());
  }
  return visitor(SumCombiner());
}

// Members of the structs, for a combiner that is given at run time.
namespace combiner_internal {

struct Divides {
  template <typename C>
  EV_HOST_DEVICE bool operator()(C) const {
    return C::kDivides;
  }
};

struct Selects {
  template <typename C>
  EV_HOST_DEVICE bool operator()(C) const {
    return C::kSelects;
  }
};

struct Term {
  float w;
  template <typename C>
  EV_HOST_DEVICE float operator()(C) const {
    return C::Term(w);
  }
};

struct Divisor {
  float total;
  template <typename C>
  EV_HOST_DEVICE float operator()(C) const {
    return C::Divisor(total);
  }
};

}  // namespace combiner_internal

EV_HOST_DEVICE bool Divides(Combiner combiner) {
  return VisitCombiner(combiner, combiner_internal::Divides());
}
EV_HOST_DEVICE bool Selects(Combiner combiner) {
  return VisitCombiner(combiner, combiner_internal::Selects());
}
EV_HOST_DEVICE float TermOf(Combiner combiner, float w) {
  return VisitCombiner(combiner, combiner_internal::Term{w});
}
EV_HOST_DEVICE float DivisorOf(Combiner combiner, float total) {
  return VisitCombiner(combiner, combiner_internal::Divisor{total});
}

}  // namespace ev

#endif  // KERNELS_ENGINE_COMBINE_COMBINER_H_
