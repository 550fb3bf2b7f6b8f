// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The layout of keys and rows that an owner reads from the messages of all
// ranks. Internal to this folder.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_SERVED_TABLE_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_SERVED_TABLE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "addons/sparse_operation_kit/exchange/message.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/scratch.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/lookup_plan.h"
#include "kernels/engine/embedding/lookup/row_lookup.h"

namespace sok {

// One table: the keys of all ranks in one list, with the start of each rank's
// keys in the list and of its rows in the message.
struct ServedTable {
  int64_t dim = 0;
  std::vector<int64_t> first_key;  // [W + 1]
  std::vector<int64_t> chunk;      // [W]: starts of the rows, in numbers
};

// Lays out the chunks of 'tables' by rank, then by table. served: one entry per
// table of the message; those of 'tables' have their dim set. Returns the total
// count of numbers.
int64_t LayOut(const MessageLayout& layout, ev::Span<const int> tables,
               std::vector<ServedTable>* served);

// LayOut for the gradients of 'tables', each once. InvalidArgument if they are
// not num_floats numbers, or if 'plan' is not of this message.
ev::Status LayOutGradients(const MessageLayout& layout,
                           const ev::LookupPlan& plan,
                           ev::Span<const int> tables, int64_t num_floats,
                           std::vector<ServedTable>* served);

// The keys of a message, grouped by table.
class ServedKeys {
 public:
  using Tables = std::vector<std::shared_ptr<ev::EmbeddingTable>>;

  // InvalidArgument if the number of tables differs. Throws std::bad_alloc.
  ev::Status Read(const MessageLayout& layout, const int64_t* message,
                  const Tables& tables, ev::Parallel* parallel);

  const std::vector<ServedTable>& served() const { return served_; }
  const std::vector<ev::RowsInput>& inputs() const { return inputs_; }
  int64_t num_floats() const { return num_floats_; }

 private:
  struct Buffer {
    ev::LineBuffer line;
  };
  static ev::Recycler<Buffer>& Buffers();

  std::unique_ptr<ev::Recycler<Buffer>::Handle> buffer_;
  std::vector<ServedTable> served_;
  std::vector<ev::RowsInput> inputs_;
  int64_t num_floats_ = 0;
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_SERVED_TABLE_H_
