// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What a format has to do for BatchReader.

#ifndef ADDONS_HUGECTR_READER_SOURCE_H_
#define ADDONS_HUGECTR_READER_SOURCE_H_

#include <cstdint>
#include <memory>

#include "addons/hugectr/reader/batch.h"
#include "addons/hugectr/reader/layout.h"
#include "kernels/engine/base/status.h"

namespace hugectr {

// What one thread needs to read batches. Every function takes the place at
// which the batch begins. With a place at which no batch begins a function may
// tell any error, and does no other harm.
class Worker {
 public:
  virtual ~Worker() = default;

  // Tells where the batch ends if its samples are as those before, without a
  // look at them. False: Scan has to find out.
  virtual bool Guess(const Place& place, const Span& span, Place* end) = 0;

  // Reads and checks the batch, and fills *batch with the samples of the span.
  virtual ev::Status Read(const Place& place, const Span& span, Batch* batch,
                          Place* end) = 0;

  // Reads and checks the batch, and keeps what Fill needs: another thread may
  // go on behind the batch before this one fills it.
  virtual ev::Status Scan(const Place& place, const Span& span, Place* end) = 0;
  virtual void Fill(const Span& span, Batch* batch) = 0;

  // Checks that the data ends at `place`, behind its last sample.
  virtual ev::Status CheckEnd(const Place& place) = 0;
};

// Thread-safe, and as long-lived as its workers.
class Source {
 public:
  virtual ~Source() = default;
  virtual const Layout& layout() const = 0;
  // Of one pass.
  virtual int64_t samples() const = 0;
  virtual Place Begin() const = 0;
  virtual std::unique_ptr<Worker> MakeWorker() = 0;
};

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_SOURCE_H_
