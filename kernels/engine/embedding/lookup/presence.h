// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Checks whether keys are in a table and in which tier, moves rows between
// tiers, and inserts rows with given values for absent keys. All calls are
// thread-safe.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_PRESENCE_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_PRESENCE_H_

#include <cstdint>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"

namespace ev {

constexpr int32_t kAbsentTier = -1;
constexpr int32_t kMemoryTier = 0;
constexpr int32_t kSlowTier = 1;
constexpr int32_t kSlowestTier = 2;

// Sets tiers[i] to the tier of the row of keys[i]: kMemoryTier (a GPU's memory
// too), kSlowTier (on an SSD, or in CPU memory while other rows are on a GPU),
// kSlowestTier (on an SSD below both memories), or kAbsentTier if it has no
// row. Inserts and counts nothing.
// FailedPrecondition: not initialized.
Status FindTiers(const EmbeddingTable& table, Span<const int64_t> keys,
                 int32_t* tiers);

// Moves the rows of keys to the fastest tier, for an update or a lookup that
// comes soon. Changes no row. No-op for keys without a row and for tables whose
// rows are all in one memory. Keys may repeat. parallel: may be null.
Status Prefetch(EmbeddingTable* table, Span<const int64_t> keys,
                Parallel* parallel = nullptr);

// Inserts a row for each absent key, with its values [N, dim] instead of its
// default row; if a key occurs twice, the first one counts. Slots start at
// their initial values; frequency and version stay unset. Existing rows do not
// change. *inserted: number of new rows. Runs alone. After an error it has
// inserted none.
// FailedPrecondition: not initialized.
Status InsertAbsent(EmbeddingTable* table, Span<const int64_t> keys,
                    const float* values, int64_t* inserted);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_PRESENCE_H_
