// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// How a rank uses each table of a lookup, as text that travels with its keys.
// The fingerprint of message.h detects that two ranks differ; the traits show
// the difference, so that the error can name both values.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TRAITS_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TRAITS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "addons/sparse_operation_kit/exchange/message.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace sok {

struct TableTraits {
  std::string combiner;   // "sum"
  std::string ids;        // type of the batch's ids, "int32"
  std::string keys;       // type of the table's keys, "int64"
  std::string optimizer;  // empty: none, or not yet
};

// Returns the text for MessageFormat::traits. If all tables are equal, one
// entry stands for all. Blanks and semicolons in names become underscores.
std::string WriteTraits(ev::Span<const TableTraits> tables);

// InvalidArgument, naming rank, table and both values, if a rank's traits
// differ from 'mine'. An empty text matches any other, and so does an optimizer
// that only one of two ranks has. message: the one that 'layout' was parsed
// from.
ev::Status CheckTraits(const MessageLayout& layout, const int64_t* message,
                       const std::string& mine,
                       const std::function<std::string(int)>& table_name);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TRAITS_H_
