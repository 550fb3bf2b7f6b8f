// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measures the cost of creating a row in a step. Each batch of each table holds
// only keys that never occurred before. A second pass over the same batches
// finds every row.
//
//   new_rows_benchmark [--tables=26] [--batch=4096] [--steps=60] [--dim=16]
//                      [--threads=2] [--rounds=5] [--only=index|rows|step]
//
// index: the index alone, one table after another, by one thread. rows: the
// same, but each insert also allocates and fills a row and its Adagrad slot.
// step: a training step of all tables (forward, backward, Adagrad). Each round
// prints the nanoseconds of processor time per new key and per existing key,
// and the bytes of the indexes per key; for steps it prints the milliseconds of
// the median step. The last line of a section is the median of its rounds.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/engine/bench_util.h"
#include "kernels/engine/base/hash.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"
#include "kernels/engine/embedding/update/row_update.h"
#include "kernels/engine/storage/dram/row_store.h"
#include "kernels/engine/table/cpu/hash_index.h"
#include "kernels/engine/testing/counting_row_source.h"
#include "kernels/engine/testing/thread_pool.h"

namespace {

using ev::bench::Check;
using ev::bench::Median;
using ev::bench::Now;
using ev::bench::ProcessSeconds;
using ev::bench::ThreadSeconds;

struct Config {
  int tables = 26;
  int batch = 4096;
  int steps = 60;
  int dim = 16;
  int threads = 2;
  int rounds = 5;
  std::string only;

  double keys() const { return double(tables) * batch * steps; }
};

// Returns the keys of all steps of a table, batch after batch, all distinct.
std::vector<int64_t> KeysOf(const Config& c, int table) {
  std::vector<int64_t> keys(size_t(c.batch) * size_t(c.steps));
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = static_cast<int64_t>(
        ev::MixKey(static_cast<int64_t>(keys.size() * size_t(table) + i)) >> 4);
  }
  return keys;
}

std::vector<std::vector<int64_t>> AllKeys(const Config& c) {
  std::vector<std::vector<int64_t>> keys;
  for (int t = 0; t < c.tables; ++t) keys.push_back(KeysOf(c, t));
  return keys;
}

// A value and one slot per row, filled as a table fills them.
class FilledRows : public ev::RowSource {
 public:
  explicit FilledRows(int dim) : dim_(dim), rows_(2 * dim, false) {}
  ev::Status NewRow(int64_t key, ev::RowHandle* handle) override {
    EV_RETURN_IF_ERROR(rows_.Allocate(handle));
    float* const row = rows_.Row(*handle);
    std::fill(row, row + dim_, 0.01f);
    std::fill(row + dim_, row + 2 * dim_, 0.1f);
    return ev::Status::OK();
  }

 private:
  const int dim_;
  ev::RowStore rows_;
};

struct Times {
  double born, present, bytes_per_key;
};

// Runs one round of the index alone, or of the index and rows. make_source() is
// called once per table.
template <typename MakeSource>
Times InsertAndFind(const Config& c,
                    const std::vector<std::vector<int64_t>>& keys,
                    const MakeSource& make_source) {
  std::vector<std::unique_ptr<ev::HashIndex>> indexes;
  std::vector<std::unique_ptr<ev::RowSource>> sources;
  for (int t = 0; t < c.tables; ++t) {
    indexes.emplace_back(new ev::HashIndex);
    sources.push_back(make_source());
  }
  std::vector<ev::RowHandle> handles(c.batch);
  double seconds[2];
  for (double& pass : seconds) {
    const double start = ThreadSeconds();
    for (int step = 0; step < c.steps; ++step) {
      for (int t = 0; t < c.tables; ++t) {
        const int64_t* const batch = keys[t].data() + size_t(step) * c.batch;
        Check(indexes[t]->FindOrInsert(
            ev::Span<const int64_t>(batch, size_t(c.batch)), sources[t].get(),
            handles.data(), nullptr));
      }
    }
    pass = ThreadSeconds() - start;
  }
  double bytes = 0;
  for (const auto& index : indexes) bytes += double(index->bytes());
  return Times{seconds[0] * 1e9 / c.keys(), seconds[1] * 1e9 / c.keys(),
               bytes / c.keys()};
}

template <typename Round>
void Rounds(const Config& c, const char* what, const Round& round) {
  std::vector<double> born, present, ratio;
  for (int r = 0; r < c.rounds; ++r) {
    const Times times = round();
    born.push_back(times.born);
    present.push_back(times.present);
    ratio.push_back(times.born / times.present);
    std::printf(
        "  %-6s new %7.1f ns, present %6.1f ns, ratio %5.2f, %4.1f "
        "bytes of index per key\n",
        what, times.born, times.present, ratio.back(), times.bytes_per_key);
  }
  std::printf("%-8s new %7.1f ns, present %6.1f ns, ratio %5.2f (median)\n",
              what, Median(born), Median(present), Median(ratio));
  std::fflush(stdout);
}

struct StepTimes {
  double ms[4];   // forward, backward, update, whole; of the median step
  double cpu_ns;  // of all threads, per key
};

// Runs all steps once.
StepTimes Pass(const Config& c, const std::vector<std::vector<int64_t>>& keys,
               const std::vector<std::shared_ptr<ev::EmbeddingTable>>& tables,
               ev::Parallel* parallel) {
  const size_t floats = size_t(c.batch) * size_t(c.dim);
  std::vector<int64_t> indices(2 * size_t(c.batch), 0);
  for (int i = 0; i < c.batch; ++i) indices[2 * size_t(i)] = i;
  std::vector<std::vector<float>> out(tables.size()), grad(tables.size()),
      sums(tables.size());
  std::vector<float*> outs, sum_pointers;
  std::vector<const float*> grads;
  for (size_t t = 0; t < tables.size(); ++t) {
    out[t].resize(floats);
    grad[t].assign(floats, 0.01f);
    sums[t].resize(floats);
    outs.push_back(out[t].data());
    grads.push_back(grad[t].data());
    sum_pointers.push_back(sums[t].data());
  }
  const std::vector<std::vector<ev::SlotSpec>> slots(
      tables.size(), {ev::SlotSpec{"Adagrad", 0.1f}});
  std::vector<double> part[4];
  const double cpu = ProcessSeconds();
  for (int step = 0; step < c.steps; ++step) {
    std::vector<ev::PooledInput> inputs(tables.size());
    for (size_t t = 0; t < tables.size(); ++t) {
      inputs[t].table = tables[t].get();
      inputs[t].combiner = ev::Combiner::kSum;
      inputs[t].batch_size = c.batch;
      inputs[t].num_ids = c.batch;
      inputs[t].ids64 = keys[t].data() + size_t(step) * size_t(c.batch);
      inputs[t].coo_indices = indices.data();
    }
    std::shared_ptr<const ev::LookupPlan> plan;
    const double t0 = Now();
    Check(ev::PooledForward(inputs, tables, outs, parallel, &plan));
    const double t1 = Now();
    Check(ev::PooledBackward(*plan, grads, sum_pointers, parallel));
    const double t2 = Now();
    std::vector<ev::UpdateInput> updates(tables.size());
    for (size_t t = 0; t < tables.size(); ++t) {
      updates[t].table = tables[t].get();
      Check(plan->UniqueKeys(static_cast<int>(t), &updates[t].keys));
      updates[t].grads = sum_pointers[t];
      updates[t].plan = plan.get();
      updates[t].plan_table = static_cast<int>(t);
    }
    Check(ev::ApplyRule("Adagrad", std::vector<float>{0.01f}, updates, slots,
                        step, parallel));
    const double t3 = Now();
    part[0].push_back(t1 - t0);
    part[1].push_back(t2 - t1);
    part[2].push_back(t3 - t2);
    part[3].push_back(t3 - t0);
  }
  StepTimes times;
  times.cpu_ns = (ProcessSeconds() - cpu) * 1e9 / c.keys();
  for (int p = 0; p < 4; ++p) times.ms[p] = Median(part[p]) * 1e3;
  return times;
}

void Steps(const Config& c, const std::vector<std::vector<int64_t>>& keys) {
  ev::testing::ThreadPool pool(c.threads);
  std::vector<double> born, present, ratio;
  for (int r = 0; r < c.rounds; ++r) {
    std::vector<std::shared_ptr<ev::EmbeddingTable>> tables;
    for (int t = 0; t < c.tables; ++t) {
      ev::TableOptions options;
      options.name = "table_" + std::to_string(t);
      options.dim = c.dim;
      tables.push_back(std::make_shared<ev::EmbeddingTable>(options));
      const std::vector<float> row(size_t(c.dim), 0.01f);
      Check(tables.back()->Initialize(row, 1));
    }
    StepTimes times[2];
    for (int pass = 0; pass < 2; ++pass) {
      times[pass] = Pass(c, keys, tables, &pool);
      std::printf(
          "  step   %-7s forward %6.2f, backward %6.2f, update %6.2f, "
          "whole %6.2f ms; %6.1f ns of all threads per key\n",
          pass == 0 ? "new" : "present", times[pass].ms[0], times[pass].ms[1],
          times[pass].ms[2], times[pass].ms[3], times[pass].cpu_ns);
    }
    born.push_back(times[0].ms[3]);
    present.push_back(times[1].ms[3]);
    ratio.push_back(times[0].ms[3] / times[1].ms[3]);
  }
  std::printf("step     new %7.2f ms, present %6.2f ms, ratio %5.2f (median)\n",
              Median(born), Median(present), Median(ratio));
}

}  // namespace

int main(int argc, char** argv) {
  Config c;
  if (!ev::bench::Flags()
           .Add("tables", &c.tables)
           .Add("batch", &c.batch)
           .Add("steps", &c.steps)
           .Add("dim", &c.dim)
           .Add("threads", &c.threads)
           .Add("rounds", &c.rounds)
           .Add("only", &c.only)
           .Parse(argc, argv) ||
      std::min({c.tables, c.batch, c.steps, c.dim, c.threads, c.rounds}) < 1) {
    std::fprintf(stderr, "expected numbers of at least 1\n");
    return 1;
  }
  ev::bench::PrintMachine();
  std::printf("%d tables, %d new keys each in each of %d steps, dim %d\n",
              c.tables, c.batch, c.steps, c.dim);
  const std::vector<std::vector<int64_t>> keys = AllKeys(c);
  const auto wants = [&](const char* what) {
    return c.only.empty() || c.only == what;
  };
  if (wants("index")) {
    Rounds(c, "index", [&] {
      return InsertAndFind(c, keys, [] {
        return std::unique_ptr<ev::RowSource>(
            new ev::testing::CountingRowSource);
      });
    });
  }
  if (wants("rows")) {
    Rounds(c, "rows", [&] {
      return InsertAndFind(c, keys, [&] {
        return std::unique_ptr<ev::RowSource>(new FilledRows(c.dim));
      });
    });
  }
  if (wants("step")) Steps(c, keys);
  return 0;
}
