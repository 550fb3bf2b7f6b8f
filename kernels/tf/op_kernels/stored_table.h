// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The rows of one stored table, from a checkpoint into an embedding table.
//
// Slots have keys of their own in the format. Here they are those of the value,
// and the same bytes; DeepRec writes every slot from a hash table of its own,
// in an order of its own. Where the keys of a slot differ its rows are given to
// the keys that have them, after the values; a key without one keeps the slot's
// initial value.

#ifndef KERNELS_TF_OP_KERNELS_STORED_TABLE_H_
#define KERNELS_TF_OP_KERNELS_STORED_TABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/tf/bridge/checkpoint_reader.h"

namespace embedding_variable {

// Which keys are wanted, and what may differ.
struct RestoreOptions {
  int part = 0, num_parts = 1;  // floormod(floormod(key, 1000), num_parts)
  std::vector<int> placement;   // floormod(key, length) is the key's rank, or
                                // empty: no matter
  int rank = 0;
  bool custom_dim = false;     // rows are cut, or completed
  bool reset_version = false;  // versions become 0

  bool Wants(int64_t key) const;
};

class StoredTable {
 public:
  // `name` is what its tensors' names start with. Checks types and shapes.
  tensorflow::Status Open(const CheckpointReader& checkpoint,
                          const std::string& name,
                          const std::vector<ev::SlotSpec>& slots, int64_t dim,
                          const RestoreOptions& options);

  // Puts all rows that are wanted into the table.
  tensorflow::Status Import(ev::EmbeddingTable* table);

 private:
  using Stream = std::unique_ptr<TensorStream>;
  // A slot that the checkpoint has.
  struct Slot {
    ev::SlotSpec spec;
    std::string name;  // what its tensors' names start with
    bool in_step;      // its keys are those of the value, in the same order
    Stream values;
    int64_t num_rows, dim;
  };

  tensorflow::Status OpenKeys(const std::string& tensor, Stream* keys) const;
  tensorflow::Status OpenRows(const std::string& tensor, int64_t num_rows,
                              Stream* stream, int64_t* dim) const;
  tensorflow::Status OpenMeta(const std::string& tensor, Stream* stream) const;
  tensorflow::Status OpenSlot(const ev::SlotSpec& spec);
  tensorflow::Status SameKeys(const std::string& tensor, bool* same) const;
  tensorflow::Status HasWantedKeys(bool* any) const;
  tensorflow::Status ImportSlot(Slot* slot, ev::EmbeddingTable* table) const;

  const CheckpointReader* checkpoint_ = nullptr;
  std::string name_;
  int64_t dim_ = 0;  // of the table
  RestoreOptions options_;
  int64_t num_keys_ = 0, stored_dim_ = 0;
  Stream keys_, values_, versions_, frequencies_;
  std::vector<Slot> slots_;
};

}  // namespace embedding_variable

#endif  // KERNELS_TF_OP_KERNELS_STORED_TABLE_H_
