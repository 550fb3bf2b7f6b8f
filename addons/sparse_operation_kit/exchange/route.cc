// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/route.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>
#include <numeric>
#include <utility>

#include "addons/sparse_operation_kit/exchange/route_on_device.h"
#include "addons/sparse_operation_kit/exchange/routed_table.h"
#include "kernels/engine/base/scratch.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/combine/pooling_gradient.h"
#include "kernels/engine/ids/sample_offsets.h"
#include "kernels/engine/ids/unique.h"

namespace sok {
namespace {

using ev::LineBuffer;
using ev::Recycler;
using ev::Span;
using ev::Status;

constexpr int64_t kIdsPerTask = 8192;
constexpr size_t kMaxIdlePlans = 32;
constexpr size_t kMaxIdleBytes = size_t{1} << 30;

// What one table's dedup and sort need for a moment.
struct Scratch {
  ev::Unique unique;
  LineBuffer arrays;
};

Recycler<Scratch>& Scratches() {
  static Recycler<Scratch>* const scratches = new Recycler<Scratch>(64);
  return *scratches;
}

// Never destroyed: plans may be released while the process ends.
Recycler<RoutePlan>& IdlePlans() {
  static Recycler<RoutePlan>* const plans =
      new Recycler<RoutePlan>(kMaxIdlePlans);
  return *plans;
}

Status Bad(const RouteInput& in, const std::string& what) {
  return ev::InvalidArgument(what + ", table '" + in.name + "'");
}

Status CheckInput(const RouteInput& in, int num_ranks) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  if (in.dim < 1) return Bad(in, "the dim must be at least 1");
  if (in.batch_size < 0 || in.batch_size >= kMax) {
    return Bad(in, "the batch size must be in [0, 2^31 - 1), got " +
                       std::to_string(in.batch_size));
  }
  if (in.num_ids < 0 || in.num_ids >= kMax) {
    return Bad(in, "the number of ids must be in [0, 2^31 - 1), got " +
                       std::to_string(in.num_ids));
  }
  if (in.num_ids > 0 && (in.ids64 != nullptr) == (in.ids32 != nullptr)) {
    return Bad(in, "ids must come either as int64 or as int32");
  }
  if (in.row_splits != nullptr && in.coo_indices != nullptr) {
    return Bad(in, "samples must come either as row splits or as indices");
  }
  if (in.num_ids > 0 && in.row_splits == nullptr && in.coo_indices == nullptr) {
    return Bad(in, "ids came without row splits and without indices");
  }
  if (in.placement == nullptr || in.placement->ranks().empty()) {
    return Bad(in, "no rank holds it");
  }
  for (int32_t rank : in.placement->ranks()) {
    if (rank < 0 || rank >= num_ranks) {
      return Bad(in, "it is placed on rank " + std::to_string(rank) + " of " +
                         std::to_string(num_ranks));
    }
  }
  return Status::OK();
}

// Distinct keys in order of first occurrence, into scratch arrays of length N.
template <typename Id>
Status Distinct(const Id* ids, int64_t n, bool dedup, ev::Unique* unique,
                int64_t* keys, int32_t* inverse, int32_t* counts,
                int64_t* num_unique) {
  if (dedup) {
    return unique->Run(Span<const Id>(ids, n), keys, inverse, counts,
                       num_unique);
  }
  std::copy_n(ids, n, keys);
  std::iota(inverse, inverse + n, 0);
  std::fill_n(counts, n, 1);
  *num_unique = n;
  return Status::OK();
}

// Numbers the keys anew in send order: places[u] is what key u becomes. counts:
// null where nobody wants them.
void SortByOwner(const Placement& placement, int num_ranks, const int64_t* keys,
                 const int32_t* counts, int32_t* places, RoutedTable* table) {
  const int64_t n = table->num_unique;
  std::vector<int32_t>& starts = table->starts;
  starts.assign(num_ranks + 1, 0);
  for (int64_t u = 0; u < n; ++u) {
    places[u] = placement.OwnerOf(keys[u]);
    ++starts[places[u] + 1];
  }
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  std::vector<int32_t> next(starts.begin(), starts.end() - 1);
  for (int64_t u = 0; u < n; ++u) {
    const int32_t place = next[places[u]]++;
    places[u] = place;
    table->keys[place] = keys[u];
    if (counts != nullptr) table->counts[place] = counts[u];
  }
}

// Whether a device deduplicates this table: *distinct is set then. Without
// memory there the processors do it.
Status StartDistinct(const RouteInput& in, const RouteOptions& options,
                     std::unique_ptr<ev::DeviceDistinct>* distinct) {
  distinct->reset();
  if (options.device == nullptr || !options.dedup || in.weights != nullptr ||
      in.num_ids <
          std::max<int64_t>(1, options.device->min_ids_to_deduplicate()) ||
      in.num_ids > ev::kMaxDistinctIds) {
    return Status::OK();
  }
  const Status status =
      options.device->StartDistinct(in.num_ids, in.batch_size, distinct);
  if (status.code() == ev::StatusCode::kResourceExhausted) return Status::OK();
  return NamedAfter(in.name, status);
}

void Prepare(const RouteInput& in, RoutedTable* table) {
  table->name = in.name;
  table->combiner = in.combiner;
  table->dim = in.dim;
  table->batch_size = in.batch_size;
  table->num_ids = in.num_ids;
  table->has_weights = in.weights != nullptr && in.num_ids > 0;
  table->Reserve(in.num_ids, in.batch_size);
}

// Where samples begin, and what scales their gradients.
Status RouteSamples(const RouteInput& in, RoutedTable* table) {
  EV_RETURN_IF_ERROR(
      in.row_splits != nullptr
          ? ev::OffsetsFromSplits(in.row_splits, in.batch_size, in.num_ids,
                                  in.name, table->offsets)
          : ev::OffsetsFromIndices(in.coo_indices, in.batch_size, in.num_ids,
                                   in.name, table->offsets));
  if (table->has_weights) std::copy_n(in.weights, in.num_ids, table->weights);
  table->has_factors =
      ev::SampleFactors(in.combiner, table->offsets,
                        table->has_weights ? table->weights : nullptr, 0,
                        in.batch_size, table->factors);
  return Status::OK();
}

// The distinct keys in send order; the inverse names them in the order of
// first occurrence until RouteIds. *places: of each of those.
Status RouteKeys(const RouteInput& in, const RouteOptions& options,
                 Scratch* scratch, RoutedTable* table, int32_t** places) {
  const int64_t n = in.num_ids;
  ev::ArrayLayout layout;
  const size_t keys_at = layout.Add<int64_t>(n);
  const size_t counts_at = layout.Add<int32_t>(n);
  const size_t places_at = layout.Add<int32_t>(n);
  char* base = static_cast<char*>(scratch->arrays.Reserve(layout.bytes()));
  int64_t* keys = reinterpret_cast<int64_t*>(base + keys_at);
  int32_t* counts = reinterpret_cast<int32_t*>(base + counts_at);
  *places = reinterpret_cast<int32_t*>(base + places_at);
  EV_RETURN_IF_ERROR(
      in.ids64 != nullptr
          ? Distinct(in.ids64, n, options.dedup, &scratch->unique, keys,
                     table->inverse, counts, &table->num_unique)
          : Distinct(in.ids32, n, options.dedup, &scratch->unique, keys,
                     table->inverse, counts, &table->num_unique));
  SortByOwner(*in.placement, options.num_ranks, keys, counts, *places, table);
  return Status::OK();
}

// The same of a table that a device has deduplicated and that was waited for.
Status TakeKeys(const RouteInput& in, const RouteOptions& options,
                Scratch* scratch, RoutedTable* table) {
  const ev::DeviceDistinct& distinct = *table->distinct;
  table->num_unique = distinct.num_unique();
  if (distinct.num_unknown() != table->num_unique) {
    return NamedAfter(
        in.name,
        ev::Internal(
            "a device without rows knows " +
            std::to_string(table->num_unique - distinct.num_unknown()) +
            " of " + std::to_string(table->num_unique) + " keys"));
  }
  int32_t* counts = nullptr;
  if (options.format.with_occurrences) {
    counts = scratch->arrays.ReserveOf<int32_t>(table->num_unique);
    EV_RETURN_IF_ERROR(NamedAfter(in.name, distinct.Inverse(nullptr, counts)));
  }
  SortByOwner(*in.placement, options.num_ranks, distinct.unknown_keys(), counts,
              table->places, table);
  return Status::OK();
}

// Ids [begin, end) name their keys in send order.
void RouteIds(const int32_t* places, int64_t begin, int64_t end,
              RoutedTable* table) {
  for (int64_t i = begin; i < end; ++i) {
    table->inverse[i] = places[table->inverse[i]];
  }
}

Status CheckSizes(const RoutePlan& plan) {
  constexpr int64_t kMax = std::numeric_limits<int32_t>::max();
  std::vector<int> all(plan.num_tables());
  std::iota(all.begin(), all.end(), 0);
  for (int r = 0; r < plan.num_ranks(); ++r) {
    const int64_t size =
        std::max(plan.message_size(r), plan.row_floats(r, all));
    if (size > kMax) {
      return ev::InvalidArgument("lookup over ranks: " + std::to_string(size) +
                                 " numbers for rank " + std::to_string(r) +
                                 ", at most 2^31 - 1 can be sent at once. Use "
                                 "smaller batches, or several lookups");
    }
  }
  return Status::OK();
}

}  // namespace

RoutePlan::RoutePlan() {}
RoutePlan::~RoutePlan() {}

const std::string& RoutePlan::name(int t) const { return tables_[t]->name; }
int64_t RoutePlan::dim(int t) const { return tables_[t]->dim; }
int64_t RoutePlan::batch_size(int t) const { return tables_[t]->batch_size; }
int64_t RoutePlan::num_ids(int t) const { return tables_[t]->num_ids; }

int64_t RoutePlan::num_keys(int r, int t) const {
  const std::vector<int32_t>& starts = tables_[t]->starts;
  return starts[r + 1] - starts[r];
}

int64_t RoutePlan::message_size(int r) const {
  int64_t keys = 0;
  for (int t = 0; t < num_tables(); ++t) keys += num_keys(r, t);
  return options_.format.header() + keys * options_.format.per_key();
}

int64_t RoutePlan::message_size() const {
  int64_t size = 0;
  for (int r = 0; r < num_ranks(); ++r) size += message_size(r);
  return size;
}

int64_t RoutePlan::row_floats(int r, Span<const int> tables) const {
  int64_t floats = 0;
  for (int t : tables) floats += num_keys(r, t) * tables_[t]->dim;
  return floats;
}

size_t RoutePlan::bytes() const {
  size_t bytes = 0;
  for (const auto& table : tables_) {
    bytes += table->arrays.bytes() + table->fetched.bytes();
  }
  return bytes;
}

void RoutePlan::GiveBack() {
  for (const auto& table : tables_) table->distinct.reset();
}

std::shared_ptr<RoutePlan> RoutePlan::Make(const RouteOptions& options) {
  std::unique_ptr<RoutePlan> plan = IdlePlans().Take();
  if (plan == nullptr) plan.reset(new RoutePlan);
  plan->options_ = options;
  while (plan->tables_.size() < static_cast<size_t>(plan->num_tables())) {
    plan->tables_.emplace_back(new RoutedTable);
  }
  return std::shared_ptr<RoutePlan>(plan.release(), [](RoutePlan* used) {
    std::unique_ptr<RoutePlan> owned(used);
    owned->GiveBack();
    if (owned->bytes() <= kMaxIdleBytes) {
      IdlePlans().Release(std::move(owned));
    }
  });
}

Status Route(Span<const RouteInput> inputs, const RouteOptions& options,
             ev::Parallel* parallel, std::shared_ptr<const RoutePlan>* plan) {
  if (inputs.size() != static_cast<size_t>(options.format.num_tables) ||
      options.num_ranks < 1) {
    return ev::InvalidArgument(
        "lookup over ranks: " + std::to_string(inputs.size()) + " inputs for " +
        std::to_string(options.format.num_tables) + " tables and " +
        std::to_string(options.num_ranks) + " ranks");
  }
  return ev::CatchBadAlloc([&] {
    const int num_tables = options.format.num_tables;
    for (const RouteInput& in : inputs) {
      EV_RETURN_IF_ERROR(CheckInput(in, options.num_ranks));
    }
    const std::shared_ptr<RoutePlan> made = RoutePlan::Make(options);
    for (int t = 0; t < num_tables; ++t) {
      RoutedTable* const table = made->mutable_routed(t);
      EV_RETURN_IF_ERROR(StartDistinct(inputs[t], options, &table->distinct));
      Prepare(inputs[t], table);
    }
    // Small tables are done in one task each, all of one part. Of large ones
    // the keys are one part, which begins first since it is the longest, and
    // the samples another. What a device is waiting for comes before all else.
    const auto is_large = [&](int t) {
      return inputs[t].num_ids + inputs[t].batch_size / 4 > kIdsPerTask;
    };
    const auto is_there = [&](int t) {
      return made->routed(t).distinct != nullptr;
    };
    std::vector<Recycler<Scratch>::Handle> scratch;
    for (int t = 0; t < num_tables; ++t) {
      scratch.push_back(Scratches().Acquire());
    }
    std::vector<int32_t*> places(num_tables, nullptr);
    RouteOnDevice on_device(inputs, made.get(), [&](int t) {
      return TakeKeys(inputs[t], options, &*scratch[t],
                      made->mutable_routed(t));
    });
    // A piece of item t is keys of table t, one of item T + t samples, one of
    // item 2 T + t ids for a device.
    ev::TaskList tasks(kIdsPerTask), ids(kIdsPerTask);
    for (int t = 0; t < num_tables; ++t) {
      if (!is_there(t)) continue;
      tasks.AddWhole(num_tables + t, inputs[t].batch_size / 4);
      on_device.AddPuts(t, 2 * num_tables + t, &tasks);
    }
    for (int t = 0; t < num_tables; ++t) {
      if (is_there(t) || !is_large(t)) continue;
      tasks.AddWhole(t, kIdsPerTask);
      ids.Add(t, inputs[t].num_ids, 1);
    }
    for (int t = 0; t < num_tables; ++t) {
      if (is_there(t)) continue;
      tasks.AddWhole(num_tables + t, inputs[t].batch_size / 4 +
                                         (is_large(t) ? 0 : inputs[t].num_ids));
    }
    EV_RETURN_IF_ERROR(
        ev::RunPieces(parallel, tasks, [&](const ev::Piece& piece) {
          const int t = piece.item % num_tables;
          RoutedTable* const table = made->mutable_routed(t);
          if (piece.item >= 2 * num_tables) {
            return on_device.Put(t, piece.begin, piece.end);
          }
          if (piece.item < num_tables) {
            return RouteKeys(inputs[t], options, &*scratch[t], table,
                             &places[t]);
          }
          EV_RETURN_IF_ERROR(RouteSamples(inputs[t], table));
          if (is_there(t)) return on_device.SamplesAreThere(t);
          if (is_large(t)) return Status::OK();
          EV_RETURN_IF_ERROR(
              RouteKeys(inputs[t], options, &*scratch[t], table, &places[t]));
          RouteIds(places[t], 0, table->num_ids, table);
          return Status::OK();
        }));
    EV_RETURN_IF_ERROR(on_device.Finish(parallel));
    ev::RunPieces(parallel, ids, [&](const ev::Piece& piece) {
      RouteIds(places[piece.item], piece.begin, piece.end,
               made->mutable_routed(piece.item));
    });
    EV_RETURN_IF_ERROR(CheckSizes(*made));
    *plan = made;
    return Status::OK();
  });
}

Status FetchInverse(const RoutePlan& plan, Span<const int> tables,
                    ev::Parallel* parallel) {
  std::vector<int> there;
  for (int t : tables) {
    if (plan.routed(t).distinct != nullptr) there.push_back(t);
  }
  return ev::RunTasksWithStatus(
      parallel, static_cast<int64_t>(there.size()), [&](int64_t i) {
        const RoutedTable& table = plan.routed(there[i]);
        std::lock_guard<std::mutex> lock(table.fetch);
        if (table.is_fetched) return Status::OK();
        const int64_t n = table.num_unique;
        ev::ArrayLayout layout;
        const size_t inverse_at = layout.Add<int32_t>(table.num_ids);
        const size_t counts_at = layout.Add<int32_t>(n);
        char* base = static_cast<char*>(table.fetched.Reserve(layout.bytes()));
        int32_t* const inverse = reinterpret_cast<int32_t*>(base + inverse_at);
        int32_t* const counts = reinterpret_cast<int32_t*>(base + counts_at);
        EV_RETURN_IF_ERROR(
            NamedAfter(table.name, table.distinct->Inverse(inverse, counts)));
        for (int64_t i = 0; i < table.num_ids; ++i) {
          inverse[i] = table.places[inverse[i]];
        }
        for (int64_t u = 0; u < n; ++u) {
          table.counts[table.places[u]] = counts[u];
        }
        table.inverse = inverse;
        table.is_fetched = true;
        return Status::OK();
      });
}

void WriteMessage(const RoutePlan& plan, ev::Parallel* parallel,
                  int64_t* message) {
  const MessageFormat& format = plan.options().format;
  const int num_tables = format.num_tables;
  // Where the keys of (rank r, table t) go: [r * T + t].
  std::vector<int64_t> begins;
  begins.reserve(plan.num_ranks() * num_tables);
  int64_t at = 0;
  for (int r = 0; r < plan.num_ranks(); ++r) {
    int64_t* header = message + at;
    *header++ = format.fingerprint;
    at += format.header();
    for (int t = 0; t < num_tables; ++t) {
      *header++ = plan.num_keys(r, t);
      begins.push_back(at);
      at += plan.num_keys(r, t) * format.per_key();
    }
  }
  ev::RunTasks(parallel, plan.num_ranks() * num_tables, [&](int64_t task) {
    const RoutedTable& table = plan.routed(task % num_tables);
    const int64_t r = task / num_tables;
    const int32_t begin = table.starts[r], end = table.starts[r + 1];
    int64_t* to = message + begins[task];
    to = std::copy(table.keys + begin, table.keys + end, to);
    if (format.with_occurrences) {
      std::copy(table.counts + begin, table.counts + end, to);
    }
  });
}

}  // namespace sok
