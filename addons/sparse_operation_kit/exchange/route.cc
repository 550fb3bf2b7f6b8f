// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/route.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>
#include <utility>

#include "addons/sparse_operation_kit/exchange/routed_table.h"
#include "kernels/engine/base/scratch.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/combine/pooling_gradient.h"
#include "kernels/engine/ids/batch_ids.h"
#include "kernels/engine/ids/partition.h"
#include "kernels/engine/ids/recycled_plan.h"

namespace sok {
namespace {

using ev::LineBuffer;
using ev::NamedAfter;
using ev::Recycler;
using ev::Span;
using ev::Status;

constexpr int64_t kIdsPerTask = 8192;
// 256 KiB of ids, some 30 us of one core.
constexpr int64_t kIdsPerPut = 32768;

// One table's distinct keys before they are sorted by owner.
struct Unsorted {
  LineBuffer arrays;
  int64_t* keys = nullptr;    // [N]
  int32_t* counts = nullptr;  // [N]
  int32_t* places = nullptr;  // [N]

  void Reserve(int64_t n) {
    ev::ArrayLayout layout;
    const size_t keys_at = layout.Add<int64_t>(n);
    const size_t counts_at = layout.Add<int32_t>(n);
    const size_t places_at = layout.Add<int32_t>(n);
    char* base = static_cast<char*>(arrays.Reserve(layout.bytes()));
    keys = reinterpret_cast<int64_t*>(base + keys_at);
    counts = reinterpret_cast<int32_t*>(base + counts_at);
    places = reinterpret_cast<int32_t*>(base + places_at);
  }
};

Recycler<Unsorted>& UnsortedPool() {
  static Recycler<Unsorted>* const pool = new Recycler<Unsorted>(64);
  return *pool;
}

Status Bad(const RouteInput& in, const std::string& what) {
  return ev::InvalidArgument(what + ", table '" + in.name + "'");
}

Status CheckInput(const RouteInput& in, int num_ranks) {
  if (in.dim < 1) return Bad(in, "the dim: expected at least 1");
  EV_RETURN_IF_ERROR(ev::CheckIds(in, in.name));
  if (in.placement == nullptr || in.placement->ranks().empty()) {
    return Bad(in, "its placement has no rank");
  }
  for (int32_t rank : in.placement->ranks()) {
    if (rank < 0 || rank >= num_ranks) {
      return Bad(in, "it is placed on rank " + std::to_string(rank) +
                         ", but the job has " + std::to_string(num_ranks) +
                         " ranks");
    }
  }
  return Status::OK();
}

// The error for ids in device memory that the device cannot deduplicate.
Status NotForDevice(const RouteInput& in, const std::string& why) {
  return NamedAfter(in.name, Status(ev::StatusCode::kUnimplemented, why));
}

ev::DistinctRequest RequestOf(const RouteInput& in,
                              const RouteOptions& options) {
  ev::DistinctRequest request;
  request.name = in.name;
  request.num_ids = in.num_ids;
  request.num_samples = in.batch_size;
  request.on_device = in.on_device;
  if (in.on_device) {
    request.device_ids.ids64 = in.ids64;
    request.device_ids.ids32 = in.ids32;
    request.device_ids.row_splits = in.row_splits;
    request.device_ids.coo_indices = in.coo_indices;
    request.device_ids.stream = *in.stream;
  }
  request.brings_inverse = options.brings_inverse && !in.on_device;
  // If inverses are read on the host, they need the keys' places, and fetching
  // those costs more than sorting on the CPU.
  if (!request.brings_inverse && options.num_ranks <= ev::kMaxKeyOwners) {
    request.owners = in.placement->ranks();
    request.num_owners = options.num_ranks;
  }
  return request;
}

// Fetches the sample offsets to host memory if only the device has them.
Status FetchOffsets(const RoutedTable& table) {
  if (table.has_offsets) return Status::OK();
  EV_RETURN_IF_ERROR(
      NamedAfter(table.name, table.distinct->Samples(table.offsets)));
  table.has_offsets = true;
  return Status::OK();
}

// Plans the ids of all tables and sorts their keys by owner.
class RouteBuilder {
 public:
  RouteBuilder(Span<const RouteInput> inputs, const RouteOptions& options,
               ev::Parallel* parallel, RoutePlan* plan)
      : inputs_(inputs), options_(options), parallel_(parallel), plan_(plan) {}

  // Throws std::bad_alloc.
  Status Build();

 private:
  int num_tables() const { return static_cast<int>(inputs_.size()); }
  // Sets 'distinct' of the tables that a device deduplicates. If device memory
  // is short, sets none, and the CPU deduplicates.
  Status StartDistincts();
  void Prepare(int t);
  void FindFactors(int t);
  void SortByOwner(int t, const int64_t* keys, const int32_t* counts,
                   int32_t* places, ev::Parallel* parallel);
  // Swaps the table's arrays of distinct keys and counts with those of
  // unsorted_[t].
  void SwapKeys(int t);
  // SortKeys is for tables that the CPU has deduplicated, TakeKeys for those of
  // a device.
  void SortKeys(int t, ev::Parallel* parallel);
  Status TakeKeys(int t);
  Status TakeSorted(int t);  // of a device that has sorted its keys
  // Makes inverse[begin, end) refer to keys in send order.
  void RouteIds(int t, int64_t begin, int64_t end);

  const Span<const RouteInput> inputs_;
  const RouteOptions& options_;
  ev::Parallel* const parallel_;
  RoutePlan* const plan_;
  std::vector<Recycler<Unsorted>::Handle> unsorted_;
};

Status RouteBuilder::StartDistincts() {
  std::vector<ev::DistinctRequest> requests;
  std::vector<int> tables;
  const RouteInput* first_on_device = nullptr;
  const std::vector<bool> are_for_device = AreForDevice(inputs_, options_);
  for (int t = 0; t < num_tables(); ++t) {
    const RouteInput& in = inputs_[t];
    plan_->mutable_routed(t)->distinct.reset();
    if (in.on_device && !are_for_device[t]) {
      return NotForDevice(
          in, "the device that holds these ids does not deduplicate them");
    }
    if (!are_for_device[t]) continue;
    if (in.on_device && first_on_device == nullptr) first_on_device = &in;
    requests.push_back(RequestOf(in, options_));
    tables.push_back(t);
  }
  if (requests.empty()) return Status::OK();
  std::vector<std::unique_ptr<ev::DeviceDistinct>> distincts;
  const Status status = options_.device->StartDistincts(requests, &distincts);
  if (status.code() == ev::StatusCode::kResourceExhausted) {
    return first_on_device == nullptr
               ? Status::OK()
               : NotForDevice(*first_on_device, status.message());
  }
  EV_RETURN_IF_ERROR(status);
  for (size_t k = 0; k < tables.size(); ++k) {
    plan_->mutable_routed(tables[k])->distinct = std::move(distincts[k]);
  }
  return Status::OK();
}

void RouteBuilder::Prepare(int t) {
  const RouteInput& in = inputs_[t];
  RoutedTable* const table = plan_->mutable_routed(t);
  table->Begin(in, in.name);
  table->combiner = in.combiner;
  table->no_nan = true;
  table->dim = in.dim;
  table->Reserve();
  unsorted_.push_back(UnsortedPool().Acquire());
  if (table->distinct == nullptr) {
    unsorted_[t]->Reserve(in.num_ids);
    SwapKeys(t);  // until SortKeys
  }
}

void RouteBuilder::FindFactors(int t) {
  RoutedTable* const table = plan_->mutable_routed(t);
  table->has_factors =
      ev::SampleFactors(table->combiner, table->offsets, ev::WeightsOf(*table),
                        table->no_nan, 0, table->batch_size, table->factors);
}

void RouteBuilder::SortByOwner(int t, const int64_t* keys,
                               const int32_t* counts, int32_t* places,
                               ev::Parallel* parallel) {
  RoutedTable* const table = plan_->mutable_routed(t);
  table->starts.resize(options_.num_ranks + 1);
  ev::PartitionedKeys out;
  out.starts = table->starts.data();
  out.keys = table->unique;
  out.counts = table->counts;
  out.places = places;
  const Placement& placement = *inputs_[t].placement;
  ev::PartitionByOwner(
      Span<const int64_t>(keys, table->num_unique), counts, options_.num_ranks,
      [&](int64_t key) { return placement.OwnerOf(key); }, parallel, out);
}

void RouteBuilder::SwapKeys(int t) {
  RoutedTable* const table = plan_->mutable_routed(t);
  std::swap(table->unique, unsorted_[t]->keys);
  std::swap(table->counts, unsorted_[t]->counts);
}

void RouteBuilder::SortKeys(int t, ev::Parallel* parallel) {
  SwapKeys(t);
  const Unsorted& unsorted = *unsorted_[t];
  SortByOwner(t, unsorted.keys, unsorted.counts, unsorted.places, parallel);
}

Status RouteBuilder::TakeKeys(int t) {
  RoutedTable* const table = plan_->mutable_routed(t);
  const ev::DeviceDistinct& distinct = *table->distinct;
  table->num_unique = distinct.num_unique();
  if (!table->has_offsets && ev::Divides(table->combiner)) {
    EV_RETURN_IF_ERROR(FetchOffsets(*table));
    FindFactors(t);
  }
  if (distinct.owner_starts() != nullptr) return TakeSorted(t);
  int32_t* counts = nullptr;
  if (options_.format.with_occurrences) {
    counts = unsorted_[t]->arrays.ReserveOf<int32_t>(table->num_unique);
    EV_RETURN_IF_ERROR(
        NamedAfter(table->name, distinct.Inverse(nullptr, counts)));
  }
  SortByOwner(t, distinct.keys(), counts, table->places, nullptr);
  return Status::OK();
}

Status RouteBuilder::TakeSorted(int t) {
  RoutedTable* const table = plan_->mutable_routed(t);
  const ev::DeviceDistinct& distinct = *table->distinct;
  const int64_t n = table->num_unique;
  table->is_sorted_on_device = true;
  table->starts.assign(distinct.owner_starts(),
                       distinct.owner_starts() + options_.num_ranks + 1);
  std::copy_n(distinct.keys(), n, table->unique);
  if (!options_.format.with_occurrences) return Status::OK();
  int32_t* const counts = unsorted_[t]->arrays.ReserveOf<int32_t>(n);
  EV_RETURN_IF_ERROR(
      NamedAfter(table->name, distinct.Inverse(nullptr, counts)));
  EV_RETURN_IF_ERROR(NamedAfter(table->name, distinct.Places(table->places)));
  for (int64_t u = 0; u < n; ++u) table->counts[table->places[u]] = counts[u];
  return Status::OK();
}

void RouteBuilder::RouteIds(int t, int64_t begin, int64_t end) {
  const int32_t* const places = unsorted_[t]->places;
  int32_t* const inverse = plan_->mutable_routed(t)->inverse;
  for (int64_t i = begin; i < end; ++i) inverse[i] = places[inverse[i]];
}

Status RouteBuilder::Build() {
  std::vector<const ev::IdsInput*> given;
  std::vector<ev::TableIds*> tables;
  EV_RETURN_IF_ERROR(StartDistincts());
  for (int t = 0; t < num_tables(); ++t) {
    Prepare(t);
    given.push_back(&inputs_[t]);
    tables.push_back(plan_->mutable_routed(t));
  }
  ev::DistinctQueue devices(tables, [&](int t) { return TakeKeys(t); });
  ev::PlanIdsOptions plan_ids;
  // First occurrence for batches of any length: the owner then sees keys in the
  // same order whether the CPU or a device deduplicates.
  plan_ids.order = ev::DistinctOrder::kFirstOccurrence;
  plan_ids.ids_per_task = kIdsPerTask;
  plan_ids.ids_per_put = kIdsPerPut;
  plan_ids.samples_known = [&](int t) {
    if (tables[t]->has_offsets) FindFactors(t);
    return Status::OK();
  };
  plan_ids.keys_known = [&](int t, ev::Parallel* parallel) {
    SortKeys(t, parallel);
    if (IsSmall(*tables[t], kIdsPerTask)) RouteIds(t, 0, tables[t]->num_ids);
    return Status::OK();
  };
  EV_RETURN_IF_ERROR(ev::PlanIds(given, tables, plan_ids, &devices, parallel_));
  EV_RETURN_IF_ERROR(devices.Finish(parallel_));
  ev::TaskList ids(kIdsPerTask);
  for (int t = 0; t < num_tables(); ++t) {
    if (tables[t]->distinct != nullptr || IsSmall(*tables[t], kIdsPerTask)) {
      continue;
    }
    ids.Add(t, tables[t]->num_ids, 1);
  }
  ev::RunPieces(parallel_, ids, [&](const ev::Piece& piece) {
    RouteIds(piece.item, piece.begin, piece.end);
  });
  return Status::OK();
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
  const auto plan = ev::RecycledPlan<RoutePlan>();
  plan->options_ = options;
  while (plan->tables_.size() < static_cast<size_t>(plan->num_tables())) {
    plan->tables_.push_back(std::make_unique<RoutedTable>());
  }
  return plan;
}

std::vector<bool> AreForDevice(Span<const RouteInput> inputs,
                               const RouteOptions& options) {
  std::vector<bool> are(inputs.size(), false);
  if (options.device == nullptr) return are;
  int64_t together = 0;
  for (size_t t = 0; t < inputs.size(); ++t) {
    const RouteInput& in = inputs[t];
    are[t] = in.weights == nullptr && !ev::Selects(in.combiner) &&
             in.num_ids > 0 && in.num_ids <= ev::kMaxDistinctIds;
    if (are[t]) together += in.num_ids;
  }
  // Copying an inverse to the host must pay off for each table alone.
  const int64_t least = options.device->min_ids_to_deduplicate();
  const int64_t of_a_table =
      options.brings_inverse ? least : least / ev::kDistinctShares;
  for (size_t t = 0; t < inputs.size(); ++t) {
    are[t] = are[t] && together >= least && inputs[t].num_ids >= of_a_table;
  }
  return are;
}

Status Route(Span<const RouteInput> inputs, const RouteOptions& options,
             ev::Parallel* parallel, std::shared_ptr<const RoutePlan>* plan) {
  if (inputs.size() != static_cast<size_t>(options.format.num_tables) ||
      options.num_ranks < 1) {
    return ev::InvalidArgument(
        "lookup over ranks: got " + std::to_string(inputs.size()) +
        " inputs for " + std::to_string(options.format.num_tables) +
        " tables, and num_ranks " + std::to_string(options.num_ranks) +
        "; expected one input per table and at least one rank");
  }
  return ev::CatchBadAlloc([&] {
    for (const RouteInput& in : inputs) {
      EV_RETURN_IF_ERROR(CheckInput(in, options.num_ranks));
    }
    const std::shared_ptr<RoutePlan> made = RoutePlan::Make(options);
    EV_RETURN_IF_ERROR(
        RouteBuilder(inputs, options, parallel, made.get()).Build());
    EV_RETURN_IF_ERROR(CheckSizes(*made));
    *plan = made;
    return Status::OK();
  });
}

Status FetchInverse(const RoutePlan& plan, Span<const int> tables,
                    ev::Parallel* parallel) {
  return ev::CatchBadAlloc([&] {
    std::vector<int> on_device;
    for (int t : tables) {
      if (plan.routed(t).distinct != nullptr) on_device.push_back(t);
    }
    return ev::RunTasksWithStatus(
        parallel, static_cast<int64_t>(on_device.size()), [&](int64_t i) {
          const RoutedTable& table = plan.routed(on_device[i]);
          std::lock_guard<std::mutex> lock(table.fetch);
          if (table.is_fetched) return Status::OK();
          EV_RETURN_IF_ERROR(FetchOffsets(table));
          if (table.is_sorted_on_device) {
            EV_RETURN_IF_ERROR(
                NamedAfter(table.name, table.distinct->Places(table.places)));
          }
          const int64_t n = table.num_unique;
          ev::ArrayLayout layout;
          const size_t inverse_at = layout.Add<int32_t>(table.num_ids);
          const size_t counts_at = layout.Add<int32_t>(n);
          char* base =
              static_cast<char*>(table.fetched.Reserve(layout.bytes()));
          int32_t* const inverse =
              reinterpret_cast<int32_t*>(base + inverse_at);
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
  });
}

Status WriteMessage(const RoutePlan& plan, ev::Parallel* parallel,
                    int64_t* message) {
  return ev::CatchBadAlloc([&] {
    const MessageFormat& format = plan.options().format;
    const int num_tables = format.num_tables;
    // Start of the keys of (rank r, table t) at [r * T + t].
    std::vector<int64_t> begins;
    begins.reserve(plan.num_ranks() * num_tables);
    int64_t at = 0;
    for (int r = 0; r < plan.num_ranks(); ++r) {
      int64_t* header = message + at;
      *header++ = format.fingerprint;
      at += format.header();
      const int64_t keys = at;
      for (int t = 0; t < num_tables; ++t) {
        *header++ = plan.num_keys(r, t);
        begins.push_back(at);
        at += plan.num_keys(r, t) * format.per_key();
      }
      *header++ = static_cast<int64_t>(format.traits.size());
      // The last number may extend beyond the text: zero the rest.
      if (!format.traits.empty()) message[keys - 1] = 0;
      std::memcpy(header, format.traits.data(), format.traits.size());
    }
    ev::RunTasks(parallel, plan.num_ranks() * num_tables, [&](int64_t task) {
      const RoutedTable& table = plan.routed(task % num_tables);
      const int64_t r = task / num_tables;
      const int32_t begin = table.starts[r], end = table.starts[r + 1];
      int64_t* to = message + begins[task];
      to = std::copy(table.unique + begin, table.unique + end, to);
      if (format.with_occurrences) {
        std::copy(table.counts + begin, table.counts + end, to);
      }
    });
    return Status::OK();
  });
}

}  // namespace sok
