// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A thread that polls updates from a source and delivers them.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_UPDATE_RECEIVER_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_UPDATE_RECEIVER_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "addons/hierarchical_parameter_server/source/update_source.h"
#include "kernels/engine/base/status.h"

namespace hps {

struct ReceiverOptions {
  int64_t poll_timeout_ms = 500;
  // Pause between attempts after a failure.
  int64_t failure_backoff_ms = 50;
  // Most non-empty polls between commits. A commit also follows when no more
  // updates are waiting.
  int64_t max_commit_interval = 32;
};

struct ReceiverStatistics {
  SourceStatistics source;
  int64_t delivered_rows = 0;
  // Rows rejected for good: the table does not exist, has another width or
  // cannot store them; and batches with such rows.
  int64_t rejected = 0;
  int64_t rejected_rows = 0;
  std::string last_rejected;
  // Polls, deliveries and commits that failed and were retried.
  int64_t failures = 0;
  std::string last_failure;
};

class UpdateReceiver {
 public:
  // Delivers a batch, whole or not at all; called on the receiver's thread.
  // After NotFound the batch is skipped and counted as rejected. After
  // InvalidArgument its halves are delivered, one after the other, so that only
  // the rows that cause the error are rejected. After any other error it is
  // delivered again before any later one.
  using Deliver = std::function<ev::Status(const UpdateBatch& batch)>;

  // Starts the thread.
  UpdateReceiver(std::unique_ptr<UpdateSource> source, Deliver deliver,
                 const ReceiverOptions& options);
  // Stops after the current poll or delivery, and commits what was delivered.
  // If a delivery was failing, commits nothing: what was not committed is
  // returned again.
  ~UpdateReceiver();
  UpdateReceiver(const UpdateReceiver&) = delete;

  ReceiverStatistics statistics() const;

 private:
  void Run();
  // Delivers the batches of a poll; returns false if stopped meanwhile.
  bool DeliverAll(const std::vector<UpdateBatch>& batches);
  // The same for a batch or a part of it. *is_rejected: whether the batch is
  // counted as rejected.
  bool DeliverRows(const UpdateBatch& batch, bool* is_rejected);
  bool Commit();
  void RecordFailure(const ev::Status& status);
  // Returns false if stopped meanwhile.
  bool Pause();
  bool IsStopped() const;

  const std::unique_ptr<UpdateSource> source_;
  const Deliver deliver_;
  const ReceiverOptions options_;
  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable stops_;
  bool is_stopped_ = false;
  ReceiverStatistics statistics_;
  std::thread thread_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_UPDATE_RECEIVER_H_
