// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Interface of a file format for BatchReader.

#ifndef ADDONS_HUGECTR_READER_SOURCE_H_
#define ADDONS_HUGECTR_READER_SOURCE_H_

#include <cstdint>
#include <memory>

#include "addons/hugectr/reader/batch.h"
#include "addons/hugectr/reader/layout.h"
#include "kernels/engine/base/status.h"

namespace hugectr {

// The state of one thread that reads batches. Every function takes the place at
// which its batch begins. If no batch begins there, a function may return any
// error, but has no other effect.
class Worker {
 public:
  virtual ~Worker() = default;

  // Sets *end to the end of the batch, assuming that its samples are like the
  // previous ones, without reading them. Returns false if Scan is needed.
  virtual bool Guess(const Place& place, const Span& span, Place* end) = 0;

  // Reads and checks the batch, and fills *batch with the samples of the span.
  virtual ev::Status Read(const Place& place, const Span& span, Batch* batch,
                          Place* end) = 0;

  // Reads and checks the batch, and keeps its data for Fill. Another thread may
  // read the next batch before this one is filled.
  virtual ev::Status Scan(const Place& place, const Span& span, Place* end) = 0;
  virtual void Fill(const Span& span, Batch* batch) = 0;

  // Checks that the data ends at `place`, after its last sample.
  virtual ev::Status CheckEnd(const Place& place) = 0;
};

// Thread-safe; must outlive its workers.
class Source {
 public:
  virtual ~Source() = default;
  virtual const Layout& layout() const = 0;
  // Number of samples per pass.
  virtual int64_t samples() const = 0;
  virtual Place Begin() const = 0;
  virtual std::unique_ptr<Worker> MakeWorker() = 0;
};

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_SOURCE_H_
