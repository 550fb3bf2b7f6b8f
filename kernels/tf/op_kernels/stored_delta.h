// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What an incremental checkpoint holds of one table. It is read as a whole and
// checked before anything changes: a damaged file must not be half applied, and
// what changes between two saves is small beside the table.

#ifndef KERNELS_TF_OP_KERNELS_STORED_DELTA_H_
#define KERNELS_TF_OP_KERNELS_STORED_DELTA_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/tf/bridge/checkpoint_reader.h"

namespace embedding_variable {

class StoredDelta {
 public:
  // `name` is what the table's tensors' names start with. Slots that the
  // checkpoint lacks are left out. NotFound, InvalidArgument: a tensor that is
  // missing or does not fit; DataLoss: damage.
  tensorflow::Status Read(const CheckpointReader& checkpoint,
                          const std::string& name,
                          const std::vector<ev::SlotSpec>& slots, int64_t dim);

  // Whether it is all of the table, which must be emptied first.
  bool replaces() const { return replaces_; }
  // What the table was initialized with, if it replaces; else empty.
  const std::vector<float>& default_rows() const { return default_rows_; }

  // Forgets what is said of keys that are not wanted, and its memory.
  void Keep(const std::function<bool(int64_t)>& wants);

  // Erases, then inserts and overwrites.
  tensorflow::Status Apply(ev::EmbeddingTable* table) const;

 private:
  bool replaces_ = false;
  std::vector<int64_t> erased_, keys_, versions_, frequencies_;
  std::vector<int64_t> filtered_keys_, filtered_versions_,
      filtered_frequencies_;
  std::vector<float> values_, default_rows_;
  std::vector<ev::SlotSpec> slots_;  // those that are stored
  std::vector<std::vector<float>> slot_values_;
};

// Which part of a stored table each key belongs to: entry floormod(key,
// length), all below num_parts. Empty when its parts are no ranks' of a job.
// `name` is the whole table's. InvalidArgument: an entry that is no part.
tensorflow::Status ReadPlacement(const CheckpointReader& checkpoint,
                                 const std::string& name, int64_t num_parts,
                                 std::vector<int64_t>* placement);

}  // namespace embedding_variable

#endif  // KERNELS_TF_OP_KERNELS_STORED_DELTA_H_
