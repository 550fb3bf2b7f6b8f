// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Splits a fetch over threads and joins the tasks' lists of missing positions.
// Allocates no memory.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_FETCH_IN_TASKS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_FETCH_IN_TASKS_H_

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kernels/engine/base/parallel.h"

namespace hps {

// part(begin, end, missing) fetches the positions with indices [begin, end),
// writes the missing ones to `missing` and returns their number. `missing` has
// room for `count` positions. Returns the total number of missing positions.
// `row_bytes` sets how many rows make up a task.
template <typename Part>
int64_t FetchInTasks(int64_t count, int64_t row_bytes, int64_t* missing,
                     ev::Parallel* parallel, const Part& part) {
  constexpr int64_t kMaxTasks = 128;
  // About 30 microseconds of reading from memory.
  const int64_t least = std::max<int64_t>(
      64, (int64_t{128} << 10) / std::max<int64_t>(row_bytes, 64));
  const int64_t tasks = std::min(kMaxTasks, count / least);
  if (tasks <= 1 || parallel->num_threads() == 1) {
    // Proceeds in steps even on one thread, to bound how long `part` holds a
    // reader's lock.
    int64_t total = 0;
    const int64_t step = std::max<int64_t>(least * 4, 1);
    for (int64_t begin = 0; begin < count; begin += step) {
      const int64_t end = std::min(count, begin + step);
      int64_t* const list = missing + begin;
      const int64_t some = part(begin, end, list);
      std::memmove(missing + total, list, some * sizeof(*missing));
      total += some;
    }
    return total;
  }
  int64_t counts[kMaxTasks];
  const auto begin_of = [&](int64_t task) { return count * task / tasks; };
  parallel->For(tasks, [&](int64_t task) {
    const int64_t begin = begin_of(task);
    counts[task] = part(begin, begin_of(task + 1), missing + begin);
  });
  int64_t total = 0;
  for (int64_t task = 0; task < tasks; ++task) {
    std::memmove(missing + total, missing + begin_of(task),
                 counts[task] * sizeof(*missing));
    total += counts[task];
  }
  return total;
}

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_FETCH_IN_TASKS_H_
