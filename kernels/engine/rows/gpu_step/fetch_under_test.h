// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Runs the kernels of step_fetch.h on tables of random rows, in regimes that
// whole tables reach only with millions of rows.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_FETCH_UNDER_TEST_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_FETCH_UNDER_TEST_H_

#include <cstdint>
#include <string>

#include "kernels/engine/base/status.h"

namespace ev {
namespace gpu {

struct FetchCase {
  uint32_t seed = 0;
  int num_tables = 1;
  // Added to PlaceOrder::window_log2: keys are windows of that many places.
  int more_window_log2 = 0;
  // The staging buffer holds 1/n of the ids' rows.
  int64_t staged_part = 1;
  // The order is made for 1/n of the places, as if rows had been made later.
  int64_t known_part = 1;
};

// Makes this process's GPU current. FailedPrecondition: it has none.
Status UseGpuForFetch();

// Returns the first wrong result, or an empty string. *num_reads: places from
// which rows were read, of num_host_ids ids whose rows are in host memory.
Status RunFetch(const FetchCase& what, std::string* wrong,
                int64_t* num_host_ids, int64_t* num_reads);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_FETCH_UNDER_TEST_H_
