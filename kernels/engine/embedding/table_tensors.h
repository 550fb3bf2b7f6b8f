// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tensors of a table as a whole, not of its rows, as checkpoints and snapshots
// hold them: its default rows, and the seed and count that determine the random
// bits of narrow values. To add a tensor, add an entry to the list in
// table_tensors.cc. Compiles as C++14.

#ifndef KERNELS_ENGINE_EMBEDDING_TABLE_TENSORS_H_
#define KERNELS_ENGINE_EMBEDDING_TABLE_TENSORS_H_

#include <cstdint>
#include <vector>

#include "kernels/engine/base/named_tensors.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"

namespace ev {

// A size of a shape: any that is at least 1.
constexpr int64_t kAnySize = -1;

struct TableTensorSpec {
  const char* name;
  ElementType type;  // kFloat or kInt64
  std::vector<int64_t> (*shape)(int64_t dim);
  // Whether it changes only when the table is emptied. Only a delta that
  // replaces the table has such a tensor; in others its first size is 0.
  bool fixed;
  // Whether only tables with narrow values have it. Such tensors come last.
  bool narrow;
  // REQUIRES: the table lock, frozen.
  TableTensor (*get)(const EmbeddingTable::Impl& table);
  // Sets a stored tensor. A fixed one may be null: the checkpoint lacks it.
  Status (*set)(const TableTensor* stored, EmbeddingTable* table);
};

// Returns the list of all tensors. The first one is fixed, and setting it
// empties the table.
Span<const TableTensorSpec> TableTensorSpecs();

// Returns the tensors that the table has, in the order of the list. with_fixed:
// whether fixed ones have elements. REQUIRES: the table lock, frozen.
std::vector<TableTensor> GetTableTensors(const EmbeddingTable::Impl& table,
                                         bool with_fixed);
// Sets either the fixed tensors, which empties the table, or the others.
// tensors: in the order of the list; those that are not stored have no bytes or
// are missing at the end.
Status SetTableTensors(Span<const TableTensor> tensors, bool fixed,
                       EmbeddingTable* table);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_TABLE_TENSORS_H_
