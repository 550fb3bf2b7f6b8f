// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A small JSON reader. In addition to JSON it accepts // and /* */ comments and
// trailing commas, which upstream's samples contain, and a leading byte-order
// mark, which some editors write. A repeated key in an object raises an error.
// Nesting depth is limited.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CONFIG_JSON_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CONFIG_JSON_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kernels/engine/base/status.h"

namespace hps {

struct Json {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };

  Kind kind = Kind::kNull;
  bool flag = false;
  double number = 0;
  // True for a number without point and exponent that fits into int64.
  bool is_integer = false;
  int64_t integer = 0;
  // True for a number above the largest int64 (upstream's "unlimited" is 2^64 -
  // 1).
  bool is_huge = false;
  std::string text;
  std::vector<Json> items;
  // in the order of the file
  std::vector<std::pair<std::string, Json>> members;

  const Json* Find(const std::string& key) const {
    for (const auto& member : members) {
      if (member.first == key) return &member.second;
    }
    return nullptr;
  }
  // Describes the value for a message: "a string", "the number 3".
  std::string Describe() const;
};

// Parses a text. InvalidArgument: "<where>, line 3, column 7: ...". Columns
// count characters.
ev::Status ParseJson(const std::string& text, const std::string& where,
                     Json* json);

// Quotes a string in JSON style, for messages and reports. Bytes that are not
// UTF-8 and control characters except tab and line feed become \xNN, so the
// result is not always valid JSON.
std::string Quoted(const std::string& text);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CONFIG_JSON_H_
