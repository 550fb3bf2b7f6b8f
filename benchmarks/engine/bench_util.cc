// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "benchmarks/engine/bench_util.h"

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "kernels/engine/base/hash.h"
#include "kernels/engine/base/pages.h"
#include "kernels/engine/base/prefetch.h"

namespace ev {
namespace bench {
namespace {

std::atomic<double> sink;

}  // namespace

double ThreadSeconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

double ProcessSeconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) +
         static_cast<double>(now.tv_nsec) * 1e-9;
}

double Now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}

void Use(double value) { sink.store(value, std::memory_order_relaxed); }

Flags& Flags::Add(const std::string& name, bool* value) {
  set_[name] = [value](const char* text) {
    *value = std::strcmp(text, "0") != 0;
  };
  return *this;
}

Flags& Flags::Add(const std::string& name, int* value) {
  set_[name] = [value](const char* text) { *value = std::atoi(text); };
  return *this;
}

Flags& Flags::Add(const std::string& name, int64_t* value) {
  set_[name] = [value](const char* text) { *value = std::atoll(text); };
  return *this;
}

Flags& Flags::Add(const std::string& name, double* value) {
  set_[name] = [value](const char* text) { *value = std::atof(text); };
  return *this;
}

Flags& Flags::Add(const std::string& name, std::string* value) {
  set_[name] = [value](const char* text) { *value = text; };
  return *this;
}

bool Flags::Parse(int argc, char** argv) const {
  for (int i = 1; i < argc; ++i) {
    const char* const equals = std::strchr(argv[i], '=');
    const std::string argument(argv[i]);
    const auto flag = set_.find(argument.compare(0, 2, "--") == 0
                                    ? argument.substr(2, argument.find('=') - 2)
                                    : "");
    if (flag == set_.end()) {
      std::fprintf(stderr, "unknown argument %s; known:", argv[i]);
      for (const auto& known : set_) {
        std::fprintf(stderr, " --%s", known.first.c_str());
      }
      std::fprintf(stderr, "\n");
      return false;
    }
    flag->second(equals == nullptr ? "" : equals + 1);
  }
  return true;
}

bool ParseFlags(int argc, char** argv, Settings* settings) {
  return Flags()
      .Add("full", &settings->full)
      .Add("small", &settings->small)
      .Add("seconds", &settings->seconds)
      .Add("only", &settings->only)
      .Parse(argc, argv);
}

void PrintMachine() {
  std::string line, model = "unknown processor";
  std::ifstream cpuinfo("/proc/cpuinfo");
  while (std::getline(cpuinfo, line)) {
    if (line.compare(0, 10, "model name") == 0) {
      model = line.substr(line.find(':') + 2);
      break;
    }
  }
  std::string pages = "unknown";
  std::ifstream thp("/sys/kernel/mm/transparent_hugepage/enabled");
  std::getline(thp, pages);
  std::printf("machine: %s, %u cores; huge pages: %s\n", model.c_str(),
              std::thread::hardware_concurrency(), pages.c_str());
}

double RandomLineProbe(size_t bytes, int threads, double seconds) {
  const size_t lines = bytes / kCacheLine;
  char* area = static_cast<char*>(MapPages(bytes, PageKind::kHuge));
  if (area == nullptr || lines == 0) return 0;
  for (size_t i = 0; i < bytes; i += kSmallPage) area[i] = 1;
  std::vector<double> rates(threads);
  const auto probe = [&](int t) {
    // The addresses are generated beforehand, like keys, so that the probe does
    // not include the cost of generating them.
    const size_t n = 8 << 20;  // far more lines than caches hold
    const size_t ahead = 32;
    std::vector<uint32_t> which(n + ahead);
    uint64_t seed = static_cast<uint64_t>(t) << 40, sum = 0;
    for (uint32_t& line : which) {
      line = FastRange(
          static_cast<uint32_t>(MixKey(static_cast<int64_t>(++seed)) >> 32),
          static_cast<uint32_t>(lines));
    }
    int64_t done = 0;
    const double start = ThreadSeconds();
    double elapsed = 0;
    do {
      for (size_t i = 0; i < n; ++i) {
        PrefetchLine(area + size_t{which[i + ahead]} * kCacheLine);
        sum += *reinterpret_cast<const uint64_t*>(area + size_t{which[i]} *
                                                             kCacheLine);
      }
      done += static_cast<int64_t>(n);
      elapsed = ThreadSeconds() - start;
    } while (elapsed < seconds);
    Use(static_cast<double>(sum));
    rates[t] = static_cast<double>(done) / elapsed;
  };
  std::vector<std::thread> running;
  for (int t = 1; t < threads; ++t) running.emplace_back(probe, t);
  probe(0);
  for (std::thread& thread : running) thread.join();
  UnmapPages(area, bytes);
  double total = 0;
  for (double rate : rates) total += rate;
  return total;
}

void Report(const char* what, double keys_per_second, double lines_per_key,
            double probe) {
  std::printf("  %-34s %7.1f M keys/s", what, keys_per_second / 1e6);
  if (probe > 0) {
    std::printf("  %5.0f %% of the probe",
                100 * keys_per_second * lines_per_key / probe);
  }
  std::printf("\n");
  std::fflush(stdout);
}

ZipfSampler::ZipfSampler(int64_t n, double exponent) : cumulative_(n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    sum += std::pow(static_cast<double>(i + 1), -exponent);
    cumulative_[i] = sum;
  }
  for (double& c : cumulative_) c /= sum;
}

int64_t ZipfSampler::Sample(uint64_t bits) const {
  const double u = static_cast<double>(bits >> 11) * 0x1p-53;
  const auto it = std::upper_bound(cumulative_.begin(), cumulative_.end(), u);
  return std::min<int64_t>(it - cumulative_.begin(),
                           static_cast<int64_t>(cumulative_.size()) - 1);
}

}  // namespace bench
}  // namespace ev
