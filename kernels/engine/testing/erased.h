// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_ENGINE_TESTING_ERASED_H_
#define KERNELS_ENGINE_TESTING_ERASED_H_

#include <cstdint>

#include "gtest/gtest.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"

namespace ev {
namespace testing {

// Erases the keys and returns how many of them had a row.
inline int64_t Erased(EmbeddingTable* table, Span<const int64_t> keys) {
  int64_t rows = -1;
  const Status status = table->Erase(keys, &rows);
  EXPECT_TRUE(status.ok()) << status.message();
  return rows;
}

}  // namespace testing
}  // namespace ev

#endif  // KERNELS_ENGINE_TESTING_ERASED_H_
