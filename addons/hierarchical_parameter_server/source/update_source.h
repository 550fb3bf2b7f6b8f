// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Interfaces for updates: rows that change while models are served. A training
// program sends them with an UpdateProducer, a server reads them from an
// UpdateSource.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_UPDATE_SOURCE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_UPDATE_SOURCE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Rows of one table in the order in which they were sent: if a key repeats, its
// last row is the newest.
struct UpdateBatch {
  std::string tag;
  int width = 0;
  std::vector<int64_t> keys;
  std::vector<float> rows;  // keys.size() * width
};

// How far a database that several processes share has stored the updates of a
// table that one stream (a partition of a topic, a folder) has sent.
struct ReadMark {
  int64_t next = 0;   // position of the first update that is not stored
  std::string fill;   // the filling from files that this is about
  bool kept = false;  // false: this process does not store the table's updates
};

class ReadMarks {
 public:
  virtual ~ReadMarks() {}
  virtual ev::Status Load(const std::string& tag, const std::string& stream,
                          ReadMark* mark) = 0;
  // Does nothing unless mark.kept.
  virtual ev::Status Store(const std::string& tag, const std::string& stream,
                           const ReadMark& mark) = 0;
};

struct SourceStatistics {
  int64_t batches = 0;
  int64_t rows = 0;
  // Messages or files with invalid content; they are skipped.
  int64_t malformed = 0;
  std::string last_malformed;  // name and error of the last one
  // Messages or files that existed at the last poll and are not yet returned;
  // -1: unknown.
  int64_t waiting = -1;
};

// For use by one thread at a time. Delivery is at least once: after a failure,
// everything uncommitted is returned again, in order.
class UpdateSource {
 public:
  virtual ~UpdateSource() {}

  // Waits up to this long for updates and appends some of them; none is not an
  // error. After an error *batches may have updates too: deliver them. A later
  // call may succeed.
  virtual ev::Status Poll(int64_t timeout_ms,
                          std::vector<UpdateBatch>* batches) = 0;

  // Marks everything returned so far as delivered. With the option `commits` it
  // is not returned again to any process that reads for the same group; with
  // the option `marks` not to any process with the same database.
  virtual ev::Status Commit() = 0;

  virtual SourceStatistics statistics() const = 0;
};

// Thread-safe.
class UpdateProducer {
 public:
  virtual ~UpdateProducer() {}

  // Takes rows (keys.size() * width floats) of a table. They may be sent later,
  // together with others. InvalidArgument: the tag or the width is invalid; no
  // row was taken. After another error some or all rows may have been taken,
  // and may still be sent.
  virtual ev::Status Send(const std::string& tag, int width,
                          ev::Span<const int64_t> keys, const float* rows) = 0;

  // Returns when readers can see everything taken so far, or with an error
  // after this time; longer if another call is running. After an error Kafka's
  // failed messages are lost, so send their rows again; "directory" keeps its
  // rows for the next Flush.
  virtual ev::Status Flush(int64_t timeout_ms) = 0;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_UPDATE_SOURCE_H_
