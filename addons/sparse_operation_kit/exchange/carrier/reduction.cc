// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/carrier/reduction.h"

#include <cstring>

namespace sok {

int64_t SignatureOf(const Reduction& reduction) {
  // FNV-1a over numbers, which is the same in every process.
  uint64_t hash = 14695981039346656037ull;
  const auto add = [&hash](uint64_t number) {
    for (int byte = 0; byte < 8; ++byte) {
      hash = (hash ^ ((number >> (8 * byte)) & 0xff)) * 1099511628211ull;
    }
  };
  add(static_cast<uint64_t>(reduction.type));
  uint64_t scale = 0;
  std::memcpy(&scale, &reduction.scale, sizeof(scale));
  add(scale);
  add(reduction.pieces.size());
  for (const ReducedPiece& piece : reduction.pieces) add(piece.count);
  return static_cast<int64_t>(hash >> 1);
}

}  // namespace sok
