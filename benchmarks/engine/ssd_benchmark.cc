// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measures a table of which only a part fits in memory: one table, Adagrad, one
// id per sample, forward, backward and update. The same run compares all rows
// in memory with a part in memory and the others in a file.
//
//   ssd_benchmark --path=DIRECTORY [--rows=20000000] [--dim=64] [--batch=65536]
//                 [--part=0.1] [--steps=60] [--warm=400] [--threads=2] [--lru]
//                 [--only=zipf|uniform] [--skip_memory] [--skip_ahead]
//
// TF_SSDHASH_IO_SCHEME=directio bypasses the page cache. 'ahead' is the same
// step while another thread prefetches the next step's rows into memory.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/engine/bench_util.h"
#include "kernels/engine/base/hash.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/lookup/presence.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/testing/thread_pool.h"

namespace {

using ev::Span;
using ev::bench::Check;
using ev::bench::Now;
using ev::bench::ProcessSeconds;

struct Config {
  std::string path, only;
  int64_t rows = 20000000, dim = 64, batch = 65536;
  int steps = 60, warm = 400, threads = 2;
  double part = 0.1;
  bool lru = false, skip_memory = false, skip_ahead = false;
};

int64_t KeyOf(int64_t rank) {
  return static_cast<int64_t>(ev::MixKey(rank) >> 1);
}

class Bench {
 public:
  Bench(const Config& config, bool on_ssd)
      : config_(config), on_ssd_(on_ssd), pool_(config.threads) {
    ev::TableOptions options;
    options.name = "bench";
    options.dim = config.dim;
    const int64_t row_bytes = config.dim * 2 * sizeof(float);
    if (on_ssd) {
      options.storage = ev::RowStorage::kDramSsd;
      options.path = config.path;
      options.memory_bytes =
          static_cast<int64_t>(config.rows * config.part * (row_bytes + 20));
      options.tier_strategy =
          config.lru ? ev::CacheStrategy::kLru : ev::CacheStrategy::kLfu;
    }
    table_.reset(new ev::EmbeddingTable(options));
    Check(table_->Initialize(std::vector<float>(config.dim, 0.01f), 1));
    Check(table_->EnsureSlots(slots_[0], nullptr));
    const double begin = Now();
    std::vector<int64_t> keys(config.batch);
    const std::vector<float> values(config.batch * config.dim, 0.01f);
    const std::vector<const float*> slots = {values.data()};
    for (int64_t at = 0; at < config.rows; at += config.batch) {
      keys.resize(std::min(config.batch, config.rows - at));
      // The hottest rows last, an order in which tables are not filled in
      // practice.
      for (size_t i = 0; i < keys.size(); ++i) {
        keys[i] = KeyOf(config.rows - 1 - (at + static_cast<int64_t>(i)));
      }
      Check(table_->WriteRows(keys, slots_[0], values.data(), slots, nullptr, 0,
                              &pool_));
    }
    std::printf("  filled in %.1f s\n", Now() - begin);
    for (int64_t i = 0; i <= config.batch; ++i) splits_.push_back(i);
    pooled_.resize(config.batch * config.dim);
    grads_.assign(config.batch * config.dim, 1e-4f);
    sums_.resize(config.batch * config.dim);
  }

  std::vector<int64_t> Ids(const ev::bench::ZipfSampler* zipf) {
    std::vector<int64_t> ids(config_.batch);
    for (int64_t& id : ids) {
      id = KeyOf(zipf != nullptr
                     ? zipf->Sample(random_())
                     : static_cast<int64_t>(random_() % config_.rows));
    }
    return ids;
  }

  void Step(const std::vector<int64_t>& ids) {
    ev::PooledInput in;
    in.table = table_.get();
    in.batch_size = in.num_ids = config_.batch;
    in.ids64 = ids.data();
    in.row_splits = splits_.data();
    std::vector<float*> outputs = {pooled_.data()};
    std::shared_ptr<const ev::LookupPlan> plan;
    Check(ev::PooledForward({&in, 1}, {}, outputs, &pool_, &plan));
    std::vector<const float*> grads = {grads_.data()};
    std::vector<float*> sums = {sums_.data()};
    Check(ev::PooledBackward(*plan, grads, sums, &pool_));
    ev::UpdateInput update;
    update.table = table_.get();
    Check(plan->UniqueKeys(0, &update.keys));
    update.grads = sums_.data();
    update.plan = plan.get();
    const std::vector<float> rate = {0.01f};
    Check(ev::ApplyRule("Adagrad", rate, {&update, 1}, slots_, 1, &pool_));
    unique_ += static_cast<int64_t>(update.keys.size());
  }

  // Returns the median milliseconds of a step.
  double Measure(const char* what, const ev::bench::ZipfSampler* zipf,
                 bool ahead) {
    std::vector<int64_t> ids = Ids(zipf);
    std::vector<double> times;
    ev::TierStats before;
    double cpu = 0;
    for (int s = 0; s < config_.warm + config_.steps; ++s) {
      if (s == config_.warm) {
        before = table_->tier_stats();
        unique_ = 0;
      }
      std::vector<int64_t> next = Ids(zipf);
      const double begin = Now(), cpu_begin = ProcessSeconds();
      std::thread reader;
      if (ahead) {
        reader = std::thread([&] { Check(ev::Prefetch(table_.get(), next)); });
      }
      Step(ids);
      if (reader.joinable()) reader.join();
      const double took = Now() - begin;
      if (s >= config_.warm) {
        times.push_back(1e3 * took);
        cpu += 1e3 * (ProcessSeconds() - cpu_begin);
      }
      ids.swap(next);
    }
    std::sort(times.begin(), times.end());
    const double median = times[times.size() / 2];
    std::printf(
        "  %-16s %7.1f ms per step (p10 %.1f, p90 %.1f), processors %.1f ms, "
        "%.0f distinct rows",
        what, median, times[times.size() / 10], times[times.size() * 9 / 10],
        cpu / config_.steps, static_cast<double>(unique_) / config_.steps);
    if (on_ssd_) {
      const ev::TierStats after = table_->tier_stats();
      std::printf(
          ", %.0f read, %.2f MB written, %.1f %% of uses found in memory, "
          "file %.2f GB",
          static_cast<double>(after.misses - before.misses) / config_.steps,
          1e-6 * (after.written_bytes - before.written_bytes) / config_.steps,
          100.0 * (after.hits - before.hits) /
              (after.hits - before.hits + after.misses - before.misses),
          1e-9 * after.stored_bytes);
    }
    std::printf("\n");
    std::fflush(stdout);
    return median;
  }

 private:
  const Config config_;
  const bool on_ssd_;
  ev::testing::ThreadPool pool_;
  std::unique_ptr<ev::EmbeddingTable> table_;
  const std::vector<std::vector<ev::SlotSpec>> slots_ = {
      {{"accumulator", 0.1f}}};
  std::mt19937_64 random_{11};
  std::vector<int64_t> splits_;
  std::vector<float> pooled_, grads_, sums_;
  int64_t unique_ = 0;
};

bool Parse(int argc, char** argv, Config* config) {
  return ev::bench::Flags()
             .Add("path", &config->path)
             .Add("only", &config->only)
             .Add("rows", &config->rows)
             .Add("dim", &config->dim)
             .Add("batch", &config->batch)
             .Add("steps", &config->steps)
             .Add("warm", &config->warm)
             .Add("threads", &config->threads)
             .Add("part", &config->part)
             .Add("lru", &config->lru)
             .Add("skip_memory", &config->skip_memory)
             .Add("skip_ahead", &config->skip_ahead)
             .Parse(argc, argv) &&
         !config->path.empty() && config->steps > 0;
}

}  // namespace

int main(int argc, char** argv) {
  Config config;
  if (!Parse(argc, argv, &config)) {
    std::fprintf(stderr, "see the head of ssd_benchmark.cc for the flags\n");
    return 1;
  }
  ev::bench::PrintMachine();
  const char* scheme = std::getenv("TF_SSDHASH_IO_SCHEME");
  std::printf(
      "%lld rows of dim %lld with one slot, batch %lld, %.0f %% of the "
      "rows in memory, %s, %s\n",
      static_cast<long long>(config.rows), static_cast<long long>(config.dim),
      static_cast<long long>(config.batch), 100 * config.part,
      config.lru ? "LRU" : "LFU",
      scheme != nullptr && std::strcmp(scheme, "directio") == 0
          ? "around the page cache"
          : "page cache");
  const ev::bench::ZipfSampler zipf(config.rows, 1.05);
  double memory[2] = {0, 0};
  const bool wanted[2] = {config.only != "uniform", config.only != "zipf"};
  if (!config.skip_memory) {
    std::printf("all in memory\n");
    Config quick = config;
    quick.warm = 20;
    Bench bench(quick, false);
    if (wanted[0]) memory[0] = bench.Measure("Zipf 1.05", &zipf, false);
    if (wanted[1]) memory[1] = bench.Measure("uniform", nullptr, false);
  }
  std::printf("memory and file\n");
  Bench bench(config, true);
  for (int k = 0; k < 2; ++k) {
    if (!wanted[k]) continue;
    for (const bool ahead : {false, true}) {
      if (ahead && config.skip_ahead) continue;
      const std::string what = std::string(k == 0 ? "Zipf 1.05" : "uniform") +
                               (ahead ? ", ahead" : "");
      const double took =
          bench.Measure(what.c_str(), k == 0 ? &zipf : nullptr, ahead);
      if (memory[k] > 0) {
        std::printf("  %-16s %.2f times\n", "", took / memory[k]);
      }
    }
  }
  return 0;
}
