// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reads rows in either memory while other threads move rows between them. A row
// that is being moved is read again in the next round.

#ifndef KERNELS_ENGINE_STORAGE_TIERED_READ_ROUNDS_H_
#define KERNELS_ENGINE_STORAGE_TIERED_READ_ROUNDS_H_

#include <sched.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {

// Calls round(left, &again), which returns a Status, until every handle that
// has a row is read, for 'at_once' handles at a time. left: the positions in
// 'handles' to read. again: initially empty, receives those that could not be
// read yet. Handles without a row are skipped. Stops at an error. Throws
// std::bad_alloc.
template <typename Round>
Status ReadInRounds(Span<const RowHandle> handles, size_t at_once,
                    const Round& round) {
  std::vector<size_t> left, again;
  for (size_t begin = 0; begin < handles.size(); begin += at_once) {
    left.clear();
    for (size_t i = begin; i < std::min(handles.size(), begin + at_once); ++i) {
      if (handles[i] < kFirstReservedHandle) left.push_back(i);
    }
    while (!left.empty()) {
      again.clear();
      EV_RETURN_IF_ERROR(round(left, &again));
      // The thread that moves these rows does not wait for this one.
      if (again.size() == left.size()) sched_yield();
      left.swap(again);
    }
  }
  return Status::OK();
}

}  // namespace ev

#endif  // KERNELS_ENGINE_STORAGE_TIERED_READ_ROUNDS_H_
