// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/traits.h"

#include <algorithm>
#include <vector>

namespace sok {
namespace {

constexpr char kBetweenTables = ';';
constexpr char kBetweenFields = ' ';
constexpr int kNumFields = 4;
constexpr int kOptimizer = 3;

std::string Field(std::string value) {
  for (char& c : value) {
    if (c == kBetweenTables || c == kBetweenFields) c = '_';
  }
  return value;
}

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> pieces(1);
  for (const char c : text) {
    if (c == separator) {
      pieces.emplace_back();
    } else {
      pieces.back() += c;
    }
  }
  return pieces;
}

// Describes how a rank uses a table, for one of the fields.
std::string InWords(int field, const std::string& table,
                    const std::string& value) {
  switch (field) {
    case 0:
      return "looks up variable '" + table + "' with combiner '" + value + "'";
    case 1:
      return "looks up variable '" + table + "' by ids of type " + value;
    case 2:
      return "has variable '" + table + "' with keys of type " + value;
    default:
      return "trains variable '" + table + "' by " + value;
  }
}

ev::Status Compare(int rank, const std::string& theirs, const std::string& mine,
                   const std::function<std::string(int)>& table_name) {
  const std::vector<std::string> their_tables = Split(theirs, kBetweenTables);
  const std::vector<std::string> my_tables = Split(mine, kBetweenTables);
  const size_t num_tables = std::max(their_tables.size(), my_tables.size());
  for (size_t t = 0; t < num_tables; ++t) {
    const auto their =
        Split(their_tables[their_tables.size() == 1 ? 0 : t], kBetweenFields);
    const auto my =
        Split(my_tables[my_tables.size() == 1 ? 0 : t], kBetweenFields);
    for (int f = 0; f < kNumFields; ++f) {
      if (their[f] == my[f]) continue;
      if (f == kOptimizer && (their[f].empty() || my[f].empty())) continue;
      const std::string name = table_name(static_cast<int>(t));
      return ev::InvalidArgument(
          "lookup over ranks: rank " + std::to_string(rank) + " " +
          InWords(f, name, their[f]) + ", and this rank " +
          InWords(f, name, my[f]) + ". All ranks must build the same graph");
    }
  }
  return ev::Status::OK();
}

bool IsWhole(const std::string& text, int num_tables) {
  const std::vector<std::string> tables = Split(text, kBetweenTables);
  if (tables.size() != 1 && tables.size() != static_cast<size_t>(num_tables)) {
    return false;
  }
  for (const std::string& table : tables) {
    if (Split(table, kBetweenFields).size() != kNumFields) return false;
  }
  return true;
}

}  // namespace

std::string WriteTraits(ev::Span<const TableTraits> tables) {
  std::vector<std::string> texts;
  bool equal = true;
  for (const TableTraits& table : tables) {
    texts.push_back(Field(table.combiner) + kBetweenFields + Field(table.ids) +
                    kBetweenFields + Field(table.keys) + kBetweenFields +
                    Field(table.optimizer));
    equal &= texts.back() == texts.front();
  }
  std::string result;
  for (size_t t = 0;
       t < (equal ? std::min<size_t>(1, texts.size()) : texts.size()); ++t) {
    if (t > 0) result += kBetweenTables;
    result += texts[t];
  }
  return result;
}

ev::Status CheckTraits(const MessageLayout& layout, const int64_t* message,
                       const std::string& mine,
                       const std::function<std::string(int)>& table_name) {
  if (mine.empty()) return ev::Status::OK();
  for (int r = 0; r < layout.num_ranks(); ++r) {
    const std::string theirs = layout.traits(r, message);
    if (theirs.empty() || theirs == mine) continue;
    if (!IsWhole(theirs, layout.num_tables()) ||
        !IsWhole(mine, layout.num_tables())) {
      return ev::InvalidArgument("lookup over ranks: rank " +
                                 std::to_string(r) +
                                 " sent a message that is not of this lookup");
    }
    EV_RETURN_IF_ERROR(Compare(r, theirs, mine, table_name));
  }
  return ev::Status::OK();
}

}  // namespace sok
