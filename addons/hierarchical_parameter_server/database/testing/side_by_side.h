// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Times two implementations of the same work alternately, so that both see the
// same state of the machine.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_TESTING_SIDE_BY_SIDE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_TESTING_SIDE_BY_SIDE_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace hps {

// Prints a line: medians and 99th percentiles in microseconds, and our rate in
// percent of the library's. `seconds`: duration for each implementation.
inline void SideBySide(const std::string& what, int64_t batch, double seconds,
                       const std::function<void()>& ours,
                       const std::function<void()>& library) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times[2];
  double spent = 0;
  for (int round = 0; spent < 2 * seconds || round < 20; ++round) {
    // Alternates which one runs first.
    for (int turn = 0; turn < 2; ++turn) {
      const int way = (turn + round) % 2;
      const Clock::time_point start = Clock::now();
      way == 0 ? ours() : library();
      const double took =
          std::chrono::duration<double>(Clock::now() - start).count();
      if (round >= 3) times[way].push_back(took * 1e6);
      spent += took;
    }
  }
  double median[2], high[2];
  for (int way = 0; way < 2; ++way) {
    std::sort(times[way].begin(), times[way].end());
    median[way] = times[way][times[way].size() / 2];
    high[way] = times[way][times[way].size() * 99 / 100];
  }
  std::printf(
      "%-24s %8lld  ours %9.1f us (p99 %9.1f)  library %9.1f us (p99 %9.1f)  "
      "%5.1f %%\n",
      what.c_str(), static_cast<long long>(batch), median[0], high[0],
      median[1], high[1], 100.0 * median[1] / median[0]);
  std::fflush(stdout);
}

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_TESTING_SIDE_BY_SIDE_H_
