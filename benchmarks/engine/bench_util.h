// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What the engine's benchmarks share: flags, clock, the machine's own limit.

#ifndef BENCHMARKS_ENGINE_BENCH_UTIL_H_
#define BENCHMARKS_ENGINE_BENCH_UTIL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/engine/base/status.h"

namespace ev {
namespace bench {

// Seconds of processor time of the calling thread: what a rate per core means,
// also while something else runs on the machine.
double ThreadSeconds();

// Processor time of all threads of the process, which a loaded machine cannot
// distort much.
double ProcessSeconds();

// Seconds of a clock that only goes on.
double Now();

// The middle of one value at least; the later one of two.
double Median(std::vector<double> values);

// Ends the program with the message of an error.
void Check(const Status& status);

struct Settings {
  bool full = false;
  bool small = false;    // a thousandth of the data: to see that it runs
  double seconds = 1.0;  // per figure
  std::string only;      // one section; empty: all
};

// --full, --small, --seconds=S, --only=NAME. False, with a message, on anything
// else.
bool ParseFlags(int argc, char** argv, Settings* settings);

void PrintMachine();

// Lines per second, all threads together: one word of each of independent
// random cache lines of an area of this many bytes in huge pages. 0 without
// memory.
double RandomLineProbe(size_t bytes, int threads, double seconds);

// One line: the rate and the share of the probe (lines per second).
void Report(const char* what, double keys_per_second, double lines_per_key,
            double probe);

// Keeps the compiler from dropping what led to value.
void Use(double value);

// Zipf over [0, n): P(i) ~ 1 / (i + 1)^exponent, from 64 uniform bits.
class ZipfSampler {
 public:
  ZipfSampler(int64_t n, double exponent);
  int64_t Sample(uint64_t bits) const;

 private:
  std::vector<double> cumulative_;
};

}  // namespace bench
}  // namespace ev

#endif  // BENCHMARKS_ENGINE_BENCH_UTIL_H_
