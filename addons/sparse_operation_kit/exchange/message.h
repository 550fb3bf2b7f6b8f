// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The message of keys from one rank to another. All numbers are int64:
//
//
//   [fingerprint][keys of table 0: n_0] ... [n_T-1]
//   [bytes of the traits][traits, padded to whole numbers]
//   [n_0 keys][n_0 occurrence counts, optional][n_1 keys] ...
//
// The message contains its sizes, so they need no exchange of their own. Every
// rank takes part in every exchange: an empty batch still sends T + 2 numbers
// and the traits.
//
// The fingerprint identifies the lookup as the graph describes it. Ranks whose
// graphs differ would read each other's keys as those of another table; the
// fingerprint turns that into an error. Its two lowest bits are the wire type,
// so that the error can name a difference in it. The op that serves the keys
// compares the traits (traits.h).

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_MESSAGE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_MESSAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace sok {

// Returns the fingerprint of the lookup 'facts' with rows in this wire type (0:
// float32, 1: float16, 2: bfloat16).
inline int64_t FingerprintWith(int64_t facts, int wire) {
  return static_cast<int64_t>((static_cast<uint64_t>(facts) & ~uint64_t{3}) |
                              static_cast<uint64_t>(wire));
}

// The parts of the format on which all ranks agree.
struct MessageFormat {
  int num_tables = 0;
  bool with_occurrences = false;
  int64_t fingerprint = 0;
  std::string traits;  // of the sender; a reader accepts any

  // Number of int64 values before the keys.
  int64_t header() const { return header(traits.size()); }
  int64_t header(size_t traits_bytes) const {
    return 2 + num_tables + static_cast<int64_t>((traits_bytes + 7) / 8);
  }
  int64_t per_key() const { return with_occurrences ? 2 : 1; }
};

// Index of the keys, counts and traits in the concatenated messages of all
// ranks.
class MessageLayout {
 public:
  // splits: count of numbers received from each rank. InvalidArgument, naming
  // the rank, if sizes do not fit or the fingerprint differs from this rank's.
  // ResourceExhausted: out of memory.
  static ev::Status Parse(const MessageFormat& format,
                          ev::Span<const int64_t> message,
                          ev::Span<const int32_t> splits,
                          MessageLayout* layout);

  int num_ranks() const { return num_ranks_; }
  int num_tables() const { return format_.num_tables; }
  const MessageFormat& format() const { return format_; }
  // Number of keys of table t from rank r, and their start in the message.
  // Their occurrence counts, if the format has them, follow the keys.
  int64_t num_keys(int r, int t) const { return num_keys_[Index(r, t)]; }
  int64_t key_start(int r, int t) const { return key_starts_[Index(r, t)]; }
  int64_t num_keys(int t) const;  // from all ranks
  // Traits in rank r's message.
  std::string traits(int r, const int64_t* message) const {
    return std::string(
        reinterpret_cast<const char*>(message + traits_starts_[r] + 1),
        static_cast<size_t>(message[traits_starts_[r]]));
  }

 private:
  static ev::Status ParseOrThrow(const MessageFormat& format,
                                 ev::Span<const int64_t> message,
                                 ev::Span<const int32_t> splits,
                                 MessageLayout* layout);
  size_t Index(int r, int t) const {
    return static_cast<size_t>(r) * format_.num_tables + t;
  }

  MessageFormat format_;
  int num_ranks_ = 0;
  std::vector<int64_t> num_keys_, key_starts_;  // [W * T]
  std::vector<int64_t> traits_starts_;          // [W], positions of their sizes
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_MESSAGE_H_
