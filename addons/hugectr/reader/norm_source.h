// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The records of a list of Norm files, in the list's order.

#ifndef ADDONS_HUGECTR_READER_NORM_SOURCE_H_
#define ADDONS_HUGECTR_READER_NORM_SOURCE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "addons/hugectr/reader/norm_format.h"
#include "addons/hugectr/reader/norm_uniform.h"
#include "addons/hugectr/reader/source.h"
#include "kernels/engine/base/status.h"

namespace hugectr {

class NormSource : public Source {
 public:
  // Bytes that a thread reads at a time unless told: what is made of them still
  // finds them in the processor's second cache.
  static constexpr int64_t kTile = 1 << 18;

  // Reads the headers. An error names the file and the byte of its header.
  static ev::Status Open(const NormFormat& format,
                         const std::vector<std::string>& paths, int64_t tile,
                         std::unique_ptr<Source>* source);

  const Layout& layout() const override { return format_.layout; }
  int64_t samples() const override { return samples_; }
  Place Begin() const override { return Place{0, 0, kNormHeader}; }
  std::unique_ptr<Worker> MakeWorker() override;

 private:
  friend class NormWorker;

  struct Listed {
    std::string path;
    int64_t size = 0;
    // What the header says, and as much of it as can be counted.
    int64_t told = 0;
    int64_t records = 0;
  };

  NormSource(const NormFormat& format, int64_t tile)
      : format_(format), tile_(tile) {}
  ev::Status AddFile(const std::string& path);

  const NormFormat format_;
  const int64_t tile_;
  std::vector<Listed> files_;
  int64_t samples_ = 0;
  // Of the first record of all.
  NormShape shape_;
  // How many batches had records of another shape.
  std::atomic<int> misses_{0};
};

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_NORM_SOURCE_H_
