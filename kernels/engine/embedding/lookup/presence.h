// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Whether keys are in a table and where, and rows that a caller chooses for
// those that are not. Both may be called by any number of threads, beside
// anything else.

#ifndef KERNELS_ENGINE_EMBEDDING_LOOKUP_PRESENCE_H_
#define KERNELS_ENGINE_EMBEDDING_LOOKUP_PRESENCE_H_

#include <cstdint>

#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"

namespace ev {

constexpr int32_t kAbsentTier = -1;
constexpr int32_t kMemoryTier = 0;
constexpr int32_t kSlowTier = 1;

// tiers[i]: where the row of keys[i] is: kMemoryTier (a GPU's memory too),
// kSlowTier (on an SSD, or in CPU memory where other rows are in a GPU's), or
// kAbsentTier when it has none. Inserts and counts nothing.
// FailedPrecondition: not initialized.
Status FindTiers(const EmbeddingTable& table, Span<const int64_t> keys,
                 int32_t* tiers);

// Brings the rows of keys to where using them costs least: an update or a
// lookup that comes soon finds them there. Changes no row; keys without a row,
// and tables whose rows are all in one memory, cost nothing. Any duplicates.
Status Prefetch(EmbeddingTable* table, Span<const int64_t> keys);

// Gives each key that has no row one that starts with its values, [N, dim],
// instead of its default row; of a key that comes twice the first counts. Slots
// start at their initial values; nothing is counted or stamped. Rows that are
// there stay as they are. *inserted: how many are new, also after
// ResourceExhausted. FailedPrecondition: not initialized.
Status InsertAbsent(EmbeddingTable* table, Span<const int64_t> keys,
                    const float* values, int64_t* inserted);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_LOOKUP_PRESENCE_H_
