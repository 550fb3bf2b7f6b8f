// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Utilities of the engine's benchmarks: flags, clocks, and a probe of the
// machine's limit.

#ifndef BENCHMARKS_ENGINE_BENCH_UTIL_H_
#define BENCHMARKS_ENGINE_BENCH_UTIL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "kernels/engine/base/status.h"

namespace ev {
namespace bench {

// Returns the processor time of the calling thread, in seconds. Rates per core
// use it, because other work on the machine distorts it little.
double ThreadSeconds();

// Returns the processor time of all threads of the process, in seconds. Other
// work on the machine distorts it little.
double ProcessSeconds();

// Returns the seconds of a monotonic clock.
double Now();

// Returns the median of at least one value; of two middle values, the larger
// one.
double Median(std::vector<double> values);

// Prints the error and exits if `status` is not OK.
void Check(const Status& status);

// The flags of a program: --name=value, or --name for a bool.
class Flags {
 public:
  Flags& Add(const std::string& name, bool* value);
  Flags& Add(const std::string& name, int* value);
  Flags& Add(const std::string& name, int64_t* value);
  Flags& Add(const std::string& name, double* value);
  Flags& Add(const std::string& name, std::string* value);

  // Prints the known flags and returns false for any other argument.
  bool Parse(int argc, char** argv) const;

 private:
  std::map<std::string, std::function<void(const char*)>> set_;
};

struct Settings {
  bool full = false;
  bool small = false;    // a thousandth of the data, to test that it runs
  double seconds = 1.0;  // per measurement
  std::string only;      // one section; empty: all
};

// Parses --full, --small, --seconds=S and --only=NAME. Prints a message and
// returns false for any other argument.
bool ParseFlags(int argc, char** argv, Settings* settings);

void PrintMachine();

// Returns cache lines read per second by all threads together: one word of each
// of independent random lines in an area of `bytes` bytes in huge pages.
// Returns 0 if the memory cannot be allocated.
double RandomLineProbe(size_t bytes, int threads, double seconds);

// Prints one line: the rate, and its share of the probe (lines per second).
void Report(const char* what, double keys_per_second, double lines_per_key,
            double probe);

// Keeps the compiler from removing the computation of value.
void Use(double value);

// Zipf distribution over [0, n): P(i) ~ 1 / (i + 1)^exponent, from 64 uniform
// bits.
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
