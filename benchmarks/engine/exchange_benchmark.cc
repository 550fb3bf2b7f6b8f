// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Measures the cost of each op of a lookup over ranks, without the transport of
// bytes. W ranks in one process take turns; only rank 0's turn is measured, in
// milliseconds and in milliseconds of processor time ("core-ms"). For
// comparison, one rank that has all rows looks up, differentiates and updates
// the same ids.
//
//   exchange_benchmark [--ranks=2] [--threads=2] [--steps=10] [--tables=26]
//                      [--batch=65536] [--hotness=1] [--dim=16] [--rows=200000]
//                      [--wire=float32|float16|bfloat16] [--counts=0]
//
// Zipf 1.05 ids, sum pooling, Adagrad. Rows exist before the clock starts.
// Output buffers are reused from step to step, as the framework's kernels reuse
// them.

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "addons/sparse_operation_kit/exchange/pool.h"
#include "addons/sparse_operation_kit/exchange/route.h"
#include "addons/sparse_operation_kit/exchange/serve.h"
#include "benchmarks/engine/bench_util.h"
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
  int ranks = 2;
  int threads = 2;
  int steps = 10;
  int tables = 26;
  int64_t batch = 65536;
  int64_t hotness = 1;
  int64_t dim = 16;
  int64_t rows = 200000;
  sok::WireType wire = sok::WireType::kFloat32;
  bool counts = false;
};

// Medians per op, in the order of each op's first call.
class Clock {
 public:
  // While false, times are not recorded.
  void set_counting(bool counting) { counting_ = counting; }

  void Measure(const std::string& op, const std::function<ev::Status()>& run) {
    const double wall = Now(), cpu = ProcessSeconds();
    Check(run());
    if (!counting_) return;
    if (times_.count(op) == 0) order_.push_back(op);
    times_[op].wall.push_back(Now() - wall);
    times_[op].cpu.push_back(ProcessSeconds() - cpu);
  }

  void Print(double ids) const {
    double wall = 0, cpu = 0;
    for (const std::string& op : order_) {
      const Times& times = times_.at(op);
      Line(op, Median(times.wall), Median(times.cpu), ids);
      wall += Median(times.wall);
      cpu += Median(times.cpu);
    }
    Line("sum", wall, cpu, ids);
  }

 private:
  struct Times {
    std::vector<double> wall, cpu;
  };

  static void Line(const std::string& op, double wall, double cpu, double ids) {
    std::printf("  %-16s %8.2f ms  %8.2f core-ms  %6.1f ns per id and core\n",
                op.c_str(), wall * 1e3, cpu * 1e3, cpu * 1e9 / ids);
  }

  bool counting_ = true;
  std::vector<std::string> order_;
  std::map<std::string, Times> times_;
};

using Tables = std::vector<std::shared_ptr<ev::EmbeddingTable>>;

const std::vector<ev::SlotSpec>& Slots() {
  static const auto* const slots =
      new std::vector<ev::SlotSpec>{ev::SlotSpec{"Adagrad", 0.1f}};
  return *slots;
}

// Makes tables that hold the rows of the keys k with k mod 'of' == which.
Tables MakeTables(const Config& c, int which, int of, ev::Parallel* parallel) {
  Tables tables;
  for (int t = 0; t < c.tables; ++t) {
    ev::TableOptions options;
    options.name = "table_" + std::to_string(t);
    options.dim = c.dim;
    options.record_frequency = c.counts;
    tables.push_back(std::make_shared<ev::EmbeddingTable>(options));
  }
  parallel->For(c.tables, [&](int64_t t) {
    Check(tables[t]->Initialize(std::vector<float>(c.dim, 0.01f), 1));
    Check(tables[t]->EnsureSlots(Slots(), nullptr));
    std::vector<int64_t> keys;
    for (int64_t key = which; key < c.rows; key += of) keys.push_back(key);
    const std::vector<float> zeros(keys.size() * c.dim, 0.0f);
    Check(tables[t]->Import(keys, zeros.data(), Span<const ev::SlotSpec>(),
                            Span<const float* const>(), Span<const int64_t>(),
                            Span<const int64_t>(), 0, 1));
  });
  return tables;
}

// One array per table, reused from step to step.
struct Arrays {
  std::vector<std::vector<float>> floats;

  // Returns an array per table of at least that many floats.
  std::vector<float*> Reserve(const std::vector<int64_t>& sizes) {
    floats.resize(std::max(floats.size(), sizes.size()));
    std::vector<float*> out;
    for (size_t t = 0; t < sizes.size(); ++t) {
      if (static_cast<int64_t>(floats[t].size()) < sizes[t]) {
        floats[t].resize(sizes[t]);
      }
      out.push_back(floats[t].data());
    }
    return out;
  }
};

template <typename T>
void Grow(std::vector<T>* v, int64_t size) {
  if (static_cast<int64_t>(v->size()) < size) v->resize(size);
}

struct Rank {
  Tables tables;
  std::vector<std::vector<std::vector<int64_t>>> batches;  // [step][table]
  std::vector<std::vector<float>> grads;                   // [table]

  std::shared_ptr<const sok::RoutePlan> route;
  std::shared_ptr<const ev::LookupPlan> plan;
  sok::MessageLayout layout;
  std::vector<int64_t> message, keys;          // sent, received
  std::vector<int32_t> key_splits;             // received
  std::vector<char> rows, got_rows, got_sums;  // sent, received, received
  std::vector<char> sums;                      // sent
  Arrays outputs, unique_grads;
};

class Job {
 public:
  explicit Job(const Config& c) : c_(c), pool_(c.threads) {
    const ev::bench::ZipfSampler zipf(c.rows, 1.05);
    ids_ = c.batch * c.hotness;
    splits_.resize(c.batch + 1);
    for (int64_t s = 0; s <= c.batch; ++s) splits_[s] = s * c.hotness;
    // Shuffled, so that a key's frequency does not depend on its owner rank.
    std::vector<int64_t> key_of(c.rows);
    std::iota(key_of.begin(), key_of.end(), 0);
    std::mt19937_64 shuffle(7);
    std::shuffle(key_of.begin(), key_of.end(), shuffle);
    for (int r = 0; r < c.ranks; ++r) {
      Rank rank;
      rank.tables = MakeTables(c, r, c.ranks, &pool_);
      std::mt19937_64 random(1 + r);
      rank.batches.resize(3);
      for (auto& batch : rank.batches) {
        batch.resize(c.tables);
        for (auto& ids : batch) {
          ids.resize(ids_);
          for (int64_t& id : ids) id = key_of[zipf.Sample(random())];
        }
      }
      rank.grads.assign(c.tables, std::vector<float>(c.batch * c.dim, 0.01f));
      ranks_.push_back(std::move(rank));
    }
    std::vector<int32_t> all(c.ranks);
    std::iota(all.begin(), all.end(), 0);
    placement_.reset(new sok::Placement(all));
    format_.num_tables = c.tables;
    format_.with_occurrences = c.counts;
    for (int t = 0; t < c.tables; ++t) all_tables_.push_back(t);
  }

  void RunOverRanks() {
    Clock clock;
    for (int step = -3; step < c_.steps; ++step) {
      clock_ = &clock;
      clock.set_counting(step >= 0);
      OneStep(step);
    }
    std::printf("one of %d ranks, %d threads\n", c_.ranks, c_.threads);
    clock.Print(static_cast<double>(ids_) * c_.tables);
    double keys = 0, served = 0;
    for (int t = 0; t < c_.tables; ++t) {
      for (int r = 0; r < c_.ranks; ++r)
        keys += ranks_[0].route->num_keys(r, t);
      ev::Span<const int64_t> keys_of_table;
      Check(ranks_[0].plan->UniqueKeys(t, &keys_of_table));
      served += keys_of_table.size();
    }
    std::printf("  %.0f ids, %.0f keys sent, %.0f distinct keys served\n",
                static_cast<double>(ids_) * c_.tables, keys, served);
  }

  void RunAlone() {
    Clock clock;
    const Tables tables = MakeTables(c_, 0, 1, &pool_);
    Rank& rank = ranks_[0];
    for (int step = -3; step < c_.steps; ++step) {
      clock.set_counting(step >= 0);
      const auto& batch = rank.batches[(step + 3) % rank.batches.size()];
      std::vector<ev::PooledInput> inputs(c_.tables);
      for (int t = 0; t < c_.tables; ++t) {
        inputs[t].table = tables[t].get();
        inputs[t].combiner = ev::Combiner::kSum;
        inputs[t].batch_size = c_.batch;
        inputs[t].num_ids = ids_;
        inputs[t].ids64 = batch[t].data();
        inputs[t].row_splits = splits_.data();
      }
      const std::vector<float*> outputs = rank.outputs.Reserve(OutputSizes());
      std::shared_ptr<const ev::LookupPlan> plan;
      clock.Measure("forward", [&] {
        return ev::PooledForward(inputs, tables, outputs, &pool_, &plan);
      });
      const std::vector<float*> sums =
          rank.unique_grads.Reserve(GradientSizes(*plan));
      clock.Measure("gradient", [&] {
        return ev::PooledBackward(*plan, Gradients(rank), sums, &pool_);
      });
      clock.Measure("update",
                    [&] { return Update(tables, *plan, sums, step); });
    }
    std::printf("one rank alone, %d threads\n", c_.threads);
    clock.Print(static_cast<double>(ids_) * c_.tables);
  }

 private:
  // Runs the op for every rank; only rank 0's turn is measured.
  void ForEachRank(const std::string& op,
                   const std::function<ev::Status(Rank*)>& run) {
    for (Rank& rank : ranks_) {
      if (&rank == &ranks_[0]) {
        clock_->Measure(op, [&] { return run(&rank); });
      } else {
        Check(run(&rank));
      }
    }
  }

  // Turns the messages that each rank sent into the messages that each
  // received. sizes(r, q): size of the message from rank r to rank q.
  template <typename T>
  void Exchange(std::vector<T> Rank::*sent, std::vector<T> Rank::*received,
                const std::function<int64_t(int, int)>& sizes) {
    for (int q = 0; q < c_.ranks; ++q) {
      std::vector<T>& to = ranks_[q].*received;
      int64_t at = 0;
      for (int r = 0; r < c_.ranks; ++r) {
        int64_t from = 0;
        for (int p = 0; p < q; ++p) from += sizes(r, p);
        const int64_t n = sizes(r, q);
        Grow(&to, at + n);
        std::copy_n((ranks_[r].*sent).data() + from, n, to.data() + at);
        at += n;
      }
    }
  }

  void OneStep(int step) {
    const int64_t width = sok::WireBytes(c_.wire);
    ForEachRank("route", [&](Rank* rank) {
      const auto& batch = rank->batches[(step + 3) % rank->batches.size()];
      std::vector<sok::RouteInput> inputs(c_.tables);
      for (int t = 0; t < c_.tables; ++t) {
        inputs[t].dim = c_.dim;
        inputs[t].combiner = ev::Combiner::kSum;
        inputs[t].placement = placement_.get();
        inputs[t].batch_size = c_.batch;
        inputs[t].num_ids = ids_;
        inputs[t].ids64 = batch[t].data();
        inputs[t].row_splits = splits_.data();
      }
      sok::RouteOptions options;
      options.num_ranks = c_.ranks;
      options.format = format_;
      return sok::Route(inputs, options, &pool_, &rank->route);
    });
    ForEachRank("write message", [&](Rank* rank) {
      Grow(&rank->message, rank->route->message_size());
      return sok::WriteMessage(*rank->route, &pool_, rank->message.data());
    });
    const auto key_size = [&](int r, int q) {
      return ranks_[r].route->message_size(q);
    };
    Exchange<int64_t>(&Rank::message, &Rank::keys, key_size);
    for (int q = 0; q < c_.ranks; ++q) {
      ranks_[q].key_splits.clear();
      for (int r = 0; r < c_.ranks; ++r) {
        ranks_[q].key_splits.push_back(static_cast<int32_t>(key_size(r, q)));
      }
    }
    ForEachRank("serve", [&](Rank* rank) {
      const int64_t size = std::accumulate(rank->key_splits.begin(),
                                           rank->key_splits.end(), int64_t{0});
      EV_RETURN_IF_ERROR(sok::MessageLayout::Parse(
          format_, Span<const int64_t>(rank->keys.data(), size),
          rank->key_splits, &rank->layout));
      int64_t floats = 0;
      const std::vector<int64_t> dims(c_.tables, c_.dim);
      for (int r = 0; r < c_.ranks; ++r) {
        floats += sok::RowFloats(rank->layout, r, all_tables_, dims);
      }
      Grow(&rank->rows, floats * width);
      return sok::Serve(rank->layout, rank->keys.data(), rank->tables, c_.wire,
                        rank->rows.data(), &pool_, &rank->plan);
    });
    // Rank q sends rank r one row for each key that it received from rank r.
    const auto sums_size = [&](int r, int q) {
      return ranks_[r].route->row_floats(q, all_tables_) * width;
    };
    Exchange<char>(&Rank::rows, &Rank::got_rows,
                   [&](int r, int q) { return sums_size(q, r); });
    ForEachRank("pool", [&](Rank* rank) {
      int64_t floats = 0;
      for (int r = 0; r < c_.ranks; ++r) {
        floats += rank->route->row_floats(r, all_tables_);
      }
      const std::vector<float*> reserved = rank->outputs.Reserve(OutputSizes());
      const std::vector<ev::MutableFloats> outputs(reserved.begin(),
                                                   reserved.end());
      return sok::PoolReceived(*rank->route, rank->got_rows.data(), floats,
                               c_.wire, outputs, &pool_);
    });
    ForEachRank("pool gradient", [&](Rank* rank) {
      int64_t floats = 0;
      for (int r = 0; r < c_.ranks; ++r) {
        floats += rank->route->row_floats(r, all_tables_);
      }
      Grow(&rank->sums, floats * width);
      return sok::PoolGradient(*rank->route, nullptr, all_tables_,
                               Gradients(*rank), c_.wire, rank->sums.data(),
                               &pool_);
    });
    Exchange<char>(&Rank::sums, &Rank::got_sums, sums_size);
    ForEachRank("serve gradient", [&](Rank* rank) {
      int64_t floats = 0;
      for (int r = 0; r < c_.ranks; ++r) {
        for (int t = 0; t < c_.tables; ++t) {
          floats += rank->layout.num_keys(r, t) * c_.dim;
        }
      }
      return sok::ServeGradient(
          rank->layout, *rank->plan, all_tables_, rank->got_sums.data(), floats,
          c_.wire, rank->unique_grads.Reserve(GradientSizes(*rank->plan)),
          &pool_);
    });
    ForEachRank("update", [&](Rank* rank) {
      return Update(rank->tables, *rank->plan,
                    rank->unique_grads.Reserve(GradientSizes(*rank->plan)),
                    step);
    });
  }

  ev::Status Update(const Tables& tables, const ev::LookupPlan& plan,
                    const std::vector<float*>& sums, int64_t step) {
    std::vector<ev::UpdateInput> updates(c_.tables);
    for (int t = 0; t < c_.tables; ++t) {
      updates[t].table = tables[t].get();
      EV_RETURN_IF_ERROR(plan.UniqueKeys(t, &updates[t].keys));
      updates[t].grads = sums[t];
      updates[t].plan = &plan;
      updates[t].plan_table = t;
    }
    const std::vector<std::vector<ev::SlotSpec>> slots(c_.tables, Slots());
    return ev::ApplyRule("Adagrad", std::vector<float>{0.01f}, updates, slots,
                         step, &pool_);
  }

  std::vector<int64_t> OutputSizes() const {
    return std::vector<int64_t>(c_.tables, c_.batch * c_.dim);
  }
  std::vector<int64_t> GradientSizes(const ev::LookupPlan& plan) const {
    std::vector<int64_t> sizes;
    for (int t = 0; t < c_.tables; ++t) {
      ev::Span<const int64_t> keys;
      Check(plan.UniqueKeys(t, &keys));
      sizes.push_back(keys.size() * c_.dim);
    }
    return sizes;
  }
  static std::vector<ev::ConstFloats> Gradients(const Rank& rank) {
    std::vector<ev::ConstFloats> grads;
    for (const auto& grad : rank.grads) grads.push_back(grad.data());
    return grads;
  }

  const Config c_;
  ev::testing::ThreadPool pool_;
  int64_t ids_ = 0;  // of one table
  std::vector<int64_t> splits_;
  std::unique_ptr<sok::Placement> placement_;
  sok::MessageFormat format_;
  std::vector<int> all_tables_;
  std::vector<Rank> ranks_;
  Clock* clock_ = nullptr;
};

sok::WireType ParseWire(const std::string& name) {
  if (name == "float16") return sok::WireType::kFloat16;
  if (name == "bfloat16") return sok::WireType::kBFloat16;
  return sok::WireType::kFloat32;
}

}  // namespace

int main(int argc, char** argv) {
  Config c;
  std::string wire;
  if (!ev::bench::Flags()
           .Add("ranks", &c.ranks)
           .Add("threads", &c.threads)
           .Add("steps", &c.steps)
           .Add("tables", &c.tables)
           .Add("batch", &c.batch)
           .Add("hotness", &c.hotness)
           .Add("dim", &c.dim)
           .Add("rows", &c.rows)
           .Add("wire", &wire)
           .Add("counts", &c.counts)
           .Parse(argc, argv)) {
    return 2;
  }
  c.wire = ParseWire(wire);
  Job job(c);
  job.RunOverRanks();
  job.RunAlone();
  return 0;
}
