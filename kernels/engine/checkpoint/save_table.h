// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Saves a table to a checkpoint, in pieces, as it was at one moment while
// lookups and updates continue (table_reader.h describes the memory this
// needs).

#ifndef KERNELS_ENGINE_CHECKPOINT_SAVE_TABLE_H_
#define KERNELS_ENGINE_CHECKPOINT_SAVE_TABLE_H_

#include <string>
#include <vector>

#include "kernels/engine/base/named_tensors.h"
#include "kernels/engine/base/row_format.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"

namespace ev {

struct SaveOptions {
  std::string name;             // prefix of the table's tensor names
  bool int32_keys = false;      // the keys' type in the checkpoint
  std::vector<SlotSpec> slots;  // slots that the table lacks are created
  bool with_filtered = true;    // whether filtered keys are stored
  // Type of the stored values; slots are float32.
  RowType row_type = RowType::kFloat32;
};

// Returns the number of streams that SaveTable writes: stream 0 for keys and
// everything small, one for the value and for each slot, and one for each
// number that the table records. Each table begins at stream 0 again, so a
// writer of several tables needs the largest of their numbers. table: the
// options of EmbeddingTable::options(), which are completed.
int NumSaveStreams(const SaveOptions& options, const TableOptions& table);

// Writes the tensors of one table. InvalidArgument: 2^31 rows or more, or a key
// that does not fit in int32 with int32_keys, or a row that row_type cannot
// store; the message has its key. FailedPrecondition: the table is
// not initialized. Other errors are those of the table (table_reader.h) and of
// the writer. After any of them, and for such a key, some tensors of the table
// may have been written. May throw std::bad_alloc.
Status SaveTable(const SaveOptions& options, EmbeddingTable* table,
                 TensorWriter* checkpoint);

}  // namespace ev

#endif  // KERNELS_ENGINE_CHECKPOINT_SAVE_TABLE_H_
