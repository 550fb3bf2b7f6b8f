// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The keys of a checkpoint that a filter had counted and not admitted.

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
  // shapes. A checkpoint without such keys, or without their numbers, is fine.
  Status Open(TensorReader* checkpoint, const std::string& name);

  // Gives the table those keys that 'wanted' takes; after its rows. Call it
  // once.
  Status Import(const KeyFilter& wanted, EmbeddingTable* table);

 private:
  // Null where the checkpoint has none.
  std::unique_ptr<StoredTensor> keys_;
  PerRowNumber<std::unique_ptr<StoredTensor>> numbers_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_CHECKPOINT_STORED_FILTERED_H_
