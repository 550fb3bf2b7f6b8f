// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What an incremental checkpoint holds of one table. It is read as a whole and
// checked before anything changes: a damaged file must not be half applied, and
// what changes between two saves is small beside the table.

#ifndef KERNELS_ENGINE_CHECKPOINT_STORED_DELTA_H_
#define KERNELS_ENGINE_CHECKPOINT_STORED_DELTA_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/engine/base/named_tensors.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/row_numbers.h"

namespace ev {

class StoredDelta {
 public:
  // Reads the tensors whose names start with 'name'. Slots that the checkpoint
  // lacks are left out. NotFound, InvalidArgument: a tensor that is missing or
  // does not fit.
  Status Read(TensorReader* checkpoint, const std::string& name,
              const std::vector<SlotSpec>& slots, int64_t dim);

  // Whether it is all of the table, which must be emptied first.
  bool replaces() const { return replaces_; }
  // What the table was initialized with, if it replaces; else empty.
  const std::vector<float>& default_rows() const { return default_rows_; }

  // Forgets what is said of keys that are not wanted, and its memory.
  void Keep(const std::function<bool(int64_t)>& wants);

  // Erases, then inserts and overwrites.
  Status Apply(EmbeddingTable* table) const;

 private:
  Status ReadOwn(TensorReader* checkpoint, const std::string& name,
                 int64_t dim);

  bool replaces_ = false;
  std::vector<int64_t> erased_, keys_, filtered_keys_;
  // Of keys_ and of filtered_keys_; empty: not recorded.
  PerRowNumber<std::vector<int64_t>> numbers_, filtered_numbers_;
  std::vector<float> values_, default_rows_;
  std::vector<SlotSpec> slots_;  // those that are stored
  std::vector<std::vector<float>> slot_values_;
};

// Reads of which part of a stored table each key is: entry floormod(key,
// length), all below num_parts. Leaves *placement empty when its parts are not
// those of a job's ranks. 'name' is the whole table's. InvalidArgument: an
// entry that is no part.
Status ReadPlacement(TensorReader* checkpoint, const std::string& name,
                     int64_t num_parts, std::vector<int64_t>* placement);

}  // namespace ev

#endif  // KERNELS_ENGINE_CHECKPOINT_STORED_DELTA_H_
