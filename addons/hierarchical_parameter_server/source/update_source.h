// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Where rows that changed come from while models are served, and where a
// training program sends them.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_UPDATE_SOURCE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_UPDATE_SOURCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Rows of one table, in the order in which they were sent: of a key that
// repeats the last one is the newest.
struct UpdateBatch {
  std::string tag;
  int width = 0;
  std::vector<int64_t> keys;
  std::vector<float> rows;  // keys.size() * width
};

struct SourceStatistics {
  int64_t batches = 0;
  int64_t rows = 0;
  // Messages or files that are not what they should be; they are left out.
  int64_t malformed = 0;
  std::string last_malformed;  // which one, and what is wrong with it
  // Messages or files that were there at the last poll and were not given yet;
  // -1: not known.
  int64_t waiting = -1;
};

// One thread at a time. What is sent is given at least once: after a failure,
// what was not committed is given again, in its order.
class UpdateSource {
 public:
  virtual ~UpdateSource() {}

  // Waits until there is something, at most this long, and gives some of it;
  // nothing is no error. After an error another call may do better.
  virtual ev::Status Poll(int64_t timeout_ms,
                          std::vector<UpdateBatch>* batches) = 0;

  // Everything that was given so far is delivered, and is not given again, to
  // whatever process asks in the name of the same group.
  virtual ev::Status Commit() = 0;

  virtual SourceStatistics statistics() const = 0;
};

// Any thread.
class UpdateProducer {
 public:
  virtual ~UpdateProducer() {}

  // Takes rows (keys.size() * width floats) of the table. InvalidArgument: the
  // tag or the width is none. They may be sent later, together with others.
  virtual ev::Status Send(const std::string& tag, int width,
                          ev::Span<const int64_t> keys, const float* rows) = 0;

  // Returns when all that was taken is where readers find it, or with an error
  // when it is not after this time.
  virtual ev::Status Flush(int64_t timeout_ms) = 0;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_UPDATE_SOURCE_H_
