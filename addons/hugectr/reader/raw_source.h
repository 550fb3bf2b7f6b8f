// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The samples of a Raw file, in blocks of one batch each: in the file's order,
// or shuffled anew in each pass. Samples keep their order within a block. A
// shorter last block stays last.

#ifndef ADDONS_HUGECTR_READER_RAW_SOURCE_H_
#define ADDONS_HUGECTR_READER_RAW_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "addons/hugectr/reader/block_order.h"
#include "addons/hugectr/reader/raw_rows.h"
#include "addons/hugectr/reader/source.h"
#include "kernels/engine/base/status.h"

namespace hugectr {

struct RawOptions {
  std::string path;
  // Number of samples in the file.
  int64_t samples = 0;
  // Samples per block.
  int64_t block = 0;
  bool is_shuffled = false;
  int64_t seed = 0;
  // The first pass to read; each pass has its own order.
  int64_t first_pass = 0;
  // Bytes per read of a thread.
  int64_t tile = 0;
};

class RawSource : public Source {
 public:
  // Returns an error if the file cannot be read or has another size.
  static ev::Status Open(const RawFormat& format, const RawOptions& options,
                         std::unique_ptr<Source>* source);

  const Layout& layout() const override { return layout_; }
  int64_t samples() const override { return options_.samples; }
  Place Begin() const override { return Place{options_.first_pass, 0, 0}; }
  std::unique_ptr<Worker> MakeWorker() override;

 private:
  friend class RawWorker;

  RawSource(const RawFormat& format, const RawOptions& options);

  const Layout layout_;
  const RawOptions options_;
  const int64_t row_bytes_;
  const RawRows rows_;
  BlockOrder order_;
};

}  // namespace hugectr

#endif  // ADDONS_HUGECTR_READER_RAW_SOURCE_H_
