// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Selects the tables that a tier subscribes to by update_filters: regular
// expressions on the model's name. Filter f matches the tags ^hps_et\.f\..+$.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_TAG_FILTER_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_TAG_FILTER_H_

#include <regex>
#include <string>
#include <vector>

#include "kernels/engine/base/status.h"

namespace hps {

class TagFilter {
 public:
  // InvalidArgument: there is no filter, or one is not a regular expression.
  static ev::Status Make(const std::vector<std::string>& filters,
                         TagFilter* filter);
  // Thread-safe.
  bool Matches(const std::string& tag) const;
  // The full expressions, for a queue that filters by itself.
  const std::vector<std::string>& expressions() const { return texts_; }

 private:
  std::vector<std::string> texts_;
  std::vector<std::regex> compiled_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_TAG_FILTER_H_
