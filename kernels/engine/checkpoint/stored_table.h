// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The rows of one stored table, from a checkpoint into an embedding table, in
// pieces.
//
// Slots have keys of their own in the format. Here they are those of the value,
// and the same bytes; DeepRec writes every slot from a hash table of its own,
// in an order of its own. Where the keys of a slot differ, its rows are given
// to the keys that have them, after the values; a key without one keeps the
// slot's initial value.

#ifndef KERNELS_ENGINE_CHECKPOINT_STORED_TABLE_H_
#define KERNELS_ENGINE_CHECKPOINT_STORED_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/base/named_tensors.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/checkpoint/key_filter.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/row_numbers.h"

namespace ev {

// What may differ between a checkpoint and the table that takes it.
struct RestoreOptions {
  KeyFilter keys;
  bool custom_dim = false;     // rows are cut, or completed
  bool reset_version = false;  // versions become 0
};

class StoredTable {
 public:
  // Opens the tensors whose names start with 'name' and checks their types and
  // shapes. Slots that the checkpoint lacks are left out. The checkpoint
  // outlives this.
  Status Open(TensorReader* checkpoint, const std::string& name,
              const std::vector<SlotSpec>& slots, int64_t dim,
              const RestoreOptions& options);

  // Puts all rows that are wanted into the table. Call it once.
  Status Import(EmbeddingTable* table);

 private:
  using Stream = std::unique_ptr<StoredTensor>;
  // A slot that the checkpoint has.
  struct Slot {
    SlotSpec spec;
    std::string name;  // what its tensors' names start with
    bool in_step;      // its keys are those of the value, in the same order
    Stream values;
    int64_t num_rows, dim;
  };
  struct Piece;

  Status OpenRows(const std::string& tensor, int64_t num_rows, Stream* stream,
                  int64_t* dim) const;
  Status OpenSlot(const SlotSpec& spec);
  Status SameKeys(const std::string& tensor, bool* same) const;
  Status HasWantedKeys(bool* any) const;
  Status ReadPiece(int64_t n, const std::vector<Slot*>& in_step, Piece* piece);
  Status ImportSlot(Slot* slot, EmbeddingTable* table) const;

  TensorReader* checkpoint_ = nullptr;
  std::string name_;
  int64_t dim_ = 0;  // of the table
  RestoreOptions options_;
  int64_t num_keys_ = 0, stored_dim_ = 0;
  Stream keys_, values_;
  PerRowNumber<Stream> numbers_;  // null: not stored
  std::vector<Slot> slots_;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_CHECKPOINT_STORED_TABLE_H_
