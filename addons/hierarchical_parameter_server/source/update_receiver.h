// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A thread that takes updates from a source and delivers them.

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
  // Between attempts after a failure.
  int64_t failure_backoff_ms = 50;
  // Commits after so many polls that gave something, and when there is no more.
  int64_t max_commit_interval = 32;
};

struct ReceiverStatistics {
  SourceStatistics source;
  int64_t delivered_rows = 0;
  // Batches that the receiver of rows refuses for good: a table that is not
  // there, or has another width.
  int64_t rejected = 0;
  int64_t rejected_rows = 0;
  std::string last_rejected;
  // Polls, deliveries and commits that failed and were tried again.
  int64_t failures = 0;
  std::string last_failure;
};

class UpdateReceiver {
 public:
  // InvalidArgument and NotFound: the batch is left out, and counted. Any other
  // error: it is delivered again, and nothing after it before. Deliver is
  // called on the receiver's thread.
  using Deliver = std::function<ev::Status(const UpdateBatch& batch)>;

  // Starts at once.
  UpdateReceiver(std::unique_ptr<UpdateSource> source, Deliver deliver,
                 const ReceiverOptions& options);
  // Stops after the poll or delivery that is on its way, and commits what was
  // delivered.
  ~UpdateReceiver();
  UpdateReceiver(const UpdateReceiver&) = delete;

  ReceiverStatistics statistics() const;

 private:
  void Run();
  // Delivers what a poll gave; false: it was stopped.
  bool DeliverAll(const std::vector<UpdateBatch>& batches);
  bool Commit();
  void NoteFailure(const ev::Status& status);
  // false: it was stopped meanwhile.
  bool Pause();
  bool IsStopped() const;

  const std::unique_ptr<UpdateSource> source_;
  const Deliver deliver_;
  const ReceiverOptions options_;
  mutable std::mutex mutex_;  // What follows.
  std::condition_variable stops_;
  bool is_stopped_ = false;
  ReceiverStatistics statistics_;
  std::thread thread_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_UPDATE_RECEIVER_H_
