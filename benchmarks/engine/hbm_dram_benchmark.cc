// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measures a table of which only a part fits in GPU memory: one table, Adagrad,
// one id per sample, pooled lookup and update by the samples' gradients. The
// same run compares all rows in CPU memory, all rows in GPU memory, and a part
// in GPU memory with the others in CPU memory.
//
//   hbm_dram_benchmark [--rows=4000000] [--dim=64] [--batch=65536] [--part=0.1]
//                      [--steps=40] [--warm=60] [--threads=8] [--lru]
//                      [--only=zipf|uniform] [--skip=dram,hbm]
//
// Needs a GPU. 'ahead' is the same step while another thread prefetches the
// next step's rows into GPU memory. 'lookup' is a lookup without an update.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/engine/bench_util.h"
#include "benchmarks/engine/one_table.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/presence.h"

namespace {

using ev::RowStorage;
using ev::bench::Check;
using ev::bench::Now;

struct Config {
  std::string only, skip;
  int64_t rows = 4000000, dim = 64, batch = 65536;
  int steps = 40, warm = 60, threads = 8;
  double part = 0.1;
  bool lru = false;
};

ev::TableOptions Options(const Config& config, RowStorage storage) {
  ev::TableOptions options;
  options.name = "bench";
  options.dim = config.dim;
  options.storage = storage;
  options.memory_bytes = static_cast<int64_t>(config.rows * config.part) *
                         ev::bench::OneTable::RowBytes(config.dim);
  options.tier_strategy =
      config.lru ? ev::CacheStrategy::kLru : ev::CacheStrategy::kLfu;
  return options;
}

enum Mode { kAlone, kAhead, kLookup };
constexpr int kModes = 3;
const char* const kModeNames[] = {"", ", ahead", ", lookup"};

class Bench {
 public:
  Bench(const Config& config, RowStorage storage)
      : config_(config),
        steps_(Options(config, storage), config.rows, config.batch,
               config.threads) {}

  std::vector<int64_t> Ids(const ev::bench::ZipfSampler* zipf) {
    std::vector<int64_t> ids(config_.batch);
    for (int64_t& id : ids) {
      id = ev::bench::KeyOf(
          zipf != nullptr ? zipf->Sample(random_())
                          : static_cast<int64_t>(random_() % config_.rows));
    }
    return ids;
  }

  // Returns the median milliseconds of a step.
  double Measure(const char* what, const ev::bench::ZipfSampler* zipf,
                 Mode mode) {
    std::vector<int64_t> ids = Ids(zipf);
    std::vector<double> times;
    ev::TierStats before;
    for (int s = 0; s < config_.warm + config_.steps; ++s) {
      if (s == config_.warm) {
        before = steps_.table()->tier_stats();
        steps_.Reset();
      }
      std::vector<int64_t> next = Ids(zipf);
      const double begin = Now();
      std::thread reader;
      if (mode == kAhead) {
        reader =
            std::thread([&] { Check(ev::Prefetch(steps_.table(), next)); });
      }
      steps_.Step(ids, /*trains=*/mode != kLookup);
      if (reader.joinable()) reader.join();
      if (s >= config_.warm) times.push_back(1e3 * (Now() - begin));
      ids.swap(next);
    }
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2];
    std::printf(
        "  %-16s %7.2f ms per step (p10 %.2f, p90 %.2f), lookup %.2f, %.0f "
        "distinct rows",
        what, median, times[times.size() / 10], times[times.size() * 9 / 10],
        1e3 * steps_.lookup_seconds() / config_.steps,
        static_cast<double>(steps_.distinct_rows()) / config_.steps);
    const ev::TierStats after = steps_.table()->tier_stats();
    if (after.memory_rows > 0) {
      const double misses =
          static_cast<double>(after.misses - before.misses) / config_.steps;
      std::printf(
          ", %.0f ids read in CPU memory (%.1f M/s), %.2f MB moved there",
          misses, 1e-3 * misses / median,
          1e-6 * (after.written_bytes - before.written_bytes) / config_.steps);
    }
    std::printf("\n");
    std::fflush(stdout);
    return median;
  }

 private:
  const Config config_;
  ev::bench::OneTable steps_;
  std::mt19937_64 random_{11};
};

bool Parse(int argc, char** argv, Config* config) {
  return ev::bench::Flags()
             .Add("only", &config->only)
             .Add("skip", &config->skip)
             .Add("rows", &config->rows)
             .Add("dim", &config->dim)
             .Add("batch", &config->batch)
             .Add("steps", &config->steps)
             .Add("warm", &config->warm)
             .Add("threads", &config->threads)
             .Add("part", &config->part)
             .Add("lru", &config->lru)
             .Parse(argc, argv) &&
         config->steps > 0 && config->rows > 0;
}

}  // namespace

int main(int argc, char** argv) {
  Config config;
  if (!Parse(argc, argv, &config)) {
    std::fprintf(stderr,
                 "see the head of hbm_dram_benchmark.cc for the flags\n");
    return 1;
  }
  ev::bench::PrintMachine();
  std::printf(
      "%lld rows of dim %lld with one slot, batch %lld, %.0f %% of the rows in "
      "GPU memory, %s, %d threads\n",
      static_cast<long long>(config.rows), static_cast<long long>(config.dim),
      static_cast<long long>(config.batch), 100 * config.part,
      config.lru ? "LRU" : "LFU", config.threads);
  const ev::bench::ZipfSampler zipf(config.rows, 1.05);
  struct {
    RowStorage storage;
    const char* name;
    const char* rows_in;
    double ms[2][kModes];  // [Zipf, uniform][mode]; 0: not measured
  } cases[] = {
      {RowStorage::kDram, "dram", "CPU memory", {}},
      {RowStorage::kHbm, "hbm", "GPU memory", {}},
      {RowStorage::kHbmDram, "hbm_dram", "both", {}},
  };
  const bool wanted[2] = {config.only != "uniform", config.only != "zipf"};
  for (auto& one : cases) {
    const bool is_both = one.storage == RowStorage::kHbmDram;
    if (!is_both &&
        ("," + config.skip + ",").find("," + std::string(one.name) + ",") !=
            std::string::npos) {
      continue;
    }
    std::printf("rows in %s\n", one.rows_in);
    Config quick = config;
    if (!is_both) quick.warm = std::min(config.warm, 10);
    Bench bench(quick, one.storage);
    for (int k = 0; k < 2; ++k) {
      for (int mode = 0; wanted[k] && mode < kModes; ++mode) {
        if (mode == kAhead && !is_both) continue;
        const std::string what =
            std::string(k == 0 ? "Zipf 1.05" : "uniform") + kModeNames[mode];
        one.ms[k][mode] = bench.Measure(what.c_str(), k == 0 ? &zipf : nullptr,
                                        static_cast<Mode>(mode));
      }
    }
  }
  std::printf(
      "| ids | CPU memory, ms | GPU memory, ms | both, ms | ahead, ms | lookup "
      "in GPU memory, ms | in both, ms |\n"
      "| --- | --- | --- | --- | --- | --- | --- |\n");
  for (int k = 0; k < 2; ++k) {
    if (!wanted[k]) continue;
    std::printf("| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n",
                k == 0 ? "Zipf 1.05" : "uniform", cases[0].ms[k][kAlone],
                cases[1].ms[k][kAlone], cases[2].ms[k][kAlone],
                cases[2].ms[k][kAhead], cases[1].ms[k][kLookup],
                cases[2].ms[k][kLookup]);
  }
  return 0;
}
