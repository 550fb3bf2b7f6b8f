// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Sums over ranks: the gradients of dense variables.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_REDUCTION_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_REDUCTION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "addons/sparse_operation_kit/exchange/stream_event.h"

namespace sok {

enum class ReducedType { kFloat16, kFloat32, kFloat64 };
inline int64_t ReducedBytes(ReducedType type) {
  return type == ReducedType::kFloat16   ? 2
         : type == ReducedType::kFloat32 ? 4
                                         : 8;
}

// One tensor of each rank.
struct ReducedPiece {
  const char* from = nullptr;
  char* to = nullptr;  // may be 'from'
  int64_t count = 0;   // numbers
};

struct Reduction {
  ReducedType type = ReducedType::kFloat32;
  // Factor for each sum.
  double scale = 1.0;
  // With 'after', all pieces are in device memory, and the device waits for the
  // event before it reads or writes them; otherwise all are in host memory.
  std::vector<ReducedPiece> pieces;
  std::shared_ptr<StreamEvent> after;
};

// Returns a hash of sizes, type and scale. Equal inputs give equal hashes;
// different ones collide with probability 2^-63.
int64_t SignatureOf(const Reduction& reduction);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_REDUCTION_H_
