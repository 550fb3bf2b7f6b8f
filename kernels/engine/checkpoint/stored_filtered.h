// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The filtered keys of a checkpoint: keys that an admission filter has counted
// and not admitted.

#ifndef KERNELS_ENGINE_CHECKPOINT_STORED_FILTERED_H_
#define KERNELS_ENGINE_CHECKPOINT_STORED_FILTERED_H_

#include <memory>
#include <string>

#include "kernels/engine/base/named_tensors.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/checkpoint/key_filter.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/row_numbers.h"

namespace ev {

class StoredFiltered {
 public:
  // Opens the tensors whose names start with 'name' and checks their types and
  // shapes. All of them are optional.
  Status Open(TensorReader* checkpoint, const std::string& name);

  // Adds the keys that the filter takes to the table. Call it once, after the
  // table's rows have been imported.
  Status Import(const KeyFilter& wanted, EmbeddingTable* table);

 private:
  // Null if the checkpoint has none.
  std::unique_ptr<StoredTensor> keys_;
  PerRowNumber<std::unique_ptr<StoredTensor>> numbers_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_CHECKPOINT_STORED_FILTERED_H_
