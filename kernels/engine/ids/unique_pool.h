// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_IDS_UNIQUE_POOL_H_
#define KERNELS_ENGINE_IDS_UNIQUE_POOL_H_

#include "kernels/engine/base/scratch.h"
#include "kernels/engine/ids/unique.h"

namespace ev {

// Pool of dedup scratch for the tasks of this process. Never destroyed, because
// tasks may run while the process exits.
inline Recycler<Unique>& UniquePool() {
  static Recycler<Unique>* const pool = new Recycler<Unique>(64);
  return *pool;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_UNIQUE_POOL_H_
