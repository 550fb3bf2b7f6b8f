// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The records of a list of Norm files, in the order of the list.

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
  // Default number of bytes per read: the data is then still in the L2 cache
  // when it is converted.
  static constexpr int64_t kTile = 1 << 18;

  // Reads the headers. Errors name the file and the byte of its header.
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
    // Number of records in the header, and that number limited to what can be
    // added.
    int64_t header_records = 0;
    int64_t records = 0;
  };

  NormSource(const NormFormat& format, int64_t tile)
      : format_(format), tile_(tile) {}
  ev::Status AddFile(const std::string& path);

  const NormFormat format_;
  const int64_t tile_;
  std::vector<Listed> files_;
  int64_t samples_ = 0;
  // Shape of the first record.
  NormShape shape_;
  // Number of batches with records of another shape.
  std::atomic<int> misses_{0};
};

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_NORM_SOURCE_H_
