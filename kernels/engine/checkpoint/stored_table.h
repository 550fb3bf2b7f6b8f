// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Reads the rows of one stored table into an embedding table, in pieces.
//
// In the checkpoint format each slot has a list of keys of its own. In
// checkpoints of this package that list is the same as the value's, byte for
// byte. DeepRec writes each slot from a separate hash table, in another order.
// If the keys of a slot differ from those of the value, its rows are assigned
// by key after the values. A key without such a row keeps the slot's initial
// value.

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

// Permitted differences between a checkpoint and the restored table.
struct RestoreOptions {
  KeyFilter keys;
  bool custom_dim = false;     // cut or complete rows of another length
  bool reset_version = false;  // set versions to 0
};

class StoredTable {
 public:
  // Opens the tensors whose names start with 'name' and checks their types and
  // shapes. Slots that the checkpoint lacks are skipped. The checkpoint must
  // outlive this object.
  Status Open(TensorReader* checkpoint, const std::string& name,
              const std::vector<SlotSpec>& slots, int64_t dim,
              const RestoreOptions& options);

  // Imports all rows whose keys options.keys selects into the table. Call it
  // once.
  Status Import(EmbeddingTable* table);

 private:
  using Stream = std::unique_ptr<StoredTensor>;
  // A stored slot.
  struct Slot {
    SlotSpec spec;
    std::string name;  // prefix of its tensor names
    bool in_step;      // same keys as the value, in the same order
    Stream values;
    // width: in the table.
    int64_t num_rows, width, stored_width;
  };
  struct Piece;

  // Opens float [num_rows, width]; *stored_width is another one only with
  // custom_dim.
  Status OpenRows(const std::string& tensor, int64_t num_rows, int64_t width,
                  Stream* stream, int64_t* stored_width) const;
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
