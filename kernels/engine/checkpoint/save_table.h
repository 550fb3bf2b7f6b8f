// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A table into a checkpoint, in pieces: as it was at one moment, while lookups
// and updates go on (table_reader.h says what it needs besides the table).

#ifndef KERNELS_ENGINE_CHECKPOINT_SAVE_TABLE_H_
#define KERNELS_ENGINE_CHECKPOINT_SAVE_TABLE_H_

#include <string>
#include <vector>

#include "kernels/engine/base/named_tensors.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"

namespace ev {

struct SaveOptions {
  std::string name;         // what the names of the table's tensors start with
  bool int32_keys = false;  // the keys' type in the checkpoint
  std::vector<SlotSpec> slots;  // those that the table lacks are made
  bool with_filtered = true;    // whether keys that a filter counts are stored
};

// The streams that SaveTable writes to: stream 0 (keys last, after all that is
// small), one for the value and each slot, one for each number that the table
// records. Tables that are saved after each other share streams.
int NumSaveStreams(const SaveOptions& options, const TableOptions& table);

// Writes the tensors of one table. InvalidArgument: 2^31 rows or more, a key
// that is not int32 where keys are to be. May throw std::bad_alloc.
Status SaveTable(const SaveOptions& options, EmbeddingTable* table,
                 TensorWriter* checkpoint);

}  // namespace ev

#endif  // KERNELS_ENGINE_CHECKPOINT_SAVE_TABLE_H_
