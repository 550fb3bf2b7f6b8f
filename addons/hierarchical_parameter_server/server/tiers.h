// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The tiers of one table below the cache: volatile, then persistent, then the
// default value. Each is asked for what those before it lack. An id that no
// tier has is answered with the default value, and is stored nowhere: a row
// that comes later shows at once.
//
// A tier that is away (breaker.h) makes a lookup an error, or is skipped: the
// lookup then goes on with the other tiers.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_TIERS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_TIERS_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/server/breaker.h"
#include "addons/hierarchical_parameter_server/server/elevator.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Thread-safe.
class Tiers {
 public:
  // above, below: the volatile and the persistent tier's table, or null.
  // elevator: null unless rows that are found below go up. above_breaker,
  // below_breaker: of the tiers, which all tables share; null for one that is
  // never away.
  Tiers(int width, float default_value, std::shared_ptr<Table> above,
        std::shared_ptr<Table> below, std::shared_ptr<Elevator> elevator,
        std::shared_ptr<Breaker> above_breaker = nullptr,
        std::shared_ptr<Breaker> below_breaker = nullptr);

  const std::shared_ptr<Table>& above() const { return above_; }
  const std::shared_ptr<Table>& below() const { return below_; }
  const Breaker* above_breaker() const { return above_breaker_.get(); }
  const Breaker* below_breaker() const { return below_breaker_.get(); }
  float default_value() const { return default_value_; }

  struct Found {
    int64_t above = 0, below = 0, nowhere = 0;
    // Keys of `nowhere` that a tier which was skipped may have.
    int64_t unavailable = 0;
    // Whether a tier was skipped: rows may be others than it has.
    bool skipped = false;
  };
  // What rows are read for. kLookup: an answer, which may skip a tier that is
  // away. kBringUp: a cache; a tier that is away is an error. kRefresh: as
  // kBringUp, and rows that are found below do not go up.
  enum class Purpose { kLookup, kBringUp, kRefresh };
  // rows + i * width = the row of keys[i]. missing has room for as many numbers
  // as there are keys; its first found->nowhere are those of keys that no tier
  // has, ascending. Adds to found->above, below and unavailable; sets
  // found->nowhere and skipped. Rows that are found below go up where there is
  // an elevator.
  ev::Status Read(ev::Span<const int64_t> keys, float* rows, int64_t* missing,
                  Found* found, ev::Parallel* parallel,
                  Purpose purpose = Purpose::kLookup);

  // Rows that have been read below so far do not go up any more.
  void DropElevations();

  // What an update means to a cache above: the rows that it brought are now
  // read, or others, or none has changed.
  enum class Changed { kRows, kPerhaps, kNothing };
  // Stores rows in the tiers that take them: persistent, then volatile, so that
  // what is seen above is safe below. then(changed) is called before another
  // update may begin; after an error, with kPerhaps.
  template <typename Then>
  ev::Status Update(ev::Span<const int64_t> keys, const float* rows,
                    bool to_volatile, bool to_persistent, const Then& then) {
    std::lock_guard<std::mutex> lock(*updates_mutex_);
    Changed changed = Changed::kNothing;
    const ev::Status status =
        Store(keys, rows, to_volatile, to_persistent, &changed);
    const ev::Status after = then(changed);
    return status.ok() ? after : status;
  }

 private:
  // Fetches from a tier. *is_skipped: it is away, and the purpose allows to go
  // on without it; missing then has no meaning, and *count is unchanged.
  static ev::Status FetchFrom(Table* table, Breaker* breaker, Purpose purpose,
                              ev::Span<const int64_t> keys, Positions wanted,
                              float* rows, int64_t* missing, int64_t* count,
                              bool* is_skipped, ev::Parallel* parallel);
  ev::Status Store(ev::Span<const int64_t> keys, const float* rows,
                   bool to_volatile, bool to_persistent, Changed* changed);

  const int width_;
  const float default_value_;
  const std::shared_ptr<Table> above_, below_;
  const std::shared_ptr<Elevator> elevator_;
  const std::shared_ptr<Breaker> above_breaker_, below_breaker_;
  // Updates exclude each other and the elevator.
  const std::shared_ptr<std::mutex> updates_mutex_;
  const std::shared_ptr<int64_t> updates_;  // guarded by *updates_mutex_
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_TIERS_H_
