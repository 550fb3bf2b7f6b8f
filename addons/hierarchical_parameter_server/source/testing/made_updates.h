// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows with a checksum for tests of senders and receivers, and a record of the
// rows that arrived.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_TESTING_MADE_UPDATES_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_TESTING_MADE_UPDATES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/source/update_source.h"

namespace hps {

// Makes a row for key and version: the version, then floats that depend on
// both, then the sum of all. All are whole numbers below 2^24, so the sum is
// exact.
inline std::vector<float> SealedRow(int64_t key, int version, int width) {
  std::vector<float> row(width);
  float sum = row[0] = static_cast<float>(version);
  for (int i = 1; i + 1 < width; ++i) {
    row[i] = static_cast<float>((static_cast<uint64_t>(key) * 31 +
                                 static_cast<uint64_t>(version) * 7 + i) %
                                10007);
    sum += row[i];
  }
  row[width - 1] = sum;
  return row;
}

// Returns the version, or -1 if the row is not one that SealedRow made for the
// key.
inline int VersionOf(int64_t key, const float* row, int width) {
  const int version = static_cast<int>(row[0]);
  return std::vector<float>(row, row + width) == SealedRow(key, version, width)
             ? version
             : -1;
}

inline std::vector<float> SealedRows(const std::vector<int64_t>& keys,
                                     int version, int width) {
  std::vector<float> rows;
  for (const int64_t key : keys) {
    const std::vector<float> row = SealedRow(key, version, width);
    rows.insert(rows.end(), row.begin(), row.end());
  }
  return rows;
}

inline std::vector<int64_t> KeysFrom(int64_t begin, int64_t end) {
  std::vector<int64_t> keys;
  for (int64_t key = begin; key < end; ++key) keys.push_back(key);
  return keys;
}

// The newest version of each key by table; -1: a row was damaged.
class Arrived {
 public:
  void Take(const UpdateBatch& batch) {
    for (size_t i = 0; i < batch.keys.size(); ++i) {
      versions_[batch.tag][batch.keys[i]] =
          VersionOf(batch.keys[i], &batch.rows[i * batch.width], batch.width);
    }
    num_rows_ += static_cast<int64_t>(batch.keys.size());
  }
  void Take(const std::vector<UpdateBatch>& batches) {
    for (const UpdateBatch& batch : batches) Take(batch);
  }
  // Returns whether exactly these keys of the table have arrived, all in this
  // version.
  bool Has(const std::string& tag, const std::vector<int64_t>& keys,
           int version) const {
    std::map<int64_t, int> expected;
    for (const int64_t key : keys) expected[key] = version;
    const auto found = versions_.find(tag);
    return found != versions_.end() && found->second == expected;
  }
  bool HasTable(const std::string& tag) const {
    return versions_.count(tag) > 0;
  }
  int64_t num_rows() const { return num_rows_; }

 private:
  std::map<std::string, std::map<int64_t, int>> versions_;
  int64_t num_rows_ = 0;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_TESTING_MADE_UPDATES_H_
