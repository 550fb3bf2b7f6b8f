// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The way out of a lookup over ranks: each table's ids become distinct keys,
// the keys are sorted by the rank that owns them, and the messages to all ranks
// are written. The plan remembers what the way back needs.
//
// Distinct keys of one table are numbered in send order: by owner, then by
// first occurrence. A rank's keys, the rows that come back for them and the
// gradients that go out are then one contiguous piece each.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROUTE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROUTE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "addons/sparse_operation_kit/exchange/message.h"
#include "addons/sparse_operation_kit/exchange/placement.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/combine/combiner.h"
#include "kernels/engine/ids/device_distinct.h"
#include "kernels/engine/ids/table_ids.h"

namespace sok {

// One table's ids of this rank's batch.
struct RouteInput : ev::IdsInput {
  // With on_device: ids and samples are there when the device of RouteOptions
  // is through with what the stream has.
  const ev::DeviceStream* stream = nullptr;
  std::string name;  // of the table, for messages
  int64_t dim = 0;
  ev::Combiner combiner = ev::Combiner::kMean;
  const Placement* placement = nullptr;
};

// What deduplicates the ids of long batches in place of the processors.
// Thread-safe.
class DistinctDevice {
 public:
  virtual ~DistinctDevice() {}
  // From how many ids on. Where no inverse is brought all tables of a route
  // count together, and a table has one of ev::kDistinctShares parts of that by
  // itself.
  virtual int64_t min_ids_to_deduplicate() const = 0;
  // As GpuTableCompute::StartDistinct of rows/gpu_compute.h, for all tables of
  // a route that it takes: one for each request, in their order. It knows no
  // key. At least one request; none of a batch with fewer ids than that part,
  // none, or more than ev::kMaxDistinctIds. Errors that are of one table have
  // its name. ResourceExhausted: the processors do it.
  virtual ev::Status StartDistincts(
      ev::Span<const ev::DistinctRequest> requests,
      std::vector<std::unique_ptr<ev::DeviceDistinct>>* distincts) = 0;
};

struct RouteOptions {
  int num_ranks = 1;
  MessageFormat format;
  // Null, or what deduplicates the ids of tables without weights that have many
  // (it outlives the plan). The same plan, but that which key an id is stays
  // there until FetchInverse.
  DistinctDevice* device = nullptr;
  // False: samples are pooled, and gradients summed, on the device as a rule.
  bool brings_inverse = true;
};

struct RoutedTable;  // routed_table.h, for this room's files

// Immutable once made. Its memory is recycled.
class RoutePlan {
 public:
  RoutePlan();
  ~RoutePlan();
  RoutePlan(const RoutePlan&) = delete;
  RoutePlan& operator=(const RoutePlan&) = delete;

  int num_ranks() const { return options_.num_ranks; }
  int num_tables() const { return options_.format.num_tables; }
  const RouteOptions& options() const { return options_; }
  const std::string& name(int t) const;
  int64_t dim(int t) const;
  int64_t batch_size(int t) const;
  int64_t num_ids(int t) const;

  // Keys of table t for rank r.
  int64_t num_keys(int r, int t) const;
  // Numbers in the message to rank r, and in all messages.
  int64_t message_size(int r) const;
  int64_t message_size() const;
  // Floats of the rows (or gradients) of these tables' keys for rank r.
  int64_t row_floats(int r, ev::Span<const int> tables) const;

  // For this room's files.
  static std::shared_ptr<RoutePlan> Make(const RouteOptions& options);
  const RoutedTable& routed(int t) const { return *tables_[t]; }
  RoutedTable* mutable_routed(int t) { return tables_[t].get(); }

  // For RecycledPlan (ids/recycled_plan.h): memory that the plan keeps, and the
  // end of what a device has of it.
  size_t bytes() const;
  void GiveBack();

 private:
  RouteOptions options_;
  std::vector<std::unique_ptr<RoutedTable>> tables_;  // >= num_tables
};

// Whether the device of the options is asked to deduplicate each table's ids:
// then they, and the samples, may be on_device. Reads no array.
std::vector<bool> AreForDevice(ev::Span<const RouteInput> inputs,
                               const RouteOptions& options);

// Makes the plan of a lookup of format.num_tables tables. The plan copies what
// it needs. InvalidArgument, with the table's name: what ev::PooledForward
// refuses, or more than 2^31 - 1 numbers for one rank; ResourceExhausted: no
// memory; Unimplemented: of inputs that are on_device one is not for the
// device, has samples out of order, or finds too little memory there. The same
// in CPU memory has a plan, or says what is wrong. Thread-safe; 'parallel' may
// be null.
ev::Status Route(ev::Span<const RouteInput> inputs, const RouteOptions& options,
                 ev::Parallel* parallel,
                 std::shared_ptr<const RoutePlan>* plan);

// For a caller that works on samples in CPU memory: brings down which key each
// id of these tables is, where a device has deduplicated, and where samples
// begin and keys are, if those were in its memory. Once, 4 bytes of the link
// for an id, a sample and a key; later calls return at once. Thread-safe.
ev::Status FetchInverse(const RoutePlan& plan, ev::Span<const int> tables,
                        ev::Parallel* parallel);

// The messages to rank 0, 1, ..., end to end. message: [plan.message_size()].
void WriteMessage(const RoutePlan& plan, ev::Parallel* parallel,
                  int64_t* message);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROUTE_H_
