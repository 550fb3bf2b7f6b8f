// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One table of a model, and the way of a lookup through the tiers:
//
//   [GPU cache] -> volatile -> persistent -> default value
//
// Each tier is asked for what those before it lack. An id that no tier has is
// answered with the table's default value, and is stored nowhere: a row that
// comes later shows at once.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_SERVED_TABLE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_SERVED_TABLE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/config/config.h"
#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/server/counters.h"
#include "addons/hierarchical_parameter_server/server/elevator.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/scratch.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace hps {

class ServedTable {
 public:
  // above, below: the volatile and the persistent tier's table, or null.
  // elevator: null unless rows that are found below go up.
  ServedTable(const ModelConfig& model, const TableConfig& table,
              std::string tag, std::shared_ptr<Table> above,
              std::shared_ptr<Table> below, std::shared_ptr<Elevator> elevator);

  const std::string& tag() const { return tag_; }
  const TableConfig& config() const { return config_; }
  int width() const { return config_.width; }
  int64_t max_keys() const { return max_keys_; }

  // rows + i * width = the row of keys[i]. InvalidArgument: more keys than the
  // configuration allows. Errors of a tier are returned; rows then have no
  // meaning.
  ev::Status Lookup(ev::Span<const int64_t> keys, float* rows,
                    ev::Parallel* parallel);
  // The same for ids of 32 bits.
  ev::Status Lookup(ev::Span<const int32_t> keys, float* rows,
                    ev::Parallel* parallel);

  // Stores rows in the tiers that take them: persistent, then volatile, so that
  // what is seen above is safe below.
  ev::Status Update(ev::Span<const int64_t> keys, const float* rows,
                    bool to_volatile, bool to_persistent);

  // Rows that lookups have read below so far do not go up any more: the tier
  // below has other ones now.
  void DropElevations();

  const std::shared_ptr<Table>& above() const { return above_; }
  const std::shared_ptr<Table>& below() const { return below_; }
  Served served() const { return counters_.Sum(); }

 private:
  ev::Status LookUp(ev::Span<const int64_t> keys, float* rows, int64_t* missing,
                    ev::Parallel* parallel, Served* served);

  const TableConfig config_;
  const std::string tag_;
  const int64_t max_keys_;
  const int64_t max_batch_size_;
  const std::shared_ptr<Table> above_, below_;
  const std::shared_ptr<Elevator> elevator_;
  // Updates exclude each other and the elevator.
  const std::shared_ptr<std::mutex> updates_mutex_;
  const std::shared_ptr<int64_t> updates_;  // guarded by *updates_mutex_
  Counters counters_;
  ev::Recycler<ev::LineBuffer> scratch_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_SERVED_TABLE_H_
