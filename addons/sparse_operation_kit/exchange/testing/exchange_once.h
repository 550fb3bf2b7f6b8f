// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Test helper: exchanges bytes whose values depend on their sender and
// receiver.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TESTING_EXCHANGE_ONCE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TESTING_EXCHANGE_ONCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"

namespace sok {

// Size and bytes that rank `source` sends to rank `target` in a round. Any six
// consecutive rounds include the size 'most'.
inline int64_t SizeOf(int round, int source, int target, int64_t most) {
  const int64_t sizes[] = {0, 1, 7, 300, 65536, most};
  return sizes[(round + 2 * source + 3 * target) % 6];
}
inline char ByteOf(int round, int source, int target, int64_t at) {
  return static_cast<char>(round * 31 + source * 7 + target * 3 + at * 13 +
                           at / 4096);
}

// Makes one call and returns its error; Internal if the received bytes are
// wrong.
inline ev::Status ExchangeOnce(Carrier* carrier, int round, int64_t most) {
  const int rank = carrier->rank(), n = carrier->num_ranks();
  std::vector<int64_t> to(n), from(n);
  std::string send, expected;
  for (int r = 0; r < n; ++r) {
    to[r] = SizeOf(round, rank, r, most);
    from[r] = SizeOf(round, r, rank, most);
    for (int64_t i = 0; i < to[r]; ++i) send += ByteOf(round, rank, r, i);
    for (int64_t i = 0; i < from[r]; ++i) expected += ByteOf(round, r, rank, i);
  }
  std::string out(expected.size(), '\0');
  EV_RETURN_IF_ERROR(carrier->AllToAll(send.data(), to, &out[0], from));
  if (out == expected) return ev::Status::OK();
  return ev::Internal("rank " + std::to_string(rank) + " got other bytes in " +
                      "round " + std::to_string(round));
}

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TESTING_EXCHANGE_ONCE_H_
