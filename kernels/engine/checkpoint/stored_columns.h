// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Shared by all readers of a checkpoint: finding a table's parts, opening
// columns with a check of type and shape, and reading pieces of them.
//
// Every error names the tensor and the checkpoint. All functions may throw
// std::bad_alloc.

#ifndef KERNELS_ENGINE_CHECKPOINT_STORED_COLUMNS_H_
#define KERNELS_ENGINE_CHECKPOINT_STORED_COLUMNS_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/named_tensors.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"

namespace ev {

// Returns the stored tables under the name 'table': the table itself, or its
// parts in order. keys: the suffix of the tensor that identifies a stored
// table. kind: what the message calls the checkpoint. NotFound: neither exists.
Status FindParts(TensorReader* checkpoint, const std::string& table,
                 const char* keys, const char* kind,
                 std::vector<std::string>* names);

// Returns InvalidArgument: "tensor T of checkpoint P: expected EXPECTED, got
// float [3]".
Status Misfit(const TensorReader& checkpoint, const std::string& tensor,
              const std::string& expected, const StoredTensor& got);

// Opens a vector of int64 or int32.
Status OpenKeys(TensorReader* checkpoint, const std::string& tensor,
                std::unique_ptr<StoredTensor>* keys);
// Opens a matrix of rows. Rows of float16 or uint8 (base/row_format.h) become a
// tensor of type kFloat, [n, dim], that is read in whole rows; other tensors
// stay as they are.
Status OpenRowTensor(TensorReader* checkpoint, const std::string& tensor,
                     std::unique_ptr<StoredTensor>* rows);
// Opens int64 [n]. Leaves *numbers null if the checkpoint has no such tensor,
// or [0].
Status OpenNumbers(TensorReader* checkpoint, const std::string& tensor,
                   int64_t n, std::unique_ptr<StoredTensor>* numbers);

// Reads the tensors of a table as a whole (table_tensors.h), in the order of
// TableTensorSpecs. Those that are not stored have no bytes. is_delta: they are
// those of an incremental checkpoint. custom_dim: skip those whose last size
// does not fit.
Status ReadTableTensors(TensorReader* checkpoint, const std::string& table,
                        int64_t dim, bool is_delta, bool custom_dim,
                        std::vector<TableTensor>* tensors);

// Reads the next 'count' elements; T is the tensor's type.
template <typename T>
Status ReadInto(StoredTensor* tensor, int64_t count, std::vector<T>* elements) {
  elements->resize(count);
  return tensor->Read(count * sizeof(T), elements->data());
}
// Reads the next 'count' elements of type int64 or int32.
Status ReadKeys(StoredTensor* tensor, int64_t count,
                std::vector<int64_t>* keys);

// Keeps only the rows [width] at the positions in 'kept', which ascend.
template <typename T>
void KeepRows(const std::vector<int64_t>& kept, int64_t width,
              std::vector<T>* rows) {
  for (size_t k = 0; k < kept.size(); ++k) {
    if (static_cast<int64_t>(k) == kept[k]) continue;
    std::copy_n(rows->begin() + kept[k] * width, width,
                rows->begin() + k * width);
  }
  rows->resize(kept.size() * width);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_CHECKPOINT_STORED_COLUMNS_H_
