// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The number type of rows and gradients in messages between ranks. All sums are
// computed in float32; only the messages may be narrower.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WIRE_TYPE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WIRE_TYPE_H_

#include <cstddef>
#include <cstdint>

namespace sok {

enum class WireType { kFloat32, kFloat16, kBFloat16 };

inline size_t WireBytes(WireType type) {
  return type == WireType::kFloat32 ? 4 : 2;
}

// Round to nearest, ties to even. To float16: magnitudes from 65520 on become
// infinite, up to 2^-25 zero. NaN stays NaN. The ranges must not overlap.
void ToWire(const float* from, int64_t count, WireType type, void* to);
void FromWire(const void* from, int64_t count, WireType type, float* to);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WIRE_TYPE_H_
