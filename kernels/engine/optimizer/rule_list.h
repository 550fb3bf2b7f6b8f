// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// List of all rules by name. The CPU's dispatch and the GPU's are both
// generated from it.

#ifndef KERNELS_ENGINE_OPTIMIZER_RULE_LIST_H_
#define KERNELS_ENGINE_OPTIMIZER_RULE_LIST_H_

#include <string>

#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/optimizer/adadelta_rule.h"
#include "kernels/engine/optimizer/adagrad_decay_rule.h"
#include "kernels/engine/optimizer/adagrad_rule.h"
#include "kernels/engine/optimizer/adam_async_rule.h"
#include "kernels/engine/optimizer/adam_rule.h"
#include "kernels/engine/optimizer/adam_w_rule.h"
#include "kernels/engine/optimizer/centered_rms_prop_rule.h"
#include "kernels/engine/optimizer/ftrl_rule.h"
#include "kernels/engine/optimizer/momentum_rule.h"
#include "kernels/engine/optimizer/rms_prop_rule.h"
#include "kernels/engine/optimizer/row_wise_adagrad_rule.h"
#include "kernels/engine/optimizer/sgd_rule.h"

// Every rule, in the order in which error messages list them. RULE(R) stands
// for struct R. RULE_OF_TWO(R, c) stands for template <bool> struct R; its
// argument is the value of expression c, which may use 'hyper'.
#define EV_ROW_RULES(RULE, RULE_OF_TWO)        \
  RULE(SgdRule)                                \
  RULE_OF_TWO(MomentumRule, hyper[2] != 0.0f)  \
  RULE(AdagradRule)                            \
  RULE(AdagradDecayRule)                       \
  RULE(AdamRule)                               \
  RULE_OF_TWO(AdamAsyncRule, hyper[6] != 0.0f) \
  RULE(AdamWRule)                              \
  RULE_OF_TWO(FtrlRule, hyper[4] == -0.5f)     \
  RULE(RmsPropRule)                            \
  RULE(CenteredRmsPropRule)                    \
  RULE(AdadeltaRule)                           \
  RULE(RowWiseAdagradRule)

namespace ev {

namespace rule_list_internal {

template <typename Rule>
Status Check(Span<const float> hyper) {
  constexpr size_t kNumHyper = Rule::kNumHyper;
  if (hyper.size() != kNumHyper && hyper.size() != kNumHyper + 1) {
    return InvalidArgument(std::string("rule ") + Rule::kName + " takes " +
                           std::to_string(kNumHyper) +
                           " hyperparameters and perhaps a factor, got " +
                           std::to_string(hyper.size()));
  }
  const char* wrong = Rule::CheckHyper(hyper.data());
  if (wrong == nullptr) return Status::OK();
  std::string values;
  for (float h : hyper) {
    if (!values.empty()) values += ", ";
    values += std::to_string(h);
  }
  return InvalidArgument(std::string("rule ") + Rule::kName + ": " + wrong +
                         ", got hyperparameters (" + values + ")");
}

template <typename Rule, typename Visitor>
Status Visit(Span<const float> hyper, Visitor&& visitor) {
  visitor(Rule::FromHyper(hyper.data()));
  return Status::OK();
}

}  // namespace rule_list_internal

// Returns whether VisitRule has a rule of that name.
inline bool IsRule(const std::string& name) {
#define EV_RETURN_IF_NAMED(Rule) \
  if (name == Rule::kName) return true;
#define EV_RETURN_IF_ONE_OF_TWO(Rule, condition) EV_RETURN_IF_NAMED(Rule<true>)
  EV_ROW_RULES(EV_RETURN_IF_NAMED, EV_RETURN_IF_ONE_OF_TWO)
#undef EV_RETURN_IF_NAMED
#undef EV_RETURN_IF_ONE_OF_TWO
  return false;
}

// Returns the factor by which summed gradients are multiplied before a rule is
// applied: the element after the rule's hyperparameters, or 1 without one.
template <typename Rule>
float GradFactor(Span<const float> hyper) {
  constexpr size_t kNumHyper = Rule::kNumHyper;
  return hyper.size() > kNumHyper ? hyper[kNumHyper] : 1.0f;
}

// Calls visitor(rule) with the rule of that name, created from hyper (listed in
// the rule's header; GradFactor is left to the visitor). InvalidArgument,
// without a call of visitor: no such rule, a wrong number of hyperparameters,
// or values that the rule rejects.
template <typename Visitor>
Status VisitRule(const std::string& name, Span<const float> hyper,
                 Visitor&& visitor) {
  namespace internal = rule_list_internal;
#define EV_VISIT_RULE(Rule)                           \
  if (name == Rule::kName) {                          \
    EV_RETURN_IF_ERROR(internal::Check<Rule>(hyper)); \
    return internal::Visit<Rule>(hyper, visitor);     \
  }
#define EV_VISIT_RULE_OF_TWO(Rule, condition)               \
  if (name == Rule<true>::kName) {                          \
    EV_RETURN_IF_ERROR(internal::Check<Rule<true>>(hyper)); \
    if (condition) {                                        \
      return internal::Visit<Rule<true>>(hyper, visitor);   \
    }                                                       \
    return internal::Visit<Rule<false>>(hyper, visitor);    \
  }
  EV_ROW_RULES(EV_VISIT_RULE, EV_VISIT_RULE_OF_TWO)
#undef EV_VISIT_RULE
#undef EV_VISIT_RULE_OF_TWO
  std::string known;
#define EV_NAME_RULE(Rule) \
  known += std::string(known.empty() ? "" : ", ") + Rule::kName;
#define EV_NAME_RULE_OF_TWO(Rule, condition) EV_NAME_RULE(Rule<true>)
  EV_ROW_RULES(EV_NAME_RULE, EV_NAME_RULE_OF_TWO)
#undef EV_NAME_RULE
#undef EV_NAME_RULE_OF_TWO
  return InvalidArgument("unknown rule '" + name + "', expected one of " +
                         known);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_OPTIMIZER_RULE_LIST_H_
