// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A row rule (rule.h) that updates rows in CPU memory: one virtual call for a
// block of rows, with a vectorised loop inside.

#ifndef KERNELS_ENGINE_OPTIMIZER_ROW_RULE_H_
#define KERNELS_ENGINE_OPTIMIZER_ROW_RULE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {

// Rows to update. A row is 'dim' numbers of value at rows[i] and 'dim' floats
// of slot k at rows[i] + slot_offsets[k], or one float for a per-row rule; none
// of these overlap.
struct RowBlock {
  float* const* rows = nullptr;  // [num_rows], all different
  const float* grads = nullptr;  // [num_rows, dim]
  int64_t num_rows = 0;
  int64_t dim = 0;
  const int64_t* slot_offsets = nullptr;  // one per slot of the rule, in floats
  // Type of the value's numbers. The rule widens narrow ones, and rounds its
  // results: stochastically, with one salt per row (base/random_rounding.h), or
  // to nearest without salts.
  FloatType value_type = FloatType::kFloat32;
  const uint64_t* salts = nullptr;
  // Null, or increased by the number of rows in which rounding to a narrow type
  // made a finite number infinite.
  int64_t* overflows = nullptr;
};

// Upper limit on the number of slots of a rule.
constexpr int kMaxRuleSlots = 8;

class RowRule {
 public:
  explicit RowRule(Span<const float> hyper)
      : hyper_(hyper.begin(), hyper.end()) {}
  virtual ~RowRule() {}
  virtual const char* name() const = 0;
  virtual int num_slots() const = 0;
  // Whether its slots have one number per row (rule.h).
  virtual bool is_per_row() const = 0;
  // The hyperparameters passed to MakeRowRule, and perhaps GradFactor
  // (rule_list.h). Code that updates rows in another memory, such as a GPU's,
  // takes the rule's name and these instead of calling Apply.
  Span<const float> hyper() const { return hyper_; }

  // Applies the rule to every element of every row, in order, and prefetches
  // later rows. Thread-safe; concurrent calls must not share a row.
  virtual void Apply(const RowBlock& block) const = 0;

 private:
  const std::vector<float> hyper_;
};

// Creates the rule of that name (rule_list.h lists all). A factor of the
// gradients may follow the hyperparameters. InvalidArgument: no such rule, a
// wrong number of hyperparameters, or values that the rule rejects.
Status MakeRowRule(const std::string& name, Span<const float> hyper,
                   std::unique_ptr<const RowRule>* rule);

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_ROW_RULE_H_
