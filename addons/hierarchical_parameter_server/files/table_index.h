// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Maps a key to its row number in a table directory. The index is a file in
// that directory (`hps_index`; `hps_index32` for 32-bit keys), made once and
// mapped by every process that serves the table.
//
// The file is a header of 128 bytes followed by buckets of 64 bytes, one cache
// line each. A bucket holds five keys, their row numbers and a count. A full
// bucket overflows into the next. This takes 15 bytes per row.
//
// The index belongs to one `key` file: its header has the number of keys and a
// hash of them, and a hash of the buckets. Open compares both hashes, which
// reads both files, and builds a stale, foreign or damaged index again. The
// hashes are not compared if the inodes of both files and the key file's ctime
// are those in the header: then nothing has changed since the last comparison.
//
// Buckets are chosen with a seed from the header, drawn for each file. So ids
// chosen to collide in one index do not collide in another.

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

  // Maps the directory's index file if it is valid. Otherwise builds the index
  // and writes it for other processes. If the folder is not writable, the index
  // stays in this process's memory and *note explains this. InvalidArgument: a
  // key does not fit into 32 bits, or there are more than 2^32 - 2 rows.
  static ev::Status Open(const TableDirectory& directory, KeyBits bits,
                         std::unique_ptr<TableIndex>* index, std::string* note);
  ~TableIndex();
  TableIndex(const TableIndex&) = delete;
  TableIndex& operator=(const TableIndex&) = delete;

  // Number of distinct keys. If a key repeats in the file, its last row is
  // used.
  int64_t distinct() const { return distinct_; }
  int64_t bytes() const { return bytes_; }
  // Whether a valid file existed before Open.
  bool found() const { return found_; }

  int64_t BucketOf(int64_t key) const {
    return static_cast<int64_t>(
        (static_cast<unsigned __int128>(hash_(key)) * num_buckets_) >> 64);
  }
  void PrefetchBucket(int64_t bucket) const {
    ev::PrefetchLine(buckets_ + bucket);
  }
  // Returns the row number; -1: none; kDamaged: the file was damaged after
  // Open. A damaged file may also cause a wrong row number. bucket:
  // BucketOf(key).
  static constexpr int64_t kDamaged = -2;
  int64_t Find(int64_t key, int64_t bucket) const {
    for (int64_t left = longest_; left > 0; --left) {
      const Bucket& slot = buckets_[bucket];
      const uint32_t used = slot.used;
      if (used > Bucket::kKeys) return kDamaged;
      for (uint32_t i = 0; i < used; ++i) {
        if (slot.keys[i] == key) {
          return slot.rows[i] < rows_ ? int64_t{slot.rows[i]} : kDamaged;
        }
      }
      if (used < Bucket::kKeys) return -1;
      if (++bucket == num_buckets_) bucket = 0;
    }
    return -1;
  }

 private:
  struct Header;

  TableIndex() = default;
  bool Adopt(const void* data, int64_t bytes);

  ev::KeyedHash hash_;
  const Bucket* buckets_ = nullptr;
  int64_t num_buckets_ = 0, distinct_ = 0, longest_ = 0, rows_ = 0, bytes_ = 0;
  bool found_ = false;
  std::unique_ptr<MappedFile> file_;
  void* memory_ = nullptr;  // used if there is no file
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_FILES_TABLE_INDEX_H_
