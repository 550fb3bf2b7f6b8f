// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A small reader of JSON. Besides JSON it takes // and /* */ comments and a
// comma before a closing bracket, since upstream's samples have them, and a
// byte-order mark at the beginning, which editors write. A key that stands
// twice in an object is an error. Nesting is limited.

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
  // Of a number: whether it is written without point and exponent and fits.
  bool is_integer = false;
  int64_t integer = 0;
  // A number above the largest int64 (2^64 - 1 is upstream's "unlimited").
  bool is_huge = false;
  std::string text;
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> members;  // in the file's order

  const Json* Find(const std::string& key) const {
    for (const auto& member : members) {
      if (member.first == key) return &member.second;
    }
    return nullptr;
  }
  // "a string", "the number 3", ...: what came, for a message.
  std::string Describe() const;
};

// InvalidArgument: "<where>, line 3, column 7: ...". Columns count characters.
ev::Status ParseJson(const std::string& text, const std::string& where,
                     Json* json);

// A string as JSON writes it, quotes included. Bytes that are not UTF-8, and
// control characters except tab and line feed, are shown as \xNN: for messages
// and reports, not for text that is read back.
std::string Quoted(const std::string& text);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CONFIG_JSON_H_
