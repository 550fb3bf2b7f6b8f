// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measures a step of one table in GPU memory, CPU memory and a file
// (HBM_DRAM_SSDHASH), by the share of its ids whose rows are in one of the two
// memories. One id per sample, Adagrad.
//
//   three_tiers_benchmark --path=DIRECTORY [--rows=8000000] [--dim=64]
//       [--batch=65536] [--gpu_part=0.05] [--cpu_part=0.15] [--steps=40]
//       [--warm=60] [--threads=8] [--lru] [--shares=90,99,99.9] [--ahead]
//       [--only_prefetch] [--skip=hbm]
//
// The given percentage of ids are of hot rows, by Zipf 1.05, of which there are
// half as many as fit into both memories. The others are of all other
// rows, uniformly. The tiers of a step's ids are counted before the step, with
// --ahead before they are prefetched. 'hbm' is
// the same step with all rows in GPU memory. --ahead: another thread prefetches
// the rows of the next step. --only_prefetch: a step prefetches its rows and
// does nothing else, so its time is that of the moves. Another thread measures
// how long they keep other calls of the table waiting.
// TF_SSDHASH_IO_SCHEME=directio bypasses the page cache. Needs a GPU.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/engine/bench_util.h"
#include "benchmarks/engine/one_table.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/presence.h"

namespace {

using ev::bench::Check;
using ev::bench::Now;
using ev::bench::OneTable;

struct Config {
  std::string path, skip, shares = "90,99,99.9";
  int64_t rows = 8000000, dim = 64, batch = 65536;
  double gpu_part = 0.05, cpu_part = 0.15;
  int steps = 40, warm = 60, threads = 8;
  bool lru = false, ahead = false, only_prefetch = false;
};

struct Result {
  double median = 0, p10 = 0, p90 = 0;  // milliseconds of a step
  double distinct = 0;
  double in_tier[3] = {0, 0, 0};  // percent of ids
  double from_file = 0;           // rows read
  double others_wait = 0;         // milliseconds per step
  double us_per_miss = 0;         // of the steps
  double down_mb = 0, file_mb = 0;
};

// Calls of a table that take next to no time unless they have to wait.
class OtherCalls {
 public:
  OtherCalls(ev::EmbeddingTable* table, bool runs) {
    if (!runs) return;
    thread_ = std::thread([this, table] {
      const std::vector<int64_t> key = {ev::bench::KeyOf(0)};
      while (!stop_) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        int32_t tier;
        const double begin = Now();
        Check(ev::FindTiers(*table, key, &tier));
        nanoseconds_ += static_cast<int64_t>(1e9 * (Now() - begin));
      }
    });
  }
  ~OtherCalls() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void Reset() { nanoseconds_ = 0; }
  double seconds() const { return 1e-9 * nanoseconds_; }

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int64_t> nanoseconds_{0};
  std::thread thread_;
};

class Bench {
 public:
  Bench(const Config& config, const ev::TableOptions& options)
      : config_(config),
        hot_rows_(std::max<int64_t>(
            1, static_cast<int64_t>(0.5 * config.rows *
                                    (config.gpu_part + config.cpu_part)))),
        zipf_(hot_rows_, 1.05),
        steps_(options, config.rows, config.batch, config.threads) {}

  Result Measure(double percent, bool has_tiers) {
    std::vector<int64_t> ids = Ids(percent);
    std::vector<double> times;
    Result result;
    ev::TierStats before, before_below;
    OtherCalls others(steps_.table(), config_.only_prefetch && has_tiers);
    for (int s = 0; s < config_.warm + config_.steps; ++s) {
      if (s == config_.warm) {
        before = steps_.table()->tier_stats();
        before_below = steps_.table()->tier_stats_below();
        steps_.Reset();
        others.Reset();
      }
      std::vector<int64_t> next = Ids(percent);
      if (s + 1 >= config_.warm && s + 1 < config_.warm + config_.steps &&
          has_tiers) {
        CountTiers(next, &result);
      }
      const double begin = Now();
      std::thread reader;
      if (config_.ahead && has_tiers) {
        reader = std::thread([&] { Prefetch(next); });
      }
      if (config_.only_prefetch && has_tiers) {
        Prefetch(ids);
      } else {
        steps_.Step(ids);
      }
      if (reader.joinable()) reader.join();
      if (s >= config_.warm) times.push_back(1e3 * (Now() - begin));
      ids.swap(next);
    }
    std::sort(times.begin(), times.end());
    const double steps = config_.steps;
    result.others_wait = 1e3 * others.seconds() / steps;
    result.median = times[times.size() / 2];
    result.p10 = times[times.size() / 10];
    result.p90 = times[times.size() * 9 / 10];
    result.distinct = static_cast<double>(steps_.distinct_rows()) / steps;
    const ev::TierStats after = steps_.table()->tier_stats();
    const ev::TierStats below = steps_.table()->tier_stats_below();
    result.from_file =
        static_cast<double>(below.misses - before_below.misses) / steps;
    result.us_per_miss = 1e3 *
                         std::accumulate(times.begin(), times.end(), 0.0) /
                         std::max<int64_t>(1, after.misses - before.misses);
    result.down_mb =
        1e-6 * static_cast<double>(after.written_bytes - before.written_bytes) /
        steps;
    result.file_mb =
        1e-6 *
        static_cast<double>(below.written_bytes - before_below.written_bytes) /
        steps;
    return result;
  }

 private:
  std::vector<int64_t> Ids(double percent) {
    std::vector<int64_t> ids(config_.batch);
    for (int64_t& id : ids) {
      const double draw = 100 * (random_() >> 11) * 0x1.0p-53;
      const int64_t row =
          draw < percent
              ? zipf_.Sample(random_())
              : hot_rows_ + static_cast<int64_t>(random_() %
                                                 (config_.rows - hot_rows_));
      id = ev::bench::KeyOf(row);
    }
    return ids;
  }

  void Prefetch(const std::vector<int64_t>& ids) {
    Check(ev::Prefetch(steps_.table(), ids, steps_.parallel()));
  }

  void CountTiers(const std::vector<int64_t>& ids, Result* result) {
    std::vector<int32_t> tiers(ids.size());
    Check(ev::FindTiers(*steps_.table(), ids, tiers.data()));
    for (const int32_t tier : tiers) {
      if (tier >= 0) {
        result->in_tier[tier] += 100.0 / (ids.size() * config_.steps);
      }
    }
  }

  const Config config_;
  const int64_t hot_rows_;
  const ev::bench::ZipfSampler zipf_;
  OneTable steps_;
  std::mt19937_64 random_{11};
};

bool Parse(int argc, char** argv, Config* config) {
  return ev::bench::Flags()
             .Add("path", &config->path)
             .Add("skip", &config->skip)
             .Add("shares", &config->shares)
             .Add("rows", &config->rows)
             .Add("dim", &config->dim)
             .Add("batch", &config->batch)
             .Add("gpu_part", &config->gpu_part)
             .Add("cpu_part", &config->cpu_part)
             .Add("steps", &config->steps)
             .Add("warm", &config->warm)
             .Add("threads", &config->threads)
             .Add("lru", &config->lru)
             .Add("ahead", &config->ahead)
             .Add("only_prefetch", &config->only_prefetch)
             .Parse(argc, argv) &&
         !config->path.empty() && config->steps > 0 && config->warm > 0 &&
         config->rows > 0 && config->gpu_part + config->cpu_part < 1;
}

std::vector<double> Shares(const std::string& text) {
  std::vector<double> shares;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.size(), text.find(',', begin));
    shares.push_back(std::atof(text.substr(begin, end - begin).c_str()));
    begin = end + 1;
  }
  return shares;
}

}  // namespace

int main(int argc, char** argv) {
  Config config;
  if (!Parse(argc, argv, &config)) {
    std::fprintf(stderr,
                 "see the head of three_tiers_benchmark.cc for the flags\n");
    return 1;
  }
  ev::bench::PrintMachine();
  const char* const scheme = std::getenv("TF_SSDHASH_IO_SCHEME");
  std::printf(
      "%lld rows of dim %lld with one slot, batch %lld, %g %% of the rows in "
      "GPU memory, %g %% in CPU memory, %s, %d threads, %s%s\n",
      static_cast<long long>(config.rows), static_cast<long long>(config.dim),
      static_cast<long long>(config.batch), 100 * config.gpu_part,
      100 * config.cpu_part, config.lru ? "LRU" : "LFU", config.threads,
      scheme == nullptr ? "page cache" : scheme, config.ahead ? ", ahead" : "");
  const std::vector<double> shares = Shares(config.shares);
  std::vector<double> on_gpu(shares.size());
  ev::TableOptions options;
  options.name = "bench";
  options.dim = config.dim;
  options.tier_strategy =
      config.lru ? ev::CacheStrategy::kLru : ev::CacheStrategy::kLfu;
  if (config.skip != "hbm") {
    std::printf("rows in GPU memory\n");
    options.storage = ev::RowStorage::kHbm;
    Config quick = config;
    quick.warm = std::min(config.warm, 10);
    Bench bench(quick, options);
    for (size_t k = 0; k < shares.size(); ++k) {
      on_gpu[k] = bench.Measure(shares[k], false).median;
    }
  }
  std::printf("rows in GPU memory, CPU memory and a file\n");
  const int64_t row_bytes = OneTable::RowBytes(config.dim);
  options.storage = ev::RowStorage::kHbmDramSsd;
  options.path = config.path;
  options.memory_bytes =
      static_cast<int64_t>(config.rows * config.gpu_part) * row_bytes;
  options.second_memory_bytes =
      static_cast<int64_t>(config.rows * config.cpu_part) * (row_bytes + 20);
  Bench bench(config, options);
  std::printf(
      "| ids of hot rows, %% | in GPU, CPU memory, file, %% of ids | distinct "
      "rows | rows from the file | MB from the GPU, to the file | ms per step "
      "(p10, p90) | us per miss | other calls wait, ms per step | all in GPU "
      "memory, ms |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (size_t k = 0; k < shares.size(); ++k) {
    const Result r = bench.Measure(shares[k], true);
    std::printf(
        "| %g | %.2f, %.2f, %.2f | %.0f | %.0f | %.2f, %.2f | %.2f (%.2f, "
        "%.2f) | %.2f | %.2f | %.2f |\n",
        shares[k], r.in_tier[0], r.in_tier[1], r.in_tier[2], r.distinct,
        r.from_file, r.down_mb, r.file_mb, r.median, r.p10, r.p90,
        r.us_per_miss, r.others_wait, on_gpu[k]);
    std::fflush(stdout);
  }
  return 0;
}
