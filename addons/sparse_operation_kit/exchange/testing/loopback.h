// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Test helper: a job of W ranks in one process. Each rank has its own tables;
// exchanges are copies between vectors.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TESTING_LOOPBACK_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TESTING_LOOPBACK_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "addons/sparse_operation_kit/exchange/pool.h"
#include "addons/sparse_operation_kit/exchange/route.h"
#include "addons/sparse_operation_kit/exchange/serve.h"
#include "kernels/engine/embedding/update/row_update.h"

namespace sok {
namespace testing {

// One table's ids of one rank's batch.
struct Bag {
  std::vector<int64_t> ids;
  std::vector<int64_t> splits;  // [B + 1]
  std::vector<float> weights;   // [N], or empty

  int64_t batch_size() const { return splits.size() - 1; }
};

struct TableSpec {
  std::string name;
  int64_t dim;
  ev::Combiner combiner;
  std::vector<int32_t> ranks;  // placement
};

inline std::vector<int32_t> AllRanks(int num_ranks) {
  std::vector<int32_t> ranks(num_ranks);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

template <typename T>
using PerRank = std::vector<std::vector<T>>;

// Copies what rank r sent to rank q into q's received data. Returns the
// received splits.
template <typename T>
PerRank<int32_t> AllToAll(const PerRank<T>& sent,
                          const PerRank<int32_t>& splits,
                          PerRank<T>* received) {
  const size_t num_ranks = sent.size();
  PerRank<int32_t> received_splits(num_ranks);
  received->assign(num_ranks, std::vector<T>());
  for (size_t r = 0; r < num_ranks; ++r) {
    auto from = sent[r].begin();
    for (size_t q = 0; q < num_ranks; ++q) {
      (*received)[q].insert((*received)[q].end(), from, from + splits[r][q]);
      received_splits[q].push_back(splits[r][q]);
      from += splits[r][q];
    }
  }
  return received_splits;
}

class LoopbackJob {
 public:
  struct Options {
    int num_ranks = 2;
    WireType wire = WireType::kFloat32;
    bool with_occurrences = false;
    ev::Parallel* parallel = nullptr;
    ev::RowStorage storage = ev::RowStorage::kDram;
    DistinctDevice* device = nullptr;  // of all ranks; may be null
    // Apply makes a call per table: after a shortage of device memory a call
    // may have updated some of its tables.
    bool updates_tables_apart = false;
    // Makes each call of the tested code, if it is not null. What the job
    // itself allocates is outside of it.
    std::function<ev::Status(const std::function<ev::Status()>&)> around;
  };

  LoopbackJob(const Options& options, const std::vector<TableSpec>& specs,
              const std::vector<float>& default_row_of_ones)
      : options_(options), specs_(specs) {
    for (int r = 0; r < options.num_ranks; ++r) {
      tables_.emplace_back();
      for (const TableSpec& spec : specs) {
        tables_.back().push_back(MakeTable(spec, options.with_occurrences,
                                           default_row_of_ones,
                                           options.storage));
      }
    }
    for (const TableSpec& spec : specs) {
      placements_.emplace_back(spec.ranks);
    }
  }

  // Default row k of R has values[k] in every column.
  static std::shared_ptr<ev::EmbeddingTable> MakeTable(
      const TableSpec& spec, bool with_meta, const std::vector<float>& values,
      ev::RowStorage storage = ev::RowStorage::kDram) {
    ev::TableOptions options;
    options.name = spec.name;
    options.dim = spec.dim;
    options.record_frequency = options.record_version = with_meta;
    options.storage = storage;
    options.memory_bytes = 64 * spec.dim * sizeof(float);  // of two memories
    auto table = std::make_shared<ev::EmbeddingTable>(options);
    std::vector<float> rows;
    for (float value : values) rows.insert(rows.end(), spec.dim, value);
    const ev::Status status = table->Initialize(rows, values.size());
    return status.ok() ? table : nullptr;
  }

  ev::EmbeddingTable* table(int r, int t) { return tables_[r][t].get(); }

  // outputs[r][t]: [B, dim].
  ev::Status Forward(const std::vector<std::vector<Bag>>& bags,
                     std::vector<PerRank<float>>* outputs) {
    const int num_ranks = options_.num_ranks;
    const int num_tables = static_cast<int>(specs_.size());
    MessageFormat format;
    format.num_tables = num_tables;
    format.with_occurrences = options_.with_occurrences;
    format.fingerprint = 0x5eed;
    std::vector<int> all(num_tables);
    std::iota(all.begin(), all.end(), 0);
    std::vector<int64_t> dims;
    for (const TableSpec& spec : specs_) dims.push_back(spec.dim);

    routes_.assign(num_ranks, nullptr);
    PerRank<int64_t> messages(num_ranks);
    PerRank<int32_t> splits(num_ranks);
    for (int r = 0; r < num_ranks; ++r) {
      std::vector<RouteInput> inputs;
      for (int t = 0; t < num_tables; ++t) {
        inputs.push_back(MakeInput(t, bags[r][t]));
      }
      RouteOptions route;
      route.num_ranks = num_ranks;
      route.format = format;
      route.device = options_.device;
      EV_RETURN_IF_ERROR(Call([&] {
        return Route(inputs, route, options_.parallel, &routes_[r]);
      }));
      messages[r].resize(routes_[r]->message_size());
      EV_RETURN_IF_ERROR(Call([&] {
        return WriteMessage(*routes_[r], options_.parallel, messages[r].data());
      }));
      for (int q = 0; q < num_ranks; ++q) {
        splits[r].push_back(static_cast<int32_t>(routes_[r]->message_size(q)));
      }
    }
    PerRank<int64_t> keys;
    const PerRank<int32_t> key_splits = AllToAll(messages, splits, &keys);
    sent_numbers_ = 0;
    for (const auto& message : messages) sent_numbers_ += message.size();

    plans_.assign(num_ranks, nullptr);
    layouts_.assign(num_ranks, MessageLayout());
    PerRank<char> rows(num_ranks);
    splits.assign(num_ranks, std::vector<int32_t>());
    for (int r = 0; r < num_ranks; ++r) {
      EV_RETURN_IF_ERROR(Call([&] {
        return MessageLayout::Parse(format, keys[r], key_splits[r],
                                    &layouts_[r]);
      }));
      int64_t bytes = 0;
      for (int q = 0; q < num_ranks; ++q) {
        splits[r].push_back(static_cast<int32_t>(
            RowFloats(layouts_[r], q, all, dims) * WireBytes(options_.wire)));
        bytes += splits[r].back();
      }
      rows[r].resize(bytes);
      EV_RETURN_IF_ERROR(Call([&] {
        return Serve(layouts_[r], keys[r].data(), tables_[r], options_.wire,
                     rows[r].data(), options_.parallel, &plans_[r]);
      }));
    }
    AllToAll(rows, splits, &received_rows_);
    outputs->assign(num_ranks, PerRank<float>(num_tables));
    for (int r = 0; r < num_ranks; ++r) {
      std::vector<ev::MutableFloats> out;
      for (int t = 0; t < num_tables; ++t) {
        (*outputs)[r][t].resize(bags[r][t].batch_size() * specs_[t].dim);
        out.push_back((*outputs)[r][t].data());
      }
      EV_RETURN_IF_ERROR(Call([&] {
        return PoolReceived(*routes_[r], received_rows_[r].data(),
                            num_floats(r), options_.wire, out,
                            options_.parallel);
      }));
    }
    return ev::Status::OK();
  }

  // grads[r][k]: gradient of outputs[r][tables[k]]. Fills unique_grads_[r][k],
  // in the order of plan(r).UniqueKeys(tables[k]).
  ev::Status Backward(const std::vector<int>& tables,
                      const std::vector<PerRank<float>>& grads) {
    const int num_ranks = options_.num_ranks;
    grad_tables_ = tables;
    PerRank<char> messages(num_ranks), received;
    PerRank<int32_t> splits(num_ranks);
    for (int r = 0; r < num_ranks; ++r) {
      int64_t bytes = 0;
      for (int q = 0; q < num_ranks; ++q) {
        splits[r].push_back(static_cast<int32_t>(
            routes_[r]->row_floats(q, tables) * WireBytes(options_.wire)));
        bytes += splits[r].back();
      }
      messages[r].resize(bytes);
      std::vector<ev::ConstFloats> in;
      for (const auto& grad : grads[r]) in.push_back(grad.data());
      // Half of the ranks pass a grouping, the others do not.
      std::shared_ptr<const RouteOccurrences> occurrences;
      if (r % 2 == 0) {
        EV_RETURN_IF_ERROR(Call([&] {
          return GroupRoute(*routes_[r], options_.parallel, &occurrences);
        }));
      }
      EV_RETURN_IF_ERROR(Call([&] {
        return PoolGradient(*routes_[r], occurrences.get(), tables, in,
                            options_.wire, messages[r].data(),
                            options_.parallel,
                            {received_rows_[r].data(), num_floats(r)});
      }));
    }
    AllToAll(messages, splits, &received);
    unique_grads_.assign(num_ranks, PerRank<float>(tables.size()));
    for (int r = 0; r < num_ranks; ++r) {
      std::vector<float*> out;
      for (size_t k = 0; k < tables.size(); ++k) {
        ev::Span<const int64_t> keys;
        EV_RETURN_IF_ERROR(
            Call([&] { return plans_[r]->UniqueKeys(tables[k], &keys); }));
        unique_grads_[r][k].resize(keys.size() * specs_[tables[k]].dim);
        out.push_back(unique_grads_[r][k].data());
      }
      EV_RETURN_IF_ERROR(Call([&] {
        return ServeGradient(layouts_[r], *plans_[r], tables,
                             received[r].data(),
                             received[r].size() / WireBytes(options_.wire),
                             options_.wire, out, options_.parallel);
      }));
    }
    return ev::Status::OK();
  }

  // The transpose of the last Backward. given[r][k]: in the order of
  // plan(r).UniqueKeys of Backward's k-th table. pooled[r][k]: [B, dim].
  ev::Status PoolGiven(const std::vector<PerRank<float>>& given,
                       std::vector<PerRank<float>>* pooled) {
    const int num_ranks = options_.num_ranks;
    PerRank<char> values(num_ranks), received;
    PerRank<int32_t> splits(num_ranks);
    std::vector<int64_t> dims;
    for (const TableSpec& spec : specs_) dims.push_back(spec.dim);
    for (int r = 0; r < num_ranks; ++r) {
      int64_t floats = 0;
      for (int q = 0; q < num_ranks; ++q) {
        const int64_t to_q = RowFloats(layouts_[r], q, grad_tables_, dims);
        splits[r].push_back(
            static_cast<int32_t>(to_q * WireBytes(options_.wire)));
        floats += to_q;
      }
      values[r].resize(floats * WireBytes(options_.wire));
      std::vector<const float*> in;
      for (const auto& rows : given[r]) in.push_back(rows.data());
      EV_RETURN_IF_ERROR(Call([&] {
        return ServeGivenRows(layouts_[r], *plans_[r], grad_tables_, in, floats,
                              options_.wire, values[r].data(),
                              options_.parallel);
      }));
    }
    AllToAll(values, splits, &received);
    pooled->assign(num_ranks, PerRank<float>(grad_tables_.size()));
    for (int r = 0; r < num_ranks; ++r) {
      std::vector<float*> out;
      for (size_t k = 0; k < grad_tables_.size(); ++k) {
        const int t = grad_tables_[k];
        (*pooled)[r][k].resize(routes_[r]->batch_size(t) * specs_[t].dim);
        out.push_back((*pooled)[r][k].data());
      }
      const int64_t count = received[r].size() / WireBytes(options_.wire);
      EV_RETURN_IF_ERROR(Call([&] {
        return PoolGivenRows(*routes_[r], grad_tables_,
                             {received[r].data(), count}, options_.wire, out,
                             options_.parallel,
                             {received_rows_[r].data(), num_floats(r)});
      }));
    }
    return ev::Status::OK();
  }

  // Updates every rank's rows with the gradients of the last Backward. After an
  // error the next call goes on with the update that failed.
  ev::Status Apply(const std::string& rule, const std::vector<float>& hyper,
                   const std::vector<ev::SlotSpec>& slots, int64_t step) {
    const size_t at_once =
        options_.updates_tables_apart ? 1 : grad_tables_.size();
    const size_t all = options_.num_ranks * grad_tables_.size();
    for (; num_updated_ < all; num_updated_ += at_once) {
      const size_t r = num_updated_ / grad_tables_.size();
      std::vector<ev::UpdateInput> inputs(at_once);
      for (size_t i = 0; i < inputs.size(); ++i) {
        const size_t k = num_updated_ % grad_tables_.size() + i;
        const int t = grad_tables_[k];
        inputs[i].table = tables_[r][t].get();
        EV_RETURN_IF_ERROR(
            Call([&] { return plans_[r]->UniqueKeys(t, &inputs[i].keys); }));
        inputs[i].grads = unique_grads_[r][k].data();
        inputs[i].plan = plans_[r].get();
        inputs[i].plan_table = t;
      }
      const std::vector<std::vector<ev::SlotSpec>> all_slots(at_once, slots);
      EV_RETURN_IF_ERROR(Call([&] {
        return ev::ApplyRule(rule, hyper, inputs, all_slots, step,
                             options_.parallel);
      }));
    }
    num_updated_ = 0;
    return ev::Status::OK();
  }

  RouteInput MakeInput(int t, const Bag& bag) const {
    RouteInput in;
    in.name = specs_[t].name;
    in.dim = specs_[t].dim;
    in.combiner = specs_[t].combiner;
    in.placement = &placements_[t];
    in.batch_size = bag.batch_size();
    in.num_ids = bag.ids.size();
    in.ids64 = bag.ids.data();
    in.row_splits = bag.splits.data();
    if (!bag.weights.empty()) in.weights = bag.weights.data();
    return in;
  }

  const RoutePlan& route(int r) const { return *routes_[r]; }
  const ev::LookupPlan& plan(int r) const { return *plans_[r]; }
  const std::vector<float>& unique_grads(int r, int k) const {
    return unique_grads_[r][k];
  }
  const char* received_rows(int r) const { return received_rows_[r].data(); }
  int64_t num_floats(int r) const {
    return received_rows_[r].size() / WireBytes(options_.wire);
  }
  int64_t sent_numbers() const { return sent_numbers_; }

 private:
  ev::Status Call(const std::function<ev::Status()>& call) const {
    return options_.around ? options_.around(call) : call();
  }

  const Options options_;
  const std::vector<TableSpec> specs_;
  std::vector<Placement> placements_;
  std::vector<std::vector<std::shared_ptr<ev::EmbeddingTable>>> tables_;
  std::vector<std::shared_ptr<const RoutePlan>> routes_;
  std::vector<std::shared_ptr<const ev::LookupPlan>> plans_;
  std::vector<MessageLayout> layouts_;
  PerRank<char> received_rows_;
  std::vector<int> grad_tables_;
  std::vector<PerRank<float>> unique_grads_;
  int64_t sent_numbers_ = 0;
  size_t num_updated_ = 0;  // tables of ranks that Apply has updated
};

}  // namespace testing
}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TESTING_LOOPBACK_H_
