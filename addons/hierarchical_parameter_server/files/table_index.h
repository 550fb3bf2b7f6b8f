// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// From a key to its row's number in a table directory, in a file beside the two
// (`hps_index`, `hps_index32` with keys of 32 bits): made once, mapped by every
// process that serves the table.
//
// The file is a header of one line (64 bytes), then buckets of one line: five
// keys, their row numbers, and how many there are. A full bucket leads on to
// the next. 15 bytes a row.
//
// It belongs to one `key` file: the header has its size, the time of its last
// change and a hash of its keys. If the time differs (the folder was copied),
// the hash decides. A stale, foreign or damaged index is made anew.
//
// The buckets follow from a seed in the header that is drawn for each file, so
// that ids which are chosen to share a bucket of one do not in another.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_FILES_TABLE_INDEX_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_FILES_TABLE_INDEX_H_

#include <cstdint>
#include <memory>
#include <string>

#include "addons/hierarchical_parameter_server/files/mapped_file.h"
#include "addons/hierarchical_parameter_server/files/table_directory.h"
#include "kernels/engine/base/keyed_hash.h"
#include "kernels/engine/base/prefetch.h"
#include "kernels/engine/base/status.h"

namespace hps {

class TableIndex {
 public:
  struct Bucket {
    static constexpr int kKeys = 5;
    int64_t keys[kKeys];
    uint32_t rows[kKeys];
    uint32_t used;
  };
  static_assert(sizeof(Bucket) == 64, "a line");

  // That of the directory, from its file if there is one that fits, else made,
  // and written for the next one to find. A folder that cannot be written to
  // leaves the index in this process's memory; *note then says so.
  // InvalidArgument: a key does not fit into 32 bits, or there are more than
  // 2^32 - 2 rows.
  static ev::Status Open(const TableDirectory& directory, KeyBits bits,
                         std::unique_ptr<TableIndex>* index, std::string* note);
  ~TableIndex();
  TableIndex(const TableIndex&) = delete;
  TableIndex& operator=(const TableIndex&) = delete;

  // Keys without repetitions. Of a key that repeats in the file the last row
  // counts.
  int64_t distinct() const { return distinct_; }
  int64_t bytes() const { return bytes_; }
  // Whether the file was there already.
  bool found() const { return found_; }

  int64_t BucketOf(int64_t key) const {
    return static_cast<int64_t>(
        (static_cast<unsigned __int128>(hash_(key)) * num_buckets_) >> 64);
  }
  void PrefetchBucket(int64_t bucket) const {
    ev::PrefetchLine(buckets_ + bucket);
  }
  // The row's number or -1. bucket: BucketOf(key).
  int64_t Find(int64_t key, int64_t bucket) const {
    for (;;) {
      const Bucket& here = buckets_[bucket];
      const uint32_t used = here.used;
      for (uint32_t i = 0; i < used && i < Bucket::kKeys; ++i) {
        if (here.keys[i] == key) return here.rows[i];
      }
      if (used < Bucket::kKeys) return -1;
      if (++bucket == num_buckets_) bucket = 0;
    }
  }

 private:
  struct Header;

  TableIndex() = default;
  bool Adopt(const void* data, int64_t bytes);

  ev::KeyedHash hash_;
  const Bucket* buckets_ = nullptr;
  int64_t num_buckets_ = 0, distinct_ = 0, bytes_ = 0;
  bool found_ = false;
  std::unique_ptr<MappedFile> file_;
  void* memory_ = nullptr;  // when there is no file
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_FILES_TABLE_INDEX_H_
