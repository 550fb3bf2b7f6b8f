// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measures the sparse part of a training step. 26 tables, batch 4096: forward
// (dedup, find, pool), backward (sum per row), update (Adagrad), each in
// milliseconds and in nanoseconds per id. For comparison: the time that the
// machine needs to touch the same number of random cache lines.
//
//   step_benchmark [--threads=2] [--steps=20] [--only=zipf_hot1_dim16]
//                  [--rows=N] [--tables=26] [--batch=4096]
//                  [--storage=dram|hbm|hbm_dram]
//                  [--gpu_part=0.5: of the rows, in GPU memory with hbm_dram]
//                  [--update=sums|samples]
//                  [--type=float32|float16|bfloat16: of outputs and gradients]
//                  [--value_type=the same: of the values in rows]
//                  [--policy=none|counter|bloom|lru|lfu] [--newcomers=0.0]
//                  [--changes=1: record them, as for incremental checkpoints]
//                  [--probe_mib=2048: memory whose random lines are timed]
//
// --storage=hbm: rows in GPU memory. A session then updates as with
// --update=samples.
//
// --newcomers: the part of the ids whose keys occur only once. --policy: a
// filter that admits a key at its third occurrence, or an eviction policy whose
// capacity is exactly the number of rows before the clock starts, so that each
// newcomer evicts one.
//
// Uniform ids are drawn from 2 M rows per table at dim 16, and from a quarter
// of that at dim 64; Zipf 1.05 ids from 200,000 rows. All rows exist before the
// clock starts.

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "benchmarks/engine/bench_util.h"
#include "kernels/engine/base/transfer_memory.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/testing/thread_pool.h"

namespace {

using ev::Span;
using ev::bench::Check;
using ev::bench::Median;
using ev::bench::Now;
using ev::bench::ProcessSeconds;

struct Config {
  bool zipf;
  int hot;
  int64_t dim;
  int64_t rows;
  int tables;
  int64_t batch;
  int steps;
  ev::RowStorage storage;
  double gpu_part;  // share of the rows in GPU memory, for kHbmDram
  std::string policy;
  double newcomers;
  bool changes;
  size_t probe_bytes;
  bool by_samples;     // the update takes the samples' gradients
  ev::FloatType type;  // of outputs and gradients
  ev::FloatType value_type;

  std::string name() const {
    return std::string(zipf ? "zipf" : "uniform") + "_hot" +
           std::to_string(hot) + "_dim" + std::to_string(dim);
  }
};

class Sampler {
 public:
  Sampler(bool zipf, int64_t rows) : rows_(rows) {
    if (!zipf) return;
    cdf_.resize(rows);
    double sum = 0;
    for (int64_t r = 0; r < rows; ++r) {
      sum += std::pow(static_cast<double>(r + 1), -1.05);
      cdf_[r] = sum;
    }
    for (double& c : cdf_) c /= sum;
    permutation_.resize(rows);
    std::iota(permutation_.begin(), permutation_.end(), 0);
    std::mt19937_64 random(7);
    std::shuffle(permutation_.begin(), permutation_.end(), random);
  }
  int64_t operator()(std::mt19937_64* random) const {
    if (cdf_.empty()) return (*random)() % rows_;
    const double x = std::uniform_real_distribution<double>(0, 1)(*random);
    const size_t rank =
        std::lower_bound(cdf_.begin(), cdf_.end(), x) - cdf_.begin();
    return permutation_[std::min<size_t>(rank, rows_ - 1)];
  }

 private:
  const int64_t rows_;
  std::vector<double> cdf_;
  std::vector<int64_t> permutation_;
};

// Returns the nanoseconds of one random access to 'lines' adjacent cache lines,
// by all threads together, read-modify-write or read only, in an area of
// 'bytes' bytes. Every call uses the same area.
double ProbeNs(ev::Parallel* parallel, size_t bytes, int lines, bool write) {
  static char* memory = [&] {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, bytes, MADV_HUGEPAGE);
    std::memset(p, 1, bytes);
    return static_cast<char*>(p);
  }();
  const int64_t n = int64_t{1} << 20, tasks = 64;
  const uint64_t blocks = bytes / 64 / lines;
  const double start = Now();
  parallel->For(tasks, [&](int64_t task) {
    uint64_t x = 88172645463325252ull + task * 7919;
    float sum = 0;
    for (int64_t i = 0; i < n / tasks; ++i) {
      x ^= x << 13;
      x ^= x >> 7;
      x ^= x << 17;
      float* p = reinterpret_cast<float*>(
          memory + (((x >> 32) * blocks) >> 32) * 64 * lines);
      for (int l = 0; l < lines; ++l) {
        if (write) {
          p[l * 16] += 1.0f;
        } else {
          sum += p[l * 16];
        }
      }
    }
    volatile float sink = sum;
    (void)sink;
  });
  return (Now() - start) * 1e9 / n;
}

// Memory for the engine's outputs, as a framework would allocate it: with a
// device, memory that the device can access directly.
class Floats {
 public:
  Floats() {}
  ~Floats() {
    if (transfer_ != nullptr) ev::FreeTransferMemory(transfer_);
  }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;

  void Resize(size_t n) {
    transfer_ = ev::AllocateTransferMemory(n * sizeof(float));
    if (transfer_ == nullptr) ordinary_.resize(n);
  }
  float* data() {
    return transfer_ != nullptr ? static_cast<float*>(transfer_)
                                : ordinary_.data();
  }

 private:
  void* transfer_ = nullptr;
  std::vector<float> ordinary_;
};

void SetPolicy(const Config& c, ev::TableOptions* options) {
  if (c.policy == "counter" || c.policy == "bloom") {
    options->admission.filter = c.policy == "bloom"
                                    ? ev::AdmissionOptions::Filter::kBloom
                                    : ev::AdmissionOptions::Filter::kCounter;
    options->admission.threshold = 3;
    options->admission.max_keys = 1 << 20;
    options->admission.false_positive = 0.01;
    options->admission.counter_bits = 8;
  } else if (c.policy == "lru" || c.policy == "lfu") {
    options->capacity.max_rows = c.rows;
    options->capacity.strategy =
        c.policy == "lru" ? ev::CacheStrategy::kLru : ev::CacheStrategy::kLfu;
  }
}

ev::FloatType TypeOf(const std::string& name) {
  return name == "float16"    ? ev::FloatType::kFloat16
         : name == "bfloat16" ? ev::FloatType::kBFloat16
                              : ev::FloatType::kFloat32;
}

struct Batch {
  std::vector<std::vector<int64_t>> ids;  // [tables][batch * hot]
};

void Run(const Config& c, ev::Parallel* parallel) {
  const Sampler sampler(c.zipf, c.rows);
  std::vector<std::shared_ptr<ev::EmbeddingTable>> tables;
  const std::vector<ev::SlotSpec> slot = {ev::SlotSpec{"Adagrad", 0.1f}};
  for (int t = 0; t < c.tables; ++t) {
    ev::TableOptions options;
    options.name = "table_" + std::to_string(t);
    options.dim = c.dim;
    options.storage = c.storage;
    options.value_type = c.value_type;
    // A row is a value and Adagrad's slot.
    options.memory_bytes =
        static_cast<int64_t>(c.gpu_part * c.rows) * 2 * c.dim * 4;
    SetPolicy(c, &options);
    tables.push_back(std::make_shared<ev::EmbeddingTable>(options));
  }
  // All rows exist, with keys scattered over the whole range of int64.
  const auto key_of = [](int64_t row) {
    return static_cast<int64_t>(static_cast<uint64_t>(row) *
                                0x9E3779B97F4A7C15ull);
  };
  parallel->For(c.tables, [&](int64_t t) {
    const std::vector<float> row(c.dim, 0.01f);
    Check(tables[t]->Initialize(row, 1));
    Check(tables[t]->EnsureSlots(slot, nullptr));
    int64_t cut;
    if (c.changes) Check(tables[t]->CutChanges(&cut));
    const int64_t at_once = 1 << 14;
    const std::vector<float> zeros(at_once * c.dim, 0.0f);
    std::vector<int64_t> keys;
    for (int64_t r = 0; r < c.rows; r += at_once) {
      keys.clear();
      for (int64_t i = r; i < std::min(c.rows, r + at_once); ++i) {
        keys.push_back(key_of(i));
      }
      Check(tables[t]->Import(keys, zeros.data(), Span<const ev::SlotSpec>(),
                              Span<const float* const>(), Span<const int64_t>(),
                              Span<const int64_t>(), 0, 1));
    }
  });

  const int64_t n = c.batch * c.hot;
  std::mt19937_64 random(1);
  std::vector<Batch> batches(c.newcomers > 0 ? c.steps + 4 : 4);
  std::bernoulli_distribution is_new(c.newcomers);
  int64_t next_new = c.rows;
  for (Batch& batch : batches) batch.ids.resize(c.tables);
  if (c.newcomers > 0) {
    for (Batch& batch : batches) {
      for (auto& ids : batch.ids) {
        ids.resize(n);
        for (int64_t& id : ids) {
          id = key_of(is_new(random) ? next_new++ : sampler(&random));
        }
      }
    }
  } else {
    parallel->For(c.tables, [&](int64_t t) {
      std::mt19937_64 of_table(1 + t);
      for (Batch& batch : batches) {
        batch.ids[t].resize(n);
        for (int64_t& id : batch.ids[t]) id = key_of(sampler(&of_table));
      }
    });
  }
  std::vector<int64_t> indices(2 * n);
  for (int64_t i = 0; i < n; ++i) {
    indices[2 * i] = i / c.hot;
    indices[2 * i + 1] = i % c.hot;
  }
  std::vector<std::vector<float>> grad(c.tables);
  std::vector<Floats> out(c.tables), unique_grad(c.tables);
  std::vector<float*> unique_grads(c.tables);
  std::vector<ev::MutableFloats> outs(c.tables);
  std::vector<ev::ConstFloats> grads(c.tables);
  for (int t = 0; t < c.tables; ++t) {
    out[t].Resize(c.batch * c.dim);
    grad[t].assign(c.batch * c.dim, 0.01f);  // any number, if read as narrow
    if (!c.by_samples) unique_grad[t].Resize(n * c.dim);
    outs[t] = ev::MutableFloats(reinterpret_cast<char*>(out[t].data()), c.type);
    grads[t] =
        ev::ConstFloats(reinterpret_cast<const char*>(grad[t].data()), c.type);
    unique_grads[t] = unique_grad[t].data();
  }
  const std::vector<std::vector<ev::SlotSpec>> slots(c.tables, slot);
  const std::vector<float> hyper = {0.01f};

  std::vector<double> forward, backward, update, whole;
  std::vector<double> cpu_forward, cpu_backward, cpu_update;
  double unique = 0;
  for (int step = -4; step < c.steps; ++step) {
    const Batch& batch = batches[(step + 4) % batches.size()];
    std::vector<ev::PooledInput> inputs(c.tables);
    for (int t = 0; t < c.tables; ++t) {
      inputs[t].table = tables[t].get();
      inputs[t].combiner = ev::Combiner::kMean;
      inputs[t].batch_size = c.batch;
      inputs[t].num_ids = n;
      inputs[t].ids64 = batch.ids[t].data();
      inputs[t].coo_indices = indices.data();
    }
    std::shared_ptr<const ev::LookupPlan> plan;
    const double t0 = Now(), c0 = ProcessSeconds();
    Check(ev::PooledForward(inputs, tables, Span<const ev::MutableFloats>(outs),
                            parallel, &plan));
    const double t1 = Now(), c1 = ProcessSeconds();
    if (!c.by_samples) {
      Check(ev::PooledBackward(*plan, Span<const ev::ConstFloats>(grads),
                               unique_grads, parallel));
    }
    const double t2 = Now(), c2 = ProcessSeconds();
    std::vector<ev::UpdateInput> updates(c.tables);
    for (int t = 0; t < c.tables; ++t) {
      updates[t].table = tables[t].get();
      if (!c.by_samples) Check(plan->UniqueKeys(t, &updates[t].keys));
      updates[t].grads = c.by_samples ? nullptr : unique_grads[t];
      if (c.by_samples) updates[t].pooled_grads = grads[t];
      updates[t].plan = plan.get();
      updates[t].plan_table = t;
    }
    Check(ev::ApplyRule("Adagrad", hyper, updates, slots, step, parallel));
    const double t3 = Now(), c3 = ProcessSeconds();
    if (step < 0) continue;
    for (int t = 0; t < c.tables; ++t) {
      ev::Span<const int64_t> keys;
      Check(plan->UniqueKeys(t, &keys));
      unique += keys.size();
    }
    forward.push_back(t1 - t0);
    backward.push_back(t2 - t1);
    update.push_back(t3 - t2);
    whole.push_back(t3 - t0);
    cpu_forward.push_back(c1 - c0);
    cpu_backward.push_back(c2 - c1);
    cpu_update.push_back(c3 - c2);
  }
  unique /= c.steps;

  const double ids = static_cast<double>(n) * c.tables;
  const auto ns = [&](const std::vector<double>& t) {
    return Median(t) * 1e9 / ids;
  };
  std::printf(
      "%-18s %8.0f %7.0f | %6.2f %6.2f %6.2f %7.2f ms | %5.1f %5.1f %5.1f "
      "%6.1f ns/id and core",
      c.name().c_str(), ids, unique, Median(forward) * 1e3,
      Median(backward) * 1e3, Median(update) * 1e3, Median(whole) * 1e3,
      ns(cpu_forward), ns(cpu_backward), ns(cpu_update),
      ns(cpu_forward) + ns(cpu_backward) + ns(cpu_update));

  // The limit with rows in CPU memory, per distinct key: in the forward pass
  // one index line and the value's lines, in the update the value's and the
  // slot's lines. Repeated keys are free.
  if (c.storage == ev::RowStorage::kDram) {
    const int slot_lines = static_cast<int>((c.dim * 4 + 63) / 64);
    const int value_lines =
        static_cast<int>((c.dim * ev::FloatBytes(c.value_type) + 63) / 64);
    const double find_ns = ProbeNs(parallel, c.probe_bytes, 1, false);
    const double read_ns = ProbeNs(parallel, c.probe_bytes, value_lines, false);
    const double write_ns =
        ProbeNs(parallel, c.probe_bytes, value_lines + slot_lines, true);
    const double limit = unique * 1e-6 * (find_ns + read_ns + write_ns);
    std::printf(" | limit %6.2f ms (%.0f + %.0f + %.0f ns) = %4.2f", limit,
                find_ns, read_ns, write_ns, limit / (Median(whole) * 1e3));
  }
  std::printf("\n");
  if (c.newcomers > 0 || c.policy != "none") {
    int64_t left = 0, evicted = 0, counted = 0;
    for (const auto& table : tables) {
      left += table->stats().rows;
      evicted += table->stats().evicted_rows;
      counted += table->stats().filtered_keys;
    }
    std::printf(
        "  policy %s, %.0f %% newcomers: longest step %.2f ms; %lld rows, "
        "%lld evicted, %lld counted\n",
        c.policy.c_str(), c.newcomers * 100,
        *std::max_element(whole.begin(), whole.end()) * 1e3,
        static_cast<long long>(left), static_cast<long long>(evicted),
        static_cast<long long>(counted));
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  int threads = 2;
  int64_t rows = 0, probe_mib = 2048;
  std::string only, storage, update, type, value_type;
  Config given;
  given.tables = 26, given.batch = 4096, given.steps = 20, given.gpu_part = 0.5;
  given.policy = "none", given.newcomers = 0, given.changes = false;
  if (!ev::bench::Flags()
           .Add("threads", &threads)
           .Add("only", &only)
           .Add("rows", &rows)
           .Add("tables", &given.tables)
           .Add("batch", &given.batch)
           .Add("steps", &given.steps)
           .Add("storage", &storage)
           .Add("gpu_part", &given.gpu_part)
           .Add("policy", &given.policy)
           .Add("newcomers", &given.newcomers)
           .Add("changes", &given.changes)
           .Add("probe_mib", &probe_mib)
           .Add("update", &update)
           .Add("type", &type)
           .Add("value_type", &value_type)
           .Parse(argc, argv)) {
    return 1;
  }
  given.storage = storage == "hbm"        ? ev::RowStorage::kHbm
                  : storage == "hbm_dram" ? ev::RowStorage::kHbmDram
                                          : ev::RowStorage::kDram;
  given.probe_bytes = static_cast<size_t>(probe_mib) << 20;
  given.by_samples = update == "samples";
  given.type = TypeOf(type);
  given.value_type = TypeOf(value_type);
  ev::testing::ThreadPool pool(threads);
  std::printf("%d threads\n", threads);
  std::printf("%-18s %8s %7s | forward, backward, update, whole | CPU time\n",
              "workload", "ids", "unique");
  for (bool zipf : {true, false}) {
    for (int hot : {1, 10}) {
      for (int64_t dim : {16, 64}) {
        Config c = given;
        c.zipf = zipf;
        c.hot = hot;
        c.dim = dim;
        c.rows = rows > 0 ? rows : zipf ? 200000 : 2000000 * 16 / dim;
        if (!only.empty() && c.name().find(only) == std::string::npos) continue;
        Run(c, &pool);
      }
    }
  }
  return 0;
}
