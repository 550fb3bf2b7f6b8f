// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Numbers that are summed over ranks: the gradients of dense variables.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_REDUCTION_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_REDUCTION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "addons/sparse_operation_kit/exchange/stream_mark.h"

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
  // What each sum is multiplied by.
  double scale = 1.0;
  // All in the memory of the rank's device where there is a mark, which the
  // device waits for before it reads or writes them; else all in CPU memory.
  std::vector<ReducedPiece> pieces;
  std::shared_ptr<StreamMark> after;
};

// Equal where two ranks give the same sizes, type and scale; else different but
// for one case in 2^63.
int64_t SignatureOf(const Reduction& reduction);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_REDUCTION_H_
