// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/source/update_receiver.h"

#include <chrono>
#include <new>
#include <utility>
#include <vector>

namespace hps {
namespace {

// An exception that leaves a thread ends the process; running out of memory may
// be temporary.
template <typename Call>
ev::Status WithoutExceptions(const char* what, const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return ev::ResourceExhausted(std::string("no memory for ") + what);
  }
}

ev::Status Split(const UpdateBatch& batch, UpdateBatch* first,
                 UpdateBatch* second) {
  const size_t half = batch.keys.size() / 2;
  first->tag = second->tag = batch.tag;
  first->width = second->width = batch.width;
  const auto key = batch.keys.begin() + half;
  const auto row = batch.rows.begin() + half * batch.width;
  first->keys.assign(batch.keys.begin(), key);
  first->rows.assign(batch.rows.begin(), row);
  second->keys.assign(key, batch.keys.end());
  second->rows.assign(row, batch.rows.end());
  return ev::Status::OK();
}

}  // namespace

UpdateReceiver::UpdateReceiver(std::unique_ptr<UpdateSource> source,
                               Deliver deliver, const ReceiverOptions& options)
    : source_(std::move(source)),
      deliver_(std::move(deliver)),
      options_(options),
      thread_([this] { Run(); }) {}

UpdateReceiver::~UpdateReceiver() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    is_stopped_ = true;
  }
  stops_.notify_all();
  thread_.join();
}

bool UpdateReceiver::IsStopped() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return is_stopped_;
}

bool UpdateReceiver::Pause() {
  std::unique_lock<std::mutex> lock(mutex_);
  // Waits on the system clock, which every platform supports.
  stops_.wait_until(lock,
                    std::chrono::system_clock::now() +
                        std::chrono::milliseconds(options_.failure_backoff_ms),
                    [this] { return is_stopped_; });
  return !is_stopped_;
}

void UpdateReceiver::RecordFailure(const ev::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++statistics_.failures;
  statistics_.last_failure = status.message();
}

ReceiverStatistics UpdateReceiver::statistics() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return statistics_;
}

bool UpdateReceiver::DeliverAll(const std::vector<UpdateBatch>& batches) {
  for (const UpdateBatch& batch : batches) {
    bool is_rejected = false;
    if (!DeliverRows(batch, &is_rejected)) return false;
  }
  return true;
}

bool UpdateReceiver::DeliverRows(const UpdateBatch& batch, bool* is_rejected) {
  const int64_t num_rows = static_cast<int64_t>(batch.keys.size());
  for (;;) {
    const ev::Status status = WithoutExceptions(
        "rows that an update source gave", [&] { return deliver_(batch); });
    if (status.ok()) {
      std::lock_guard<std::mutex> lock(mutex_);
      statistics_.delivered_rows += num_rows;
      return true;
    }
    const bool is_invalid = status.code() == ev::StatusCode::kInvalidArgument;
    if (is_invalid && num_rows > 1) {
      UpdateBatch first, second;
      const ev::Status is_split =
          WithoutExceptions("rows that an update source gave",
                            [&] { return Split(batch, &first, &second); });
      if (is_split.ok()) {
        return DeliverRows(first, is_rejected) &&
               DeliverRows(second, is_rejected);
      }
      RecordFailure(is_split);
    } else if (is_invalid || status.code() == ev::StatusCode::kNotFound) {
      std::lock_guard<std::mutex> lock(mutex_);
      if (!*is_rejected) ++statistics_.rejected;
      *is_rejected = true;
      statistics_.rejected_rows += num_rows;
      statistics_.last_rejected = status.message();
      return true;
    } else {
      RecordFailure(status);
    }
    if (!Pause()) return false;
  }
}

bool UpdateReceiver::Commit() {
  const ev::Status status = WithoutExceptions(
      "a commit of an update source", [&] { return source_->Commit(); });
  if (!status.ok()) RecordFailure(status);
  return status.ok();
}

void UpdateReceiver::Run() {
  std::vector<UpdateBatch> batches;
  int64_t uncommitted = 0;
  while (!IsStopped()) {
    batches.clear();
    // With uncommitted updates, do not wait for more: an empty poll triggers
    // the commit.
    const ev::Status status =
        WithoutExceptions("what an update source has", [&] {
          return source_->Poll(uncommitted > 0 ? 0 : options_.poll_timeout_ms,
                               &batches);
        });
    {
      // Before the delivery, which waits while a database is unavailable.
      std::lock_guard<std::mutex> lock(mutex_);
      statistics_.source = source_->statistics();
    }
    // A poll that returned an error may still have returned batches.
    if (!DeliverAll(batches)) return;
    if (!batches.empty()) ++uncommitted;
    if (uncommitted >= options_.max_commit_interval ||
        (uncommitted > 0 && batches.empty())) {
      if (Commit()) {
        uncommitted = 0;
      } else {
        Pause();
      }
    }
    if (!status.ok()) {
      RecordFailure(status);
      Pause();
    }
  }
  if (uncommitted > 0) Commit();
}

}  // namespace hps
