// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reads batches ahead in threads, in the order of the data, into a bounded
// queue. A batch holds the samples of this rank only; the ranks split each
// batch evenly.
//
// Records differ in size, so the start of a batch is known only after the
// previous one was read. To read in parallel, a thread first publishes where
// its batch should end: a guess, which is right while records are alike, or the
// result of a scan, which costs less than reading. Then it reads the batch,
// while another thread starts to read the next batch from that place. Batches
// are accepted in order. A batch that did not start at the actual end of the
// previous one is read again from there, so a wrong guess only costs time.

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
  // Samples per batch, of all ranks together.
  int64_t batch_size = 0;
  // Restart at the end of the data, even within a batch.
  bool repeat = false;
  int64_t rank = 0;
  int64_t ranks = 1;
  int64_t threads = 1;
  // Largest number of finished batches that wait to be taken.
  int64_t depth = 4;
};

// Next may be called by one thread at a time.
class BatchReader {
 public:
  enum class Result { kBatch, kEnd, kNotYet };

  BatchReader(std::unique_ptr<Source> source, const ReaderOptions& options);
  // Stops the threads and waits for them.
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  // Takes the next batch. Returns kNotYet if there is none within
  // `milliseconds`, so that the caller can check signals. After an error every
  // call returns that error.
  ev::Status Next(int64_t milliseconds, Result* result,
                  BatchPool::Owned* batch);

  // Number of finished batches that wait to be taken; the end of the data, or
  // an error, counts as one.
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
  // Number of batches; the largest int64 if the data repeats.
  int64_t batches_;
  int64_t window_;

  std::mutex lock_;
  // work_ wakes reading threads, taker_ the thread in Next.
  std::condition_variable work_, taker_;
  bool stop_ = false;
  // Whether a thread has taken a number but not yet published the end of its
  // batch.
  bool is_beginning_ = false;
  // Whether a published place was wrong. Then no batch is begun until all begun
  // ones are accepted; the next one starts at accepted_end_.
  bool is_lost_ = false;
  // begun_: number of the next batch to begin, at next_place_. accepted_:
  // number of the next batch to accept, at accepted_end_. taken_: number of the
  // next batch to take.
  int64_t started_ = 0;
  Place next_place_;
  int64_t accepted_ = 0;
  Place accepted_end_;
  int64_t taken_ = 0;
  // Number of the batch with the error or the end of the data; none follows.
  int64_t last_;
  std::vector<Slot> slots_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Start> starts_;
  // Not std::thread, which needs a newer C++ library than the wheel may use.
  std::vector<pthread_t> threads_;
};

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_BATCH_READER_H_
