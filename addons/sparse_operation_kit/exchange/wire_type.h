// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The number type of rows and gradients in messages between ranks. All sums are
// computed in float32; only the messages may be narrower.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WIRE_TYPE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WIRE_TYPE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/engine/base/float_type.h"

namespace sok {

using WireType = ev::FloatType;

inline size_t WireBytes(WireType type) { return ev::FloatBytes(type); }

// Round and widen as kernels/engine/base/float_math.h does. The ranges must not
// overlap.
void ToWire(const float* from, int64_t count, WireType type, void* to);
void FromWire(const void* from, int64_t count, WireType type, float* to);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_WIRE_TYPE_H_
