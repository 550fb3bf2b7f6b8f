// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Names of combiners, as graphs have them. Header only, so that op definitions,
// which do not link the engine, use the same list.

#ifndef KERNELS_ENGINE_COMBINE_COMBINER_NAMES_H_
#define KERNELS_ENGINE_COMBINE_COMBINER_NAMES_H_

#include <string>

#include "kernels/engine/base/status.h"
#include "kernels/engine/combine/combiner.h"

namespace ev {

inline std::string CombinerName(Combiner combiner) {
  return VisitCombiner(
      combiner, [](auto rule) { return std::string(decltype(rule)::kName); });
}

// Returns all names, each enclosed in 'quote', joined by 'between', or by
// 'last' before the last name.
inline std::string CombinerNames(const std::string& quote,
                                 const std::string& between,
                                 const std::string& last) {
  constexpr int n = sizeof(kCombiners) / sizeof(kCombiners[0]);
  std::string names;
  for (int i = 0; i < n; ++i) {
    if (i > 0) names += i + 1 == n ? last : between;
    names += quote + CombinerName(kCombiners[i]) + quote;
  }
  return names;
}

// Returns the op attribute "combiners: list({'sum', 'mean', ...})".
inline std::string CombinersAttr() {
  return "combiners: list({" + CombinerNames("'", ", ", ", ") + "})";
}

// Finds a combiner by its name. InvalidArgument, with a list of all names, if
// there is none.
inline Status ParseCombiner(const std::string& name, Combiner* combiner) {
  for (Combiner known : kCombiners) {
    if (CombinerName(known) != name) continue;
    *combiner = known;
    return Status::OK();
  }
  return InvalidArgument("a combiner: expected " +
                         CombinerNames("", ", ", " or ") + ", got '" + name +
                         "'");
}

}  // namespace ev

#endif  // KERNELS_ENGINE_COMBINE_COMBINER_NAMES_H_
