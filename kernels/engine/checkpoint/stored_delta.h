// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The contents of an incremental checkpoint for one table. It is read as a
// whole and checked before anything changes, because a damaged file must not be
// applied by half. The changes between two saves are small compared with the
// table.

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
  // lacks are not read; Apply sets them to their initial value in all rows that
  // it writes. NotFound, InvalidArgument: a tensor is missing or does not fit.
  Status Read(TensorReader* checkpoint, const std::string& name,
              const std::vector<SlotSpec>& slots, int64_t dim);

  // Whether it contains the whole table, which must then be emptied first.
  bool replaces() const { return replaces_; }
  // Tensors of the table as a whole; empty in DeepRec's checkpoints.
  const std::vector<TableTensor>& tensors() const { return tensors_; }

  // Drops the entries of keys that the predicate rejects, and their memory.
  void Keep(const std::function<bool(int64_t)>& wants);

  // InvalidArgument: the table cannot have one of the keys.
  Status CheckKeys(const EmbeddingTable& table) const;

  // Erases keys, then inserts and overwrites rows, then imports the counts of
  // filtered keys. After an error the delta may be applied in part.
  Status Apply(EmbeddingTable* table) const;

 private:
  Status ReadOwn(TensorReader* checkpoint, const std::string& name,
                 int64_t dim);

  bool replaces_ = false;
  std::vector<int64_t> erased_, keys_, filtered_keys_;
  // Numbers of keys_ and of filtered_keys_; empty if not recorded.
  PerRowNumber<std::vector<int64_t>> numbers_, filtered_numbers_;
  std::vector<float> values_;
  std::vector<TableTensor> tensors_;
  std::vector<SlotSpec> slots_;  // only stored slots
  std::vector<std::vector<float>> slot_values_;
};

// Reads the part of each key of a stored table: entry floormod(key, length),
// all below num_parts. Leaves *placement empty if the parts are not those of a
// job's ranks. 'name' is that of the whole table. InvalidArgument: an entry is
// not a part.
Status ReadPlacement(TensorReader* checkpoint, const std::string& name,
                     int64_t num_parts, std::vector<int64_t>* placement);

}  // namespace ev

#endif  // KERNELS_ENGINE_CHECKPOINT_STORED_DELTA_H_
