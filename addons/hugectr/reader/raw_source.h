// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The samples of a Raw file, in blocks of a batch each: in the file's order, or
// shuffled anew in each pass. A last block that is shorter stays the last one;
// samples keep their order in a block.

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
  // How many the file has.
  int64_t samples = 0;
  // Samples of a block.
  int64_t block = 0;
  bool is_shuffled = false;
  int64_t seed = 0;
  // The pass that is read first; it has an order of its own.
  int64_t first_pass = 0;
  // Bytes that a thread reads at a time.
  int64_t tile = 0;
};

class RawSource : public Source {
 public:
  // An error says that the file cannot be read or has another size.
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
