// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hugectr/reader/batch_reader.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <string>
#include <utility>

namespace hugectr {
namespace {

constexpr int64_t kEndless = std::numeric_limits<int64_t>::max();

// Waits for a notification or the timeout. Does not use wait_for, which calls a
// newer C library function than the oldest supported system has.
void WaitFor(int64_t milliseconds, std::unique_lock<std::mutex>* lock,
             std::condition_variable* wake) {
  timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += milliseconds / 1000;
  until.tv_nsec += milliseconds % 1000 * 1000000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_nsec -= 1000000000;
    ++until.tv_sec;
  }
  pthread_cond_timedwait(wake->native_handle(), lock->mutex()->native_handle(),
                         &until);
}

ev::Status NoMemory() {
  return ev::ResourceExhausted("no memory for a batch of the data");
}

}  // namespace

BatchReader::BatchReader(std::unique_ptr<Source> source,
                         const ReaderOptions& options)
    : source_(std::move(source)),
      options_(options),
      pool_(std::make_shared<BatchPool>(source_->layout())),
      batches_(kEndless),
      window_(options.depth + options.threads),
      next_place_(source_->Begin()),
      accepted_end_(next_place_),
      last_(kEndless),
      slots_(window_) {
  const int64_t samples = source_->samples();
  if (!options_.repeat) {
    batches_ = samples / options_.batch_size +
               (samples % options_.batch_size != 0 ? 1 : 0);
  } else if (samples == 0) {
    Accept(0, ev::InvalidArgument("the data to repeat has no samples"), nullptr,
           accepted_end_);
    return;
  }
  for (int64_t i = 0; i < options_.threads; ++i) {
    workers_.push_back(source_->MakeWorker());
  }
  threads_.reserve(workers_.size());
  for (auto& worker : workers_) {
    Start start{this, worker.get()};
    starts_.push_back(start);
  }
  for (Start& start : starts_) {
    pthread_t thread;
    const int error =
        pthread_create(&thread, nullptr, &BatchReader::Enter, &start);
    if (error == 0) {
      threads_.push_back(thread);
      continue;
    }
    // The running threads are enough.
    if (!threads_.empty()) break;
    Accept(0,
           ev::ResourceExhausted(std::string("no thread to read the data: ") +
                                 strerror(error)),
           nullptr, accepted_end_);
    break;
  }
}

void* BatchReader::Enter(void* start) {
  const Start& mine = *static_cast<Start*>(start);
  mine.reader->Run(mine.worker);
  return nullptr;
}

BatchReader::~BatchReader() {
  {
    std::lock_guard<std::mutex> hold(lock_);
    stop_ = true;
    work_.notify_all();
  }
  for (pthread_t thread : threads_) pthread_join(thread, nullptr);
}

Span BatchReader::SpanOf(int64_t number) const {
  int64_t count = options_.batch_size;
  if (!options_.repeat) {
    count = std::min(count, source_->samples() - number * options_.batch_size);
  }
  return SpanOfRank(count, options_.rank, options_.ranks);
}

void BatchReader::Run(Worker* worker) {
  std::unique_lock<std::mutex> lock(lock_);
  int64_t number;
  Place place;
  while (Begin(&lock, &number, &place)) {
    ReadOne(&lock, worker, number, place);
  }
}

// Waits for room and for a known place; false: no batch is left. The caller
// must then publish where its batch should end.
bool BatchReader::Begin(std::unique_lock<std::mutex>* lock, int64_t* number,
                        Place* place) {
  const auto may_begin = [this] {
    return !is_beginning_ && started_ < taken_ + window_ &&
           (!is_lost_ || accepted_ == started_);
  };
  work_.wait(*lock, [&] {
    return stop_ || last_ != kEndless || started_ > batches_ || may_begin();
  });
  if (stop_ || last_ != kEndless || started_ > batches_) return false;
  if (is_lost_) {
    next_place_ = accepted_end_;
    is_lost_ = false;
  }
  is_beginning_ = true;
  *number = started_++;
  *place = next_place_;
  return true;
}

void BatchReader::ReadOne(std::unique_lock<std::mutex>* lock, Worker* worker,
                          int64_t number, Place place) {
  const bool is_end = number == batches_;
  const Span span = is_end ? Span() : SpanOf(number);
  lock->unlock();

  // Publish the expected end.
  ev::Status status;
  Place end = place;
  bool is_scanned = false;
  BatchPool::Owned batch;
  const auto guarded = [&](const auto& function) {
    try {
      status = function();
    } catch (const std::bad_alloc&) {
      status = NoMemory();
    }
  };
  guarded([&] {
    if (is_end || worker->Guess(place, span, &end)) return ev::Status::OK();
    is_scanned = true;
    return worker->Scan(place, span, &end);
  });
  lock->lock();
  is_beginning_ = false;
  next_place_ = end;
  if (!status.ok()) is_lost_ = true;
  work_.notify_all();
  lock->unlock();

  const Place published = end;
  const auto read = [&] {
    if (is_end) return worker->CheckEnd(place);
    if (batch == nullptr) batch = pool_->Take(span.size(), span.count);
    return worker->Read(place, span, batch.get(), &end);
  };
  if (status.ok()) {
    guarded([&] {
      if (!is_scanned) return read();
      batch = pool_->Take(span.size(), span.count);
      worker->Fill(span, batch.get());
      return ev::Status::OK();
    });
  }

  lock->lock();
  work_.wait(*lock,
             [&] { return stop_ || accepted_ == number || last_ != kEndless; });
  if (stop_ || last_ != kEndless) return;
  if (!(place == accepted_end_)) {
    // The previous batch ended elsewhere. No other thread can accept a batch
    // meanwhile.
    place = end = accepted_end_;
    is_lost_ = true;
    lock->unlock();
    guarded(read);
    lock->lock();
  }
  if (!(end == published)) is_lost_ = true;
  Accept(number, std::move(status), std::move(batch), end);
}

void BatchReader::Accept(int64_t number, ev::Status status,
                         BatchPool::Owned batch, const Place& end) {
  if (!status.ok() || number == batches_) last_ = number;
  Slot& slot = slots_[number % window_];
  slot.status = std::move(status);
  slot.batch = std::move(batch);
  accepted_ = number + 1;
  accepted_end_ = end;
  work_.notify_all();
  taker_.notify_all();
}

ev::Status BatchReader::Next(int64_t milliseconds, Result* result,
                             BatchPool::Owned* batch) {
  std::unique_lock<std::mutex> lock(lock_);
  if (accepted_ == taken_) WaitFor(milliseconds, &lock, &taker_);
  if (accepted_ == taken_) {
    *result = Result::kNotYet;
    return ev::Status::OK();
  }
  Slot& slot = slots_[taken_ % window_];
  if (taken_ == last_) {
    *result = Result::kEnd;
    return slot.status;
  }
  *result = Result::kBatch;
  *batch = std::move(slot.batch);
  ++taken_;
  work_.notify_all();
  return ev::Status::OK();
}

int64_t BatchReader::ready() {
  std::lock_guard<std::mutex> hold(lock_);
  return accepted_ - taken_;
}

}  // namespace hugectr
