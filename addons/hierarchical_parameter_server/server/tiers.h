// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The tiers of one table below the cache: volatile, then persistent, then the
// default value. Each is asked for what those before it lack. An id that no
// tier has is answered with the default value, and is stored nowhere: a row
// that comes later shows at once.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_TIERS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_TIERS_H_

#include <cstdint>
#include <memory>
#include <mutex>

#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/server/elevator.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Thread-safe.
class Tiers {
 public:
  // above, below: the volatile and the persistent tier's table, or null.
  // elevator: null unless rows that are found below go up.
  Tiers(int width, float default_value, std::shared_ptr<Table> above,
        std::shared_ptr<Table> below, std::shared_ptr<Elevator> elevator);

  const std::shared_ptr<Table>& above() const { return above_; }
  const std::shared_ptr<Table>& below() const { return below_; }
  float default_value() const { return default_value_; }

  struct Found {
    int64_t above = 0, below = 0, nowhere = 0;
  };
  // rows + i * width = the row of keys[i]. missing has room for as many numbers
  // as there are keys; its first found->nowhere are those of keys that no tier
  // has, ascending. What was found is added to *found, but nowhere, which is
  // this call's. elevates: whether rows that are found below go up, where there
  // is an elevator.
  ev::Status Read(ev::Span<const int64_t> keys, float* rows, int64_t* missing,
                  Found* found, ev::Parallel* parallel, bool elevates = true);

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
  ev::Status Store(ev::Span<const int64_t> keys, const float* rows,
                   bool to_volatile, bool to_persistent, Changed* changed);

  const int width_;
  const float default_value_;
  const std::shared_ptr<Table> above_, below_;
  const std::shared_ptr<Elevator> elevator_;
  // Updates exclude each other and the elevator.
  const std::shared_ptr<std::mutex> updates_mutex_;
  const std::shared_ptr<int64_t> updates_;  // guarded by *updates_mutex_
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_TIERS_H_
