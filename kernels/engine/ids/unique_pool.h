// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_IDS_UNIQUE_POOL_H_
#define KERNELS_ENGINE_IDS_UNIQUE_POOL_H_

#include "kernels/engine/base/scratch.h"
#include "kernels/engine/ids/unique.h"

namespace ev {

// The dedup scratch of this process's tasks. Never destroyed: tasks may run
// while the process ends.
inline Recycler<Unique>& UniquePool() {
  static Recycler<Unique>* const pool = new Recycler<Unique>(64);
  return *pool;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_UNIQUE_POOL_H_
