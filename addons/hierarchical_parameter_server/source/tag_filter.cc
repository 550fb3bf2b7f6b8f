// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/source/tag_filter.h"

namespace hps {

ev::Status TagFilter::Make(const std::vector<std::string>& filters,
                           TagFilter* filter) {
  TagFilter made;
  for (const std::string& text : filters) {
    const std::string whole = "^hps_et\\." + text + "\\..+$";
    try {
      made.compiled_.emplace_back(whole, std::regex::extended);
    } catch (const std::regex_error& error) {
      return ev::InvalidArgument(
          "update_filters: '" + text +
          "' is not a regular expression: " + error.what());
    }
    made.texts_.push_back(whole);
  }
  if (filters.empty()) {
    return ev::InvalidArgument(
        "update_filters: expected at least one expression, got none");
  }
  *filter = std::move(made);
  return ev::Status::OK();
}

bool TagFilter::Matches(const std::string& tag) const {
  for (const std::regex& expression : compiled_) {
    if (std::regex_match(tag, expression)) return true;
  }
  return false;
}

}  // namespace hps
