// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Filters rare keys: a key that has no row yet is admitted only with a given
// probability. An admitted key is looked up normally and gets its row with its
// first gradient.
// The key's owner makes one random draw per key and call, so all ranks that
// look up the key get the same result.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ADMISSION_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ADMISSION_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "addons/sparse_operation_kit/exchange/message.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"

namespace sok {

// Returns whether a key without a row is admitted: true for a fraction 'ratio'
// of all pairs of key and seed. ratio is in [0, 1].
bool Draws(int64_t key, uint64_t seed, double ratio);

// message: the message that 'layout' was parsed from. ratios: one per table.
// flags: one number per key, ordered by rank, table, key: 1 if the key has a
// row or is admitted, else 0.
//
// Errors: those of ev::FindTiers; InvalidArgument if the number of tables or
// ratios differs from that of 'layout'.
ev::Status Admit(const MessageLayout& layout, const int64_t* message,
                 const std::vector<std::shared_ptr<ev::EmbeddingTable>>& tables,
                 ev::Span<const float> ratios, uint64_t seed, float* flags);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ADMISSION_H_
