// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The sending half of a lookup over ranks: deduplicates each table's ids, sorts
// the distinct keys by owner rank, and writes the messages to all ranks. The
// plan keeps what pooling and gradients need later.
//
// Distinct keys of one table are numbered in send order: by owner, then by
// first occurrence. So the keys for one rank, the rows that come back for them
// and the gradients that are sent to it are each contiguous.

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
  // With on_device: ids and samples are valid after this stream's work so far,
  // on the device of RouteOptions.
  const ev::DeviceStream* stream = nullptr;
  std::string name;  // of the table, for error messages
  int64_t dim = 0;
  ev::Combiner combiner = ev::Combiner::kMean;
  const Placement* placement = nullptr;
};

// Deduplicates the ids of long batches on a device, in place of the CPU.
// Thread-safe.
class DistinctDevice {
 public:
  virtual ~DistinctDevice() {}
  // Least number of ids worth deduplicating on the device. With
  // RouteOptions::brings_inverse each table needs that many by itself. Without,
  // a route's tables need that many together, and each of them at least 1 /
  // ev::kDistinctShares of it.
  virtual int64_t min_ids_to_deduplicate() const = 0;
  // Starts deduplicating several tables of a route; makes one result per
  // request, in the order of the requests. The device has no rows, so every key
  // counts as unknown. REQUIRES: at least one request; none is empty, is
  // shorter than the least number above, or has more than ev::kMaxDistinctIds
  // ids. Errors of one table contain its name. After ResourceExhausted the
  // caller deduplicates on the CPU.
  virtual ev::Status StartDistincts(
      ev::Span<const ev::DistinctRequest> requests,
      std::vector<std::unique_ptr<ev::DeviceDistinct>>* distincts) = 0;
};

struct RouteOptions {
  int num_ranks = 1;
  MessageFormat format;
  // Deduplicates the long batches of tables that have no weights and a combiner
  // that adds; null: the CPU does. Must outlive the plan. The plan is the same
  // in both cases, except that with a device the inverse is not in the plan
  // until FetchInverse.
  DistinctDevice* device = nullptr;
  // Whether the device also copies the inverse to host memory, so that
  // FetchInverse need not wait for it. (It never does for ids in device
  // memory.) Set it to false if samples are usually pooled, and gradients
  // summed, on the device.
  bool brings_inverse = true;
};

struct RoutedTable;  // routed_table.h; internal

// Immutable once made, except for arrays that FetchInverse adds. Plans are
// recycled with their memory.
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

  // Number of keys of table t that rank r owns.
  int64_t num_keys(int r, int t) const;
  // Count of numbers in the message to rank r, and in all messages.
  int64_t message_size(int r) const;
  int64_t message_size() const;
  // Count of floats in the rows (or gradients) of these tables' keys for rank
  // r.
  int64_t row_floats(int r, ev::Span<const int> tables) const;

  // Internal.
  static std::shared_ptr<RoutePlan> Make(const RouteOptions& options);
  const RoutedTable& routed(int t) const { return *tables_[t]; }
  RoutedTable* mutable_routed(int t) { return tables_[t].get(); }

  // For RecycledPlan (ids/recycled_plan.h): bytes of the memory that the plan
  // keeps, and the release of its device results.
  size_t bytes() const;
  void GiveBack();

 private:
  RouteOptions options_;
  std::vector<std::unique_ptr<RoutedTable>> tables_;  // >= num_tables
};

// Returns for each table whether options.device deduplicates its ids. Only such
// tables may have ids and samples on_device. Reads no array.
std::vector<bool> AreForDevice(ev::Span<const RouteInput> inputs,
                               const RouteOptions& options);

// Makes the plan of a lookup of format.num_tables tables. Copies what it needs
// from the inputs. Thread-safe; 'parallel' may be null.
// InvalidArgument: inputs that ev::PooledForward rejects, with the table's
// name; another number of inputs; or more than 2^31 - 1 numbers for one rank.
// ResourceExhausted: out of memory.
// Unimplemented: the device cannot take an input that is on_device:
// AreForDevice is false, its samples are out of order, or device memory is
// short. The caller copies the inputs to host memory and calls again.
ev::Status Route(ev::Span<const RouteInput> inputs, const RouteOptions& options,
                 ev::Parallel* parallel,
                 std::shared_ptr<const RoutePlan>* plan);

// Copies the inverse of these tables to host memory if a device has
// deduplicated them, and with it the sample offsets and key positions if only
// the device has those. For callers that pool on the CPU. The first call
// transfers 4 bytes per id, sample and key; later calls return at once.
// Thread-safe.
ev::Status FetchInverse(const RoutePlan& plan, ev::Span<const int> tables,
                        ev::Parallel* parallel);

// Writes the messages to ranks 0, 1, ..., one after the other. message:
// [plan.message_size()]. ResourceExhausted: out of memory.
ev::Status WriteMessage(const RoutePlan& plan, ev::Parallel* parallel,
                        int64_t* message);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ROUTE_H_
