// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/database.h"

namespace hps {
namespace {

constexpr char kPrefix[] = "hps_et.";
constexpr size_t kMaxPart = 120;

bool IsPart(const std::string& part) {
  if (part.empty() || part.size() > kMaxPart) return false;
  for (const char c : part) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (!good) return false;
  }
  return true;
}

}  // namespace

ev::Status MakeTag(const std::string& model, const std::string& table,
                   std::string* tag) {
  for (const auto& part : {std::make_pair("model", &model),
                           std::make_pair("embedding table", &table)}) {
    if (!IsPart(*part.second)) {
      return ev::InvalidArgument(
          std::string("the name of the ") + part.first + " '" + *part.second +
          "': expected 1 to 120 letters, digits, '_' and '-', got " +
          std::to_string(part.second->size()) + " characters");
    }
  }
  *tag = kPrefix + model + "." + table;
  return ev::Status::OK();
}

ev::Status CheckTable(const std::string& database, const std::string& tag,
                      const RowFormat& format) {
  const size_t prefix = sizeof(kPrefix) - 1;
  const size_t dot = tag.find('.', prefix);
  if (tag.compare(0, prefix, kPrefix) != 0 || dot == std::string::npos ||
      !IsPart(tag.substr(prefix, dot - prefix)) ||
      !IsPart(tag.substr(dot + 1))) {
    return ev::InvalidArgument("database " + database + ": the tag '" + tag +
                               "' of a table: expected hps_et.<model>.<table>");
  }
  if (format.dim < 1 || format.dim > kMaxWidth) {
    return ev::InvalidArgument("database " + database + ", table " + tag +
                               ": expected a width from 1 to " +
                               std::to_string(kMaxWidth) + " floats, got " +
                               std::to_string(format.dim));
  }
  return ev::Status::OK();
}

ev::Status CheckFormat(const RowFormat& format, const RowFormat& expected) {
  if (format == expected) return ev::Status::OK();
  return ev::InvalidArgument("it has rows of " + Describe(format) +
                             ", expected " + Describe(expected));
}

}  // namespace hps
