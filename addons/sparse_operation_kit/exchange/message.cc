// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/message.h"

#include <string>

#include "kernels/engine/base/tasks.h"

namespace sok {
namespace {

ev::Status Bad(int rank, const std::string& what) {
  return ev::InvalidArgument("lookup over ranks: rank " + std::to_string(rank) +
                             " sent " + what);
}

const char* WireName(int64_t fingerprint) {
  constexpr const char* kNames[] = {"float32", "float16", "bfloat16",
                                    "another type"};
  return kNames[fingerprint & 3];
}

}  // namespace

ev::Status MessageLayout::Parse(const MessageFormat& format,
                                ev::Span<const int64_t> message,
                                ev::Span<const int32_t> splits,
                                MessageLayout* layout) {
  return ev::CatchBadAlloc(
      [&] { return ParseOrThrow(format, message, splits, layout); });
}

ev::Status MessageLayout::ParseOrThrow(const MessageFormat& format,
                                       ev::Span<const int64_t> message,
                                       ev::Span<const int32_t> splits,
                                       MessageLayout* layout) {
  const int num_ranks = static_cast<int>(splits.size());
  const size_t cells = static_cast<size_t>(num_ranks) * format.num_tables;
  layout->format_ = format;
  layout->num_ranks_ = num_ranks;
  layout->num_keys_.assign(cells, 0);
  layout->key_starts_.assign(cells, 0);
  layout->traits_starts_.assign(num_ranks, 0);
  const int64_t size = static_cast<int64_t>(message.size());
  int64_t begin = 0;
  for (int r = 0; r < num_ranks; ++r) {
    const int64_t length = splits[r];
    if (length < format.header(0) || length > size - begin) {
      return Bad(r, "a message of " + std::to_string(length) +
                        " numbers, expected at least " +
                        std::to_string(format.header(0)) + " for " +
                        std::to_string(format.num_tables) +
                        " tables. All ranks must build the same graph and run "
                        "the same lookups");
    }
    if (((message[begin] ^ format.fingerprint) | 3) == 3 &&
        message[begin] != format.fingerprint) {
      return ev::InvalidArgument(
          "lookup over ranks: rank " + std::to_string(r) +
          " exchanges rows as " + WireName(message[begin]) + ", this rank as " +
          WireName(format.fingerprint) +
          ". All ranks must call sok.init with the same exchange_dtype");
    }
    if (message[begin] != format.fingerprint) {
      return Bad(
          r,
          "the keys of another lookup: its variables, their dims, "
          "placements or options differ from this rank's. All ranks must "
          "build the same graph and run the same lookups");
    }
    const int64_t traits_start = begin + 1 + format.num_tables;
    const int64_t traits_bytes = message[traits_start];
    if (traits_bytes < 0 || traits_bytes > 8 * (length - format.header(0))) {
      return Bad(r, "a message of " + std::to_string(length) +
                        " numbers that announces " +
                        std::to_string(traits_bytes) + " bytes of traits");
    }
    layout->traits_starts_[r] = traits_start;
    int64_t at = begin + format.header(static_cast<size_t>(traits_bytes));
    const int64_t end = begin + length;
    for (int t = 0; t < format.num_tables; ++t) {
      const int64_t n = message[begin + 1 + t];
      if (n < 0 || n > (end - at) / format.per_key()) {
        return Bad(r, "a message of " + std::to_string(length) +
                          " numbers that announces " + std::to_string(n) +
                          " keys of table " + std::to_string(t));
      }
      layout->num_keys_[layout->Index(r, t)] = n;
      layout->key_starts_[layout->Index(r, t)] = at;
      at += n * format.per_key();
    }
    if (at != end) {
      return Bad(r, "a message of " + std::to_string(length) +
                        " numbers of which " + std::to_string(end - at) +
                        " belong to no table");
    }
    begin = end;
  }
  if (begin != size) {
    return ev::InvalidArgument(
        "lookup over ranks: a message of " + std::to_string(size) +
        " numbers was split into " + std::to_string(begin));
  }
  return ev::Status::OK();
}

int64_t MessageLayout::num_keys(int t) const {
  int64_t total = 0;
  for (int r = 0; r < num_ranks_; ++r) total += num_keys(r, t);
  return total;
}

}  // namespace sok
