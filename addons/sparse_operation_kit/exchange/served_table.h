// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What an owner reads out of the messages of all ranks; for this room's files.

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

// One table's keys of all ranks as one list, and where each rank's lie in it
// and in the rows.
struct ServedTable {
  int64_t dim = 0;
  std::vector<int64_t> first_key;  // [W + 1]
  std::vector<int64_t> chunk;      // [W]: of the rows, in numbers
};

// The chunks of 'tables', one after the other for each rank, of [T] tables of
// which those have a dim. Returns the total.
int64_t LayOut(const MessageLayout& layout, ev::Span<const int> tables,
               std::vector<ServedTable>* served);

// LayOut of the gradients of 'tables', each once. InvalidArgument: they are not
// num_floats, or the plan is another's.
ev::Status LayOutGradients(const MessageLayout& layout,
                           const ev::LookupPlan& plan,
                           ev::Span<const int> tables, int64_t num_floats,
                           std::vector<ServedTable>* served);

// The keys of a message, table by table.
class ServedKeys {
 public:
  using Tables = std::vector<std::shared_ptr<ev::EmbeddingTable>>;

  // InvalidArgument: another number of tables. Throws std::bad_alloc.
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
