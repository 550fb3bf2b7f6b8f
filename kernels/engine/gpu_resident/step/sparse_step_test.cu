// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// SparseStep against a host model: a map of rows, sums in the promised order,
// the same rules. Everything is compared bit by bit. A plain program, as
// table_set_test is: exits 0, 1 on failure, 77 without a GPU. --small keeps the
// sizes fit for compute-sanitizer; a test's name runs that one alone.

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/gpu_resident/step/sparse_step.h"
#include "kernels/engine/gpu_resident/table/bucket.h"
#include "kernels/engine/optimizer/rule_list.h"
#include "kernels/engine/testing/exit_without_gpu.h"

namespace ev {
namespace gpu {
namespace {

bool g_small = false;
int g_failures = 0;

#define EXPECT(condition)                                                      \
  do {                                                                         \
    if (!(condition)) {                                                        \
      if (++g_failures <= 20) {                                                \
        std::printf("  %s:%d: expected %s\n", __FILE__, __LINE__, #condition); \
      }                                                                        \
    }                                                                          \
  } while (0)

void Ok(const Status& status, int line) {
  if (!status.ok()) {
    ++g_failures;
    std::printf("  line %d: %s\n", line, status.message().c_str());
  }
}
#define OK(expression) Ok((expression), __LINE__)

template <typename T>
struct Device {
  explicit Device(const std::vector<T>& v) : Device(v.size()) {
    cudaMemcpy(get(), v.data(), v.size() * sizeof(T), cudaMemcpyHostToDevice);
  }
  explicit Device(size_t n) : size(n) {
    OK(buffer.Allocate(n * sizeof(T) + 16, "test data"));
    cudaMemset(buffer.data(), 0xA5, n * sizeof(T) + 16);
  }
  T* get() const { return buffer.as<T>(); }
  std::vector<T> Read() const {
    std::vector<T> v(size);
    EXPECT(cudaMemcpy(v.data(), get(), size * sizeof(T),
                      cudaMemcpyDeviceToHost) == cudaSuccess);
    return v;
  }
  DeviceBuffer buffer;
  size_t size;
};

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * 4) == 0;
}

struct Rule {
  std::string name;
  std::vector<float> hyper, slot_init;
};

struct HostBatch {
  std::vector<int64_t> ids, num_ids, num_samples, splits;
  std::vector<float> weights;
  bool has_splits = true;
};

// What Backward promises, with a map.
class Model {
 public:
  Model(const SparseStepOptions& options, const Rule& rule)
      : options_(options), rule_(rule), rows_(options.tables.size()) {}

  std::vector<float> Forward(const HostBatch& b) {
    std::vector<float> pooled;
    ForEachSample(b, [&](size_t t, int64_t, int64_t from, int64_t to) {
      const StepTableOptions& table = options_.tables[t];
      const float divisor = Divisor(b, table.combiner, from, to);
      for (int d = 0; d < table.dim; ++d) {
        float sum = 0.0f;
        for (int64_t i = from; i < to; ++i) {
          sum = sum + Value(t, b.ids[i], d) * Weight(b, i);
        }
        pooled.push_back(table.combiner == Combiner::kSum ? sum
                                                          : sum / divisor);
      }
    });
    return pooled;
  }

  void Backward(const HostBatch& b, const std::vector<float>& grads) {
    struct Source {
      int64_t at;
      float scale;
    };
    std::vector<std::unordered_map<int64_t, std::vector<Source>>> sources(
        rows_.size());
    int64_t at = 0;
    ForEachSample(b, [&](size_t t, int64_t, int64_t from, int64_t to) {
      const StepTableOptions& table = options_.tables[t];
      const float divisor = Divisor(b, table.combiner, from, to);
      for (int64_t i = from; i < to; ++i) {
        float scale = Weight(b, i);
        if (table.combiner != Combiner::kSum) scale *= 1.0f / divisor;
        sources[t][b.ids[i]].push_back({at, scale});
      }
      at += table.dim;
    });
    for (size_t t = 0; t < rows_.size(); ++t) {
      const int dim = options_.tables[t].dim;
      for (const auto& entry : sources[t]) {
        const std::vector<Source>& s = entry.second;
        std::vector<float>& row = RowOf(t, entry.first);
        for (int d = 0; d < dim; ++d) {
          float grad = -0.0f;
          for (const Source& one : s) {
            grad = grad + grads[one.at + d] * one.scale;
          }
          Apply(grad, &row[d], dim);
        }
      }
    }
  }

  const std::vector<std::map<int64_t, std::vector<float>>>& rows() const {
    return rows_;
  }

 private:
  template <typename F>
  void ForEachSample(const HostBatch& b, F f) {
    int64_t id = 0, split = 0;
    for (size_t t = 0; t < b.num_ids.size(); ++t) {
      for (int64_t s = 0; s < b.num_samples[t]; ++s) {
        if (b.has_splits) {
          f(t, s, id + b.splits[split + s], id + b.splits[split + s + 1]);
        } else {
          f(t, s, id + s, id + s + 1);
        }
      }
      id += b.num_ids[t];
      split += b.num_samples[t] + 1;
    }
  }
  static float Weight(const HostBatch& b, int64_t i) {
    return b.weights.empty() ? 1.0f : b.weights[i];
  }
  static float Divisor(const HostBatch& b, Combiner combiner, int64_t from,
                       int64_t to) {
    if (from == to || combiner == Combiner::kSum) return 1.0f;
    float sum = 0.0f;
    for (int64_t i = from; i < to; ++i) {
      const float w = Weight(b, i);
      sum = sum + (combiner == Combiner::kMean ? w : w * w);
    }
    return combiner == Combiner::kMean ? sum : std::sqrt(sum);
  }
  float Default(size_t t, int64_t key, int d) const {
    const StepTableOptions& table = options_.tables[t];
    const int64_t n = table.default_rows.size() / table.dim;
    const int64_t r = ((key % n) + n) % n;
    return table.default_rows[r * table.dim + d];
  }
  float Value(size_t t, int64_t key, int d) const {
    const auto it = rows_[t].find(key);
    return it == rows_[t].end() ? Default(t, key, d) : it->second[d];
  }
  std::vector<float>& RowOf(size_t t, int64_t key) {
    std::vector<float>& row = rows_[t][key];
    if (row.empty()) {
      const int dim = options_.tables[t].dim;
      for (int d = 0; d < dim; ++d) row.push_back(Default(t, key, d));
      for (float init : rule_.slot_init) row.insert(row.end(), dim, init);
    }
    return row;
  }
  void Apply(float grad, float* v, int dim) {
    OK(VisitRule(rule_.name, rule_.hyper, [&](const auto& r) {
      using R = typename std::decay<decltype(r)>::type;
      if constexpr (R::kNumSlots == 0) r(grad, v);
      if constexpr (R::kNumSlots == 1) r(grad, v, v + dim);
      if constexpr (R::kNumSlots == 2) r(grad, v, v + dim, v + 2 * dim);
      if constexpr (R::kNumSlots == 3) {
        r(grad, v, v + dim, v + 2 * dim, v + 3 * dim);
      }
    }));
  }

  SparseStepOptions options_;
  Rule rule_;
  std::vector<std::map<int64_t, std::vector<float>>> rows_;
};

// The device's rows, by key, in the model's form.
std::vector<std::map<int64_t, std::vector<float>>> ReadRows(
    const SparseStep& step, const SparseStepOptions& options) {
  std::vector<std::map<int64_t, std::vector<float>>> all;
  for (size_t t = 0; t < options.tables.size(); ++t) {
    const int64_t n = step.tables()->num_slots(static_cast<int>(t));
    Device<int64_t> keys(n), slots(n), count(1);
    ExportedKeys out;
    out.keys = keys.get();
    out.slots = slots.get();
    out.count = count.get();
    OK(step.tables()->Export(static_cast<int>(t), 0, n, out, StreamView()));
    const RowBlock block = step.rows(static_cast<int>(t));
    std::vector<float> rows(n * block.stride);
    cudaMemcpy(rows.data(), block.base, rows.size() * 4,
               cudaMemcpyDeviceToHost);
    const std::vector<int64_t> k = keys.Read(), s = slots.Read();
    const int dim = options.tables[t].dim;
    const int slot_stride = step.slot_stride(static_cast<int>(t));
    std::map<int64_t, std::vector<float>> of;
    for (int64_t i = 0; i < count.Read()[0]; ++i) {
      std::vector<float>& row = of[k[i]];
      for (size_t part = 0; part <= options.slot_init.size(); ++part) {
        const float* p = rows.data() + s[i] * block.stride + part * slot_stride;
        row.insert(row.end(), p, p + dim);
      }
    }
    all.push_back(std::move(of));
  }
  return all;
}

struct Shape {
  std::vector<int> dims;
  std::vector<Combiner> combiners;
  int64_t samples;
  int most;      // ids of a sample; 0: exactly one, no splits
  int64_t keys;  // distinct
  double hot;    // share of one key
  bool weights;
  bool neighbours = false;  // all rows in one part of the table
  bool grows = false;       // tables start small and grow before each step
};

// The k-th key that hashing puts into the first 64th of a table.
int64_t Neighbour(size_t k) {
  static std::vector<int64_t> keys;
  for (int64_t key = keys.empty() ? 0 : keys.back() + 1; keys.size() <= k;
       ++key) {
    if (MixKey(key) >> 58 == 0) keys.push_back(key);
  }
  return keys[k];
}

HostBatch RandomBatch(const Shape& shape, std::mt19937_64* rng) {
  HostBatch b;
  b.has_splits = shape.most != 0;
  std::uniform_real_distribution<double> unit(0, 1);
  for (size_t t = 0; t < shape.dims.size(); ++t) {
    const int64_t samples = t == 1 ? shape.samples / 3 : shape.samples;
    int64_t n = 0;
    for (int64_t s = 0; s < samples; ++s) {
      if (b.has_splits) b.splits.push_back(n);
      n += b.has_splits ? (*rng)() % (shape.most + 1) : 1;
    }
    if (b.has_splits) b.splits.push_back(n);
    for (int64_t i = 0; i < n; ++i) {
      int64_t key;
      if (unit(*rng) < shape.hot) {
        key = std::numeric_limits<int64_t>::min();
      } else {
        // Cubed: some keys are far more frequent than others.
        const double u = unit(*rng);
        const int64_t k = static_cast<int64_t>(u * u * u * shape.keys);
        key = shape.neighbours ? Neighbour(k) : k * 7919 - 1000;
      }
      b.ids.push_back(key);
      if (shape.weights) {
        b.weights.push_back(static_cast<float>(0.25 + unit(*rng)));
      }
    }
    b.num_ids.push_back(n);
    b.num_samples.push_back(samples);
  }
  return b;
}

void RunSteps(const Shape& shape, const Rule& rule, int steps, uint64_t seed) {
  std::mt19937_64 rng(seed);
  std::uniform_real_distribution<float> unit(-1, 1);
  SparseStepOptions options;
  options.slot_init = rule.slot_init;
  for (size_t t = 0; t < shape.dims.size(); ++t) {
    StepTableOptions table;
    table.name = "t" + std::to_string(t);
    table.capacity = (shape.neighbours ? 128 : 4) * shape.keys;
    if (shape.grows) {
      table.max_capacity = 16 * shape.keys;
      table.capacity = shape.keys * 3 / 2 + 300;
    }
    table.dim = shape.dims[t];
    table.combiner = shape.combiners[t % shape.combiners.size()];
    table.default_rows.resize((t + 1) * table.dim);
    for (float& v : table.default_rows) v = unit(rng);
    options.tables.push_back(table);
  }
  // Two of each: the second must give the bits of the first.
  std::unique_ptr<SparseStep> step[2];
  for (auto& s : step) {
    OK(SparseStep::Create(options, StreamView(), &s));
    if (s == nullptr) return;
    const int64_t n = shape.samples * shape.dims.size();
    OK(s->ReserveSync(n * std::max(1, shape.most), n));
    // A row that is read before it is written must not look right.
    for (size_t t = 0; t < options.tables.size(); ++t) {
      cudaMemset(s->mutable_rows(t), 0xFF,
                 s->tables()->num_slots(t) * s->rows(t).stride * 4);
    }
  }
  Model model(options, rule);
  for (int k = 0; k < steps; ++k) {
    const HostBatch b = RandomBatch(shape, &rng);
    const std::vector<float> expected = model.Forward(b);
    std::vector<float> grads(expected.size());
    for (float& g : grads) g = unit(rng);
    Device<int64_t> ids(b.ids), splits(b.splits);
    Device<float> weights(b.weights), device_grads(grads);
    StepBatch batch;
    batch.ids = ids.get();
    batch.num_ids = b.num_ids;
    batch.num_samples = b.num_samples;
    batch.splits = b.has_splits ? splits.get() : nullptr;
    batch.weights = b.weights.empty() ? nullptr : weights.get();
    for (auto& s : step) {
      if (shape.grows && k > 0) {
        // One by a little, the other by a lot: the bits are the same.
        for (int t = 0; t < static_cast<int>(shape.dims.size()); ++t) {
          const int64_t slots = s->tables()->num_slots(t);
          const int64_t more = s == step[0] ? 32 * (1 + rng() % 20) : slots;
          OK(s->GrowSync(t, more, StreamView()));
          const int64_t now = s->tables()->num_slots(t);
          EXPECT(now > slots && now <= slots + more);
          cudaDeviceSynchronize();
        }
      }
      Device<float> pooled(expected.size());
      if (k == 1) {  // looking on changes nothing
        OK(s->Forward(batch, false, pooled.get(), StreamView()));
        EXPECT(SameBits(pooled.Read(), expected));
      }
      OK(s->Forward(batch, true, pooled.get(), StreamView()));
      EXPECT(SameBits(pooled.Read(), expected));
      OK(s->Backward(device_grads.get(), rule.name, rule.hyper, StreamView()));
      EXPECT(cudaDeviceSynchronize() == cudaSuccess);
    }
    model.Backward(b, grads);
  }
  for (auto& s : step) {
    const auto rows = ReadRows(*s, options);
    for (size_t t = 0; t < rows.size(); ++t) {
      EXPECT(rows[t].size() == model.rows()[t].size());
      auto it = model.rows()[t].begin();
      for (const auto& entry : rows[t]) {
        if (it == model.rows()[t].end()) break;
        EXPECT(entry.first == it->first);
        EXPECT(SameBits(entry.second, it->second));
        ++it;
      }
    }
  }
}

const Rule kAdagrad = {"Adagrad", {0.05f}, {0.1f}};

void OneIdPerSample() {
  const int64_t n = g_small ? 700 : 20000;
  for (int dim : {4, 16, 32, 64, 128, 256, 1, 7}) {
    RunSteps({{dim, dim, dim}, {Combiner::kSum}, n, 0, n, .1, false}, kAdagrad,
             3, dim);
  }
}

void RaggedSamplesOfSeveralDims() {
  const int64_t n = g_small ? 300 : 5000;
  const std::vector<Combiner> all = {Combiner::kMean, Combiner::kSum,
                                     Combiner::kSqrtN};
  for (bool weights : {false, true}) {
    RunSteps({{16, 64, 5, 128, 32, 8}, all, n, 6, n, .05, weights}, kAdagrad, 4,
             weights);
  }
}

void TablesGrow() {
  const int64_t n = g_small ? 300 : 3000;
  const std::vector<Combiner> all = {Combiner::kMean, Combiner::kSum,
                                     Combiner::kSqrtN};
  Shape shape = {{16, 64, 5, 32}, all, n, 0, n, .05, false};
  shape.grows = true;
  RunSteps(shape, kAdagrad, 4, 1);
  shape.most = 4;
  shape.weights = true;
  RunSteps(shape, {"SGD", {.1f}, {}}, 4, 2);
  if (g_small) return;
  shape = {{128, 8}, all, 21000, 3, 100000, .05, false};
  shape.grows = true;
  RunSteps(shape, kAdagrad, 4, 3);
}

// Errors of growth leave table and rows as they were; the step goes on.
void GrowthThatFailsChangesNothing() {
  SparseStepOptions options;
  options.slot_init = {0.1f};
  StepTableOptions table;
  table.name = "grows";
  table.capacity = 1000;
  table.max_capacity = 2000000000;
  table.dim = 64;
  table.default_rows.assign(64, 1.0f);
  options.tables = {table, table};
  options.tables[1].name = "fixed";
  options.tables[1].max_capacity = 0;
  std::unique_ptr<SparseStep> step;
  OK(SparseStep::Create(options, StreamView(), &step));
  OK(step->ReserveSync(20, 20));
  const std::vector<int64_t> ids = {1, 2, 3, 4}, counts = {2, 2};
  const std::vector<float> lr = {0.1f};
  Device<int64_t> device_ids(ids);
  Device<float> pooled(4 * 64), grads(std::vector<float>(4 * 64, 1.0f));
  StepBatch batch;
  batch.ids = device_ids.get();
  batch.num_ids = counts;
  batch.num_samples = counts;
  OK(step->Forward(batch, true, pooled.get(), StreamView()));
  EXPECT(step->GrowSync(0, 64, StreamView()).code() ==
         StatusCode::kFailedPrecondition);
  OK(step->Backward(grads.get(), "Adagrad", lr, StreamView()));
  OK(step->Forward(batch, false, pooled.get(), StreamView()));
  const std::vector<float> before = pooled.Read();
  EXPECT(before[0] != 1.0f);
  const Status fixed = step->GrowSync(1, 64, StreamView());
  EXPECT(fixed.code() == StatusCode::kFailedPrecondition);
  EXPECT(fixed.message().find("'fixed'") != std::string::npos);
  EXPECT(step->GrowSync(0, 0, StreamView()).code() ==
         StatusCode::kInvalidArgument);
  EXPECT(step->GrowSync(5, 64, StreamView()).code() ==
         StatusCode::kInvalidArgument);
  // Doublings until the rows do not fit the device.
  Status status;
  int64_t slots = 0, bytes = 0;
  for (int k = 0; !g_small && k < 40 && status.ok(); ++k) {
    slots = step->tables()->num_slots(0);
    bytes = step->row_bytes();
    status = step->GrowSync(0, slots, StreamView());
  }
  if (!g_small) {
    EXPECT(status.code() == StatusCode::kResourceExhausted);
    EXPECT(status.message().find("rows of table 'grows'") != std::string::npos);
    EXPECT(step->tables()->num_slots(0) == slots);
    EXPECT(step->row_bytes() == bytes);
    EXPECT(slots > 1000000);
  }
  OK(step->Forward(batch, false, pooled.get(), StreamView()));
  EXPECT(SameBits(pooled.Read(), before));
}

void HotKeys() {
  // Nearly all occurrences of few keys: long lists, and in the
  // largest several windows of the bitmap.
  RunSteps({{16}, {Combiner::kSum}, g_small ? 2000 : 30000, 0, 20, .5, false},
           kAdagrad, 2, 1);
  RunSteps(
      {{64, 12}, {Combiner::kMean}, g_small ? 1500 : 4000, 5, 40, .9, true},
      kAdagrad, 2, 2);
  if (!g_small) {
    RunSteps({{4}, {Combiner::kSum}, 120000, 10, 3000, .3, false}, kAdagrad, 2,
             3);
  }
}

void ManyKeysInOneBin() {
  // More than a block takes into shared memory at once.
  const int64_t n = g_small ? 12000 : 40000;
  RunSteps({{4}, {Combiner::kSum}, n, 0, n / 3, .1, false, true}, kAdagrad, 2,
           4);
  RunSteps({{8, 20}, {Combiner::kSqrtN}, n / 4, 6, n / 3, .3, true, true},
           kAdagrad, 2, 5);
}

void AllRules() {
  const std::vector<Rule> rules = {
      {"SGD", {.1f}, {}},
      {"Momentum", {.1f, .9f, 0}, {0}},
      {"Momentum", {.1f, .9f, 1}, {0}},
      {"AdagradDecay", {.1f, 10, .9f, .1f, 25}, {.1f, 0}},
      {"Adam", {.1f, .9f, .999f, 1e-8f, .9f, .999f}, {0, 0}},
      {"AdamAsync", {.1f, .9f, .999f, 1e-8f, .9f, .999f, 0}, {0, 0}},
      {"AdamAsync", {.1f, .9f, .999f, 1e-8f, .9f, .999f, 1}, {0, 0}},
      {"AdamW", {.1f, .9f, .999f, 1e-8f, .9f, .999f, .01f}, {0, 0}},
      {"Ftrl", {.1f, .01f, .01f, .01f, -.5f}, {.1f, 0}},
      {"RMSProp", {.1f, .9f, .9f, 1e-8f}, {1, 0}},
      {"CenteredRMSProp", {.1f, .9f, .9f, 1e-8f}, {0, 1, 0}},
      {"Adadelta", {.1f, .95f, 1e-6f}, {0, 0}}};
  for (const Rule& rule : rules) {
    std::printf("  %s\n", rule.name.c_str());
    RunSteps({{16, 128, 3}, {Combiner::kMean}, 400, 3, 500, .2, false}, rule, 3,
             9);
  }
}

void EmptyBatchesAndErrors() {
  SparseStepOptions options;
  options.slot_init = {0.1f};
  StepTableOptions table;
  table.name = "only";
  table.capacity = 64;
  table.dim = 8;
  std::unique_ptr<SparseStep> step;
  options.tables = {table};
  EXPECT(!SparseStep::Create(options, StreamView(), &step).ok());  // defaults
  options.tables[0].default_rows.assign(8, 1.0f);
  options.tables[0].dim = 3;
  EXPECT(!SparseStep::Create(options, StreamView(), &step).ok());
  options.tables[0].dim = 8;
  options.tables[0].combiner = Combiner::kMax;
  EXPECT(!SparseStep::Create(options, StreamView(), &step).ok());
  options.tables[0].combiner = Combiner::kSum;
  OK(SparseStep::Create(options, StreamView(), &step));
  OK(step->ReserveSync(10, 10));
  const std::vector<int64_t> none = {0}, four = {4}, eleven = {11};
  const std::vector<float> lr = {0.1f};
  Device<float> pooled(32), grads(32);
  Device<int64_t> splits(std::vector<int64_t>(5, 0));
  StepBatch batch;
  batch.ids = nullptr;
  EXPECT(!step->Forward(batch, true, pooled.get(), StreamView()).ok());
  batch.num_ids = none;
  batch.num_samples = four;
  EXPECT(!step->Forward(batch, true, pooled.get(), StreamView()).ok());
  batch.splits = splits.get();
  OK(step->Forward(batch, true, pooled.get(), StreamView()));
  for (float v : pooled.Read()) EXPECT(v == 0.0f);
  EXPECT(!step->Backward(grads.get(), "Adam", lr, StreamView()).ok());
  EXPECT(!step->Backward(grads.get(), "SGD", lr, StreamView()).ok());
  OK(step->Backward(grads.get(), "Adagrad", lr, StreamView()));
  EXPECT(!step->Backward(grads.get(), "Adagrad", lr, StreamView()).ok());
  batch.num_ids = eleven;
  EXPECT(!step->Forward(batch, true, pooled.get(), StreamView()).ok());
  batch.num_ids = none;
  batch.num_samples = none;
  OK(step->Forward(batch, true, pooled.get(), StreamView()));
  OK(step->Backward(grads.get(), "Adagrad", lr, StreamView()));
}

// Rows of four floats at a time would be written where none may begin.
void TablesBeginAtFourFloats() {
  SparseStepOptions options;
  options.slot_init = {0.1f};
  for (int dim : {5, 8}) {
    StepTableOptions table;
    table.name = "dim " + std::to_string(dim);
    table.capacity = 64;
    table.dim = dim;
    table.default_rows.assign(dim, static_cast<float>(dim));
    options.tables.push_back(table);
  }
  std::unique_ptr<SparseStep> step;
  OK(SparseStep::Create(options, StreamView(), &step));
  OK(step->ReserveSync(20, 20));
  Device<int64_t> ids(std::vector<int64_t>(20, 7));
  Device<float> pooled(20 * 8);
  StepBatch batch;
  batch.ids = ids.get();
  const std::vector<int64_t> refused = {3, 2}, fours = {4, 2}, last = {3, 0};
  batch.num_ids = batch.num_samples = refused;
  const Status status = step->Forward(batch, false, pooled.get(), StreamView());
  EXPECT(status.code() == StatusCode::kInvalidArgument);
  EXPECT(status.message().find("got 15 floats") != std::string::npos);
  EXPECT(status.message().find("'dim 8'") != std::string::npos);
  batch.num_ids = batch.num_samples = fours;
  OK(step->Forward(batch, false, pooled.get(), StreamView()));
  const std::vector<float> found = pooled.Read();
  for (int i = 0; i < 36; ++i) EXPECT(found[i] == (i < 20 ? 5.0f : 8.0f));
  batch.num_ids = batch.num_samples = last;
  OK(step->Forward(batch, false, pooled.get(), StreamView()));
}

void KeysWithoutRoomAreLeftOut() {
  SparseStepOptions options;
  options.slot_init = {0.1f};
  StepTableOptions table;
  table.name = "full";
  table.capacity = 64;
  table.dim = 4;
  table.default_rows.assign(4, 2.0f);
  options.tables = {table};
  std::unique_ptr<SparseStep> step;
  OK(SparseStep::Create(options, StreamView(), &step));
  const int64_t n = 500;
  OK(step->ReserveSync(n, n));
  std::vector<int64_t> ids(n);
  for (int64_t i = 0; i < n; ++i) ids[i] = i;
  Device<int64_t> keys(ids);
  Device<float> pooled(4 * n), grads(std::vector<float>(4 * n, 1.0f));
  const std::vector<int64_t> size = {n};
  const std::vector<float> lr = {0.1f};
  StepBatch batch;
  batch.ids = keys.get();
  batch.num_ids = size;
  batch.num_samples = size;
  OK(step->Forward(batch, true, pooled.get(), StreamView()));
  OK(step->Backward(grads.get(), "Adagrad", lr, StreamView()));
  OK(step->Forward(batch, true, pooled.get(), StreamView()));
  std::vector<int64_t> sizes, rejected;
  OK(step->tables()->CountsSync(&sizes, &rejected, StreamView()));
  const int64_t slots = step->tables()->num_slots(0);
  EXPECT(sizes[0] == slots && rejected[0] == n - slots);
  int64_t different = 0;
  const std::vector<float> out = pooled.Read();
  for (int64_t i = 0; i < n; ++i) different += out[4 * i] != 2.0f;
  EXPECT(different == slots);
}

int Main(int argc, char** argv) {
  if (const int status = testing::ExitWithoutGpu()) return status;
  std::string only;
  for (int i = 1; i < argc; ++i) {
    if (!std::strcmp(argv[i], "--small")) {
      g_small = true;
    } else {
      only = argv[i];
    }
  }
  int failed = 0, run = 0;
#define RUN(test)                                                \
  do {                                                           \
    if (!only.empty() && only != #test) break;                   \
    ++run;                                                       \
    g_failures = 0;                                              \
    test();                                                      \
    EXPECT(cudaDeviceSynchronize() == cudaSuccess);              \
    std::printf("%s %s\n", g_failures ? "FAILED" : "ok", #test); \
    std::fflush(stdout);                                         \
    failed += g_failures != 0;                                   \
  } while (0)
  RUN(EmptyBatchesAndErrors);
  RUN(OneIdPerSample);
  RUN(RaggedSamplesOfSeveralDims);
  RUN(TablesGrow);
  RUN(GrowthThatFailsChangesNothing);
  RUN(HotKeys);
  RUN(ManyKeysInOneBin);
  RUN(AllRules);
  RUN(TablesBeginAtFourFloats);
  RUN(KeysWithoutRoomAreLeftOut);
  if (run == 0) std::printf("no test is named %s\n", only.c_str());
  return failed != 0 || run == 0;
}

}  // namespace
}  // namespace gpu
}  // namespace ev

int main(int argc, char** argv) { return ev::gpu::Main(argc, argv); }
