// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A rule made ready for rows in CPU memory: one virtual call for a block of
// rows, a vectorised loop inside.

#ifndef KERNELS_ENGINE_OPTIMIZER_ROW_RULE_H_
#define KERNELS_ENGINE_OPTIMIZER_ROW_RULE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {

// Rows to update. A row is 'dim' floats of value at rows[i] and 'dim' floats of
// slot k at rows[i] + slot_offsets[k]; none of these overlap.
struct RowBlock {
  float* const* rows = nullptr;  // [num_rows], all different
  const float* grads = nullptr;  // [num_rows, dim]
  int64_t num_rows = 0;
  int64_t dim = 0;
  const int64_t* slot_offsets = nullptr;  // one per slot of the rule, in floats
};

// No rule has more slots.
constexpr int kMaxRuleSlots = 8;

class RowRule {
 public:
  explicit RowRule(Span<const float> hyper)
      : hyper_(hyper.begin(), hyper.end()) {}
  virtual ~RowRule() {}
  virtual const char* name() const = 0;
  virtual int num_slots() const = 0;
  // What MakeRowRule was given: where no loop of the CPU's updates the rows,
  // the rule is its name and these.
  Span<const float> hyper() const { return hyper_; }

  // Applies the rule to every element of every row, in order, prefetching the
  // rows ahead. Thread-safe; two calls at once must not share a row.
  virtual void Apply(const RowBlock& block) const = 0;

 private:
  const std::vector<float> hyper_;
};

// The rule of that name (rule.h lists names and hyperparameters).
// InvalidArgument: no such rule, a wrong number of hyperparameters, or values
// that the rule cannot work with.
Status MakeRowRule(const std::string& name, Span<const float> hyper,
                   std::unique_ptr<const RowRule>* rule);

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_ROW_RULE_H_
