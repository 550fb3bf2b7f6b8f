// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Steps of one table whose rows may be in GPU memory: Adagrad, one id per
// sample, pooled lookup and update by the samples' gradients.

#ifndef BENCHMARKS_ENGINE_ONE_TABLE_H_
#define BENCHMARKS_ENGINE_ONE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/testing/thread_pool.h"

namespace ev {
namespace bench {

// The id of the row with that number.
int64_t KeyOf(int64_t row);

// Output buffer of a lookup, in memory that the device can access directly if
// there is such memory.
class Floats {
 public:
  explicit Floats(size_t count);
  ~Floats();
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  float* data() const { return data_; }

 private:
  void* const transfer_;
  std::vector<float> ordinary_;
  float* data_ = nullptr;
};

class OneTable {
 public:
  // Bytes of a row with its slot.
  static int64_t RowBytes(int64_t dim);

  // Creates the table and its rows, the first ones last: an order in which
  // tables are not filled in practice. Prints the time.
  OneTable(const TableOptions& options, int64_t rows, int64_t batch,
           int threads);

  // Looks up the ids, [batch], and trains their rows if 'trains'.
  void Step(const std::vector<int64_t>& ids, bool trains = true);

  EmbeddingTable* table() { return table_.get(); }
  Parallel* parallel() { return &pool_; }
  // Sums over the steps since the last Reset.
  double lookup_seconds() const { return lookup_seconds_; }
  int64_t distinct_rows() const { return distinct_rows_; }
  void Reset() { lookup_seconds_ = distinct_rows_ = 0; }

 private:
  const int64_t batch_;
  testing::ThreadPool pool_;
  std::unique_ptr<EmbeddingTable> table_;
  const std::vector<std::vector<SlotSpec>> slots_ = {{{"accumulator", 0.1f}}};
  std::vector<int64_t> splits_;
  std::unique_ptr<Floats> pooled_, grads_;
  int64_t distinct_rows_ = 0;
  double lookup_seconds_ = 0;
};

}  // namespace bench
}  // namespace ev

#endif  // BENCHMARKS_ENGINE_ONE_TABLE_H_
