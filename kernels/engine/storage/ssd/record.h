// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A row in a file: a header, then the row's floats. The checksum covers the
// record's number, so it detects a record in the wrong place as well as changed
// bits.

#ifndef KERNELS_ENGINE_STORAGE_SSD_RECORD_H_
#define KERNELS_ENGINE_STORAGE_SSD_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/engine/base/pages.h"
#include "kernels/engine/base/row_handle.h"

namespace ev {

// Number of a record in a file: segment << bits | position in the segment.
using RecordNumber = uint32_t;
constexpr RecordNumber kNoRecord = 0x7FFFFFFFu;

struct RecordHeader {
  uint32_t checksum;  // of all that follows
  RowHandle handle;
  uint32_t rank;  // rank of the row in the cache (UseRanks::Kept)
  uint32_t floats;
};
static_assert(sizeof(RecordHeader) == 16, "");

// Layout of the records in a segment. If that costs at most an eighth of the
// space, no record straddles two pages, so that a random read touches one page.
struct RecordFormat {
  int64_t floats = 0;
  size_t bytes = 0;     // per record
  size_t per_page = 0;  // 0: back to back
  int32_t records = 0;  // per segment

  static RecordFormat Of(int64_t floats, size_t segment_bytes) {
    RecordFormat format;
    format.floats = floats;
    format.bytes = sizeof(RecordHeader) + floats * sizeof(float);
    if (format.bytes <= kSmallPage &&
        kSmallPage % format.bytes <= kSmallPage / 8) {
      format.per_page = kSmallPage / format.bytes;
      format.records =
          static_cast<int32_t>(segment_bytes / kSmallPage * format.per_page);
    } else {
      format.records = static_cast<int32_t>(segment_bytes / format.bytes);
    }
    return format;
  }

  size_t Offset(int32_t position) const {
    if (per_page == 0) return position * bytes;
    return position / per_page * kSmallPage + position % per_page * bytes;
  }
};

// Returns a checksum over 32-bit words that detects any changed bit. Computes
// four sums in parallel to keep the core busy.
inline uint32_t RecordChecksum(RecordNumber number, const RecordHeader& header,
                               const char* floats) {
  constexpr uint64_t kOdd = 0x9e3779b97f4a7c15ull;
  const auto add = [](uint64_t* sum, const char* from) {
    uint64_t pair;
    std::memcpy(&pair, from, sizeof(pair));
    *sum = (*sum ^ pair) * kOdd;
    *sum ^= *sum >> 29;
  };
  // Separate variables: the compiler would keep an array in memory.
  uint64_t sum0 = number + 1ull, sum1 = header.handle + 2ull;
  uint64_t sum2 = header.rank + 3ull, sum3 = header.floats + 4ull;
  const size_t words = header.floats;
  size_t i = 0;
  for (; i + 8 <= words; i += 8) {
    add(&sum0, floats + i * 4);
    add(&sum1, floats + i * 4 + 8);
    add(&sum2, floats + i * 4 + 16);
    add(&sum3, floats + i * 4 + 24);
  }
  uint64_t sums[4] = {sum0, sum1, sum2, sum3};
  for (; i < words; ++i) {
    uint32_t word;
    std::memcpy(&word, floats + i * 4, sizeof(word));
    sums[i % 4] = (sums[i % 4] ^ word) * kOdd;
    sums[i % 4] ^= sums[i % 4] >> 29;
  }
  uint64_t all = 0;
  for (const uint64_t sum : sums) {
    all = (all ^ sum) * kOdd;
    all ^= all >> 32;
  }
  return static_cast<uint32_t>(all);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_SSD_RECORD_H_
