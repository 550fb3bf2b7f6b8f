// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Threads that read batches ahead, in the data's order, into a bounded queue.
//
// Where a batch begins is known once the one before was read, since records
// differ in size. Threads read side by side all the same: a thread that begins
// a batch first tells the next thread where that batch should end (a guess that
// holds as long as records are alike), or scans it, which is less than reading
// it. Batches are accepted in order, and one is accepted only if it began where
// the one before was found to end; else it is read again from there. So a wrong
// guess costs time and changes nothing.

#ifndef ADDONS_HUGECTR_READER_BATCH_READER_H_
#define ADDONS_HUGECTR_READER_BATCH_READER_H_

#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "addons/hugectr/reader/batch.h"
#include "addons/hugectr/reader/source.h"
#include "kernels/engine/base/status.h"

namespace hugectr {

struct ReaderOptions {
  // Samples of all ranks' parts of a batch together.
  int64_t batch_size = 0;
  // The data begins again at its end, in the midst of a batch.
  bool repeat = false;
  int64_t rank = 0;
  int64_t ranks = 1;
  int64_t threads = 1;
  // Finished batches that wait at most.
  int64_t depth = 4;
};

// One thread at a time takes batches.
class BatchReader {
 public:
  enum class Result { kBatch, kEnd, kNotYet };

  BatchReader(std::unique_ptr<Source> source, const ReaderOptions& options);
  // Ends the threads, and waits for them.
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  // Takes the next batch. After `milliseconds` without one the result is
  // kNotYet, so that the caller can look at signals. An error stays: each
  // further call returns it.
  ev::Status Next(int64_t milliseconds, Result* result,
                  BatchPool::Owned* batch);

  // Batches that are finished and not taken; the end of the data, or an error,
  // counts as one.
  int64_t ready();

 private:
  struct Slot {
    ev::Status status;
    BatchPool::Owned batch;
  };

  struct Start {
    BatchReader* reader;
    Worker* worker;
  };

  static void* Enter(void* start);
  void Run(Worker* worker);
  bool Begin(std::unique_lock<std::mutex>* lock, int64_t* number, Place* place);
  void ReadOne(std::unique_lock<std::mutex>* lock, Worker* worker,
               int64_t number, Place place);
  void Accept(int64_t number, ev::Status status, BatchPool::Owned batch,
              const Place& end);
  Span SpanOf(int64_t number) const;

  const std::unique_ptr<Source> source_;
  const ReaderOptions options_;
  const std::shared_ptr<BatchPool> pool_;
  // Batches of the data; a number without end if it repeats.
  int64_t batches_;
  int64_t window_;

  std::mutex lock_;
  // Of threads that read; of the thread that takes batches.
  std::condition_variable work_, taker_;
  bool stop_ = false;
  // Whether a thread is between taking a number and telling where its batch
  // should end.
  bool is_beginning_ = false;
  // Whether places that were told are wrong: no batch is begun until all that
  // were begun have been accepted.
  bool is_lost_ = false;
  // The next batch to begin, and where; the next to accept, and where it
  // begins; the next to take.
  int64_t begun_ = 0;
  Place next_place_;
  int64_t accepted_ = 0;
  Place accepted_end_;
  int64_t taken_ = 0;
  // The batch at which an error or the end is; none follows.
  int64_t last_;
  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Start> starts_;
  // Not std::thread, which needs a newer C++ library than the wheel may.
  std::vector<pthread_t> threads_;
};

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_BATCH_READER_H_
