// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The tiers of one table below the cache: volatile, persistent, then the
// default value. Each tier is read for the keys that the previous ones lack. An
// id that no tier has gets the default value, which is not stored, so a row
// added later is visible at once.
//
// If a tier is unavailable (breaker.h), a lookup fails or continues with the
// other tiers, depending on on_unavailable.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_TIERS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_TIERS_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/server/breaker.h"
#include "addons/hierarchical_parameter_server/server/elevator.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/base/tasks.h"

namespace hps {

// Thread-safe.
class Tiers {
 public:
  // above, below: the table in the volatile and in the persistent tier, or
  // null. elevator: null unless rows found in the persistent tier are copied to
  // the volatile one. above_breaker, below_breaker: shared by all tables of a
  // tier; null for a tier that is always available.
  // REQUIRES: a row of default values can be stored in the format.
  Tiers(const RowFormat& format, float default_value,
        std::shared_ptr<Table> above, std::shared_ptr<Table> below,
        std::shared_ptr<Elevator> elevator,
        std::shared_ptr<Breaker> above_breaker = nullptr,
        std::shared_ptr<Breaker> below_breaker = nullptr);

  const std::shared_ptr<Table>& above() const { return above_; }
  const std::shared_ptr<Table>& below() const { return below_; }
  const Breaker* above_breaker() const { return above_breaker_.get(); }
  const Breaker* below_breaker() const { return below_breaker_.get(); }
  const RowFormat& format() const { return format_; }
  // The stored row of ids that no tier has.
  const std::vector<float>& default_row() const { return default_row_; }

  struct Found {
    int64_t above = 0, below = 0, nowhere = 0;
    // Ids counted in `nowhere` that a skipped tier may have.
    int64_t unavailable = 0;
    // True if a tier was skipped. That tier may have rows for the keys in
    // `nowhere`, and newer rows for the keys in `below`.
    bool skipped = false;
  };
  // The purpose of a read. kLookup: the rows are returned to a client; an
  // unavailable tier may be skipped. kBringUp: the rows will be cached; an
  // unavailable tier raises an error. kRefresh: like kBringUp, but rows are not
  // elevated.
  enum class Purpose { kLookup, kBringUp, kRefresh };
  // Reads stored rows: rows + i * width is that of keys[i]. `missing` must have
  // room for keys.size() indices; its first found->nowhere elements are the
  // indices, ascending, of keys that no tier has. Adds to found->above, below
  // and unavailable; sets found->nowhere and skipped. If there is an elevator,
  // rows found in the persistent tier are elevated (copied to the volatile
  // tier), except for kRefresh and after the volatile tier was skipped.
  ev::Status Read(ev::Span<const int64_t> keys, float* rows, int64_t* missing,
                  Found* found, ev::Parallel* parallel,
                  Purpose purpose = Purpose::kLookup);

  // Cancels the elevations that are not finished, of all rows read so far.
  void DropElevations();

  // Effect of an update on lookups, for a cache above. kRows: lookups now get
  // exactly the given rows. kPerhaps: they may get other rows for these keys
  // than before, not necessarily the given ones. kNothing: no row has changed.
  enum class Changed { kRows, kPerhaps, kNothing };
  // Stores rows (stored rows of the format) in the selected tiers: persistent
  // first, so that rows that are visible in the volatile tier are already safe.
  // Then calls then(changed), before another update may start; if storing
  // failed, `changed` is kPerhaps.
  template <typename Then>
  ev::Status Update(ev::Span<const int64_t> keys, const float* rows,
                    bool to_volatile, bool to_persistent, const Then& then) {
    std::lock_guard<std::mutex> lock(*updates_mutex_);
    Changed changed = Changed::kNothing;
    // The cache must not keep old rows if memory runs out in between.
    const ev::Status status = ev::CatchBadAlloc([&] {
      return Store(keys, rows, to_volatile, to_persistent, &changed);
    });
    const ev::Status after = then(changed);
    return status.ok() ? after : status;
  }

 private:
  // Fetches from one tier. *is_skipped: the tier is unavailable, and `purpose`
  // allows skipping it; `missing` is undefined then, and *count is unchanged.
  static ev::Status FetchFrom(Table* table, Breaker* breaker, Purpose purpose,
                              ev::Span<const int64_t> keys, Positions wanted,
                              float* rows, int64_t* missing, int64_t* count,
                              bool* is_skipped, ev::Parallel* parallel);
  ev::Status Store(ev::Span<const int64_t> keys, const float* rows,
                   bool to_volatile, bool to_persistent, Changed* changed);

  const RowFormat format_;
  const std::vector<float> default_row_;
  const std::shared_ptr<Table> above_, below_;
  const std::shared_ptr<Elevator> elevator_;
  const std::shared_ptr<Breaker> above_breaker_, below_breaker_;
  // Excludes concurrent updates and elevations.
  const std::shared_ptr<std::mutex> updates_mutex_;
  const std::shared_ptr<int64_t> updates_;  // guarded by *updates_mutex_
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_TIERS_H_
