// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The message of keys that a rank sends to another, all int64:
//
//   [fingerprint][keys of table 0: n_0] ... [n_T-1]
//   [bytes of the traits][traits, padded to whole numbers]
//   [n_0 keys][n_0 occurrences, if wanted][n_1 keys] ...
//
// So sizes need no exchange of their own, and an empty batch still sends T + 2
// numbers: every rank takes part in every exchange. The fingerprint stands for
// the lookup as the graph describes it. Two ranks that differ in it would read
// each other's keys as another table's; they get an error instead. Its two
// lowest bits say how rows travel, so that the error can say when that is what
// differs. The traits (traits.h) are compared by the op that serves the keys.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_MESSAGE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_MESSAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace sok {

// A fingerprint of 'facts' for rows that travel as the wire type of this number
// (0: float32, 1: float16, 2: bfloat16).
inline int64_t FingerprintWith(int64_t facts, int wire) {
  return static_cast<int64_t>((static_cast<uint64_t>(facts) & ~uint64_t{3}) |
                              static_cast<uint64_t>(wire));
}

// What all ranks agree on.
struct MessageFormat {
  int num_tables = 0;
  bool with_occurrences = false;
  int64_t fingerprint = 0;
  std::string traits;  // what the writer sends; a reader takes any

  // Numbers before the keys.
  int64_t header() const { return header(traits.size()); }
  int64_t header(size_t traits_bytes) const {
    return 2 + num_tables + static_cast<int64_t>((traits_bytes + 7) / 8);
  }
  int64_t per_key() const { return with_occurrences ? 2 : 1; }
};

// Where everything is in the messages of all ranks, laid end to end.
class MessageLayout {
 public:
  // splits: how many numbers came from each rank. InvalidArgument: sizes that
  // do not fit, or a fingerprint that is not ours; the rank is named.
  static ev::Status Parse(const MessageFormat& format,
                          ev::Span<const int64_t> message,
                          ev::Span<const int32_t> splits,
                          MessageLayout* layout);

  int num_ranks() const { return num_ranks_; }
  int num_tables() const { return format_.num_tables; }
  const MessageFormat& format() const { return format_; }
  // Keys of table t from rank r, and where they begin in the message; their
  // occurrences, if there are any, follow them.
  int64_t num_keys(int r, int t) const { return num_keys_[Index(r, t)]; }
  int64_t key_start(int r, int t) const { return key_starts_[Index(r, t)]; }
  int64_t num_keys(int t) const;  // from all ranks
  // The traits that rank r has sent in the message that was parsed.
  std::string traits(int r, const int64_t* message) const {
    return std::string(
        reinterpret_cast<const char*>(message + traits_starts_[r] + 1),
        static_cast<size_t>(message[traits_starts_[r]]));
  }

 private:
  size_t Index(int r, int t) const {
    return static_cast<size_t>(r) * format_.num_tables + t;
  }

  MessageFormat format_;
  int num_ranks_ = 0;
  std::vector<int64_t> num_keys_, key_starts_;  // [W * T]
  std::vector<int64_t> traits_starts_;          // [W], where their sizes are
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_MESSAGE_H_
