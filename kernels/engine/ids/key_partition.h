// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Key partitions, floormod(key, 1000) as in DeepRec. They order a checkpoint's
// keys, and a partitioned variable's parts are made of them. Compiles as C++14.
// (partition.h splits batches by owner.)

#ifndef KERNELS_ENGINE_IDS_KEY_PARTITION_H_
#define KERNELS_ENGINE_IDS_KEY_PARTITION_H_

#include <cstdint>

#include "kernels/engine/base/modulo.h"

namespace ev {

constexpr int64_t kKeyPartitions = 1000;

inline int64_t KeyPartition(int64_t key) {
  return FloorMod(key, kKeyPartitions);
}

// Returns whether a key belongs to part 'part' of a variable with 'num_parts'
// parts.
inline bool IsInPart(int64_t key, int part, int num_parts) {
  return KeyPartition(key) % num_parts == part;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_KEY_PARTITION_H_
