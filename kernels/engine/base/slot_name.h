// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The width of an optimizer slot, which its name determines: a slot whose name
// ends with kPerRowSlotSuffix has one number per row, any other slot one per
// element. So every graph and every checkpoint that names a slot contains its
// width.

#ifndef KERNELS_ENGINE_BASE_SLOT_NAME_H_
#define KERNELS_ENGINE_BASE_SLOT_NAME_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace ev {

// No name of a TensorFlow op, after which slots are named, contains an '@'.
constexpr char kPerRowSlotSuffix[] = "@row";

inline bool IsPerRowSlot(const std::string& name) {
  constexpr size_t kSize = sizeof(kPerRowSlotSuffix) - 1;
  return name.size() > kSize &&
         name.compare(name.size() - kSize, kSize, kPerRowSlotSuffix) == 0;
}

// Returns the floats of a slot in each row of a table of that dim.
inline int64_t SlotWidth(const std::string& name, int64_t dim) {
  return IsPerRowSlot(name) ? 1 : dim;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_SLOT_NAME_H_
