// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The filter of rare keys: a key that has no row yet is shown (and so gets one
// with its first gradient) only with some probability. Its owner draws, once
// per key and call whichever ranks ask, so that all see the same.

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

// Whether a key without a row is admitted by a draw: true for a fraction
// 'ratio' of all pairs of key and seed. ratio in [0, 1].
bool Draws(int64_t key, uint64_t seed, double ratio);

// message: what 'layout' was parsed from. ratios: by table. flags: one number
// for each key by rank, table, key: 1 when it has a row or is admitted, else 0.
// Errors as of ev::FindTiers, and InvalidArgument: as many
// tables or ratios as 'layout' has not.
ev::Status Admit(const MessageLayout& layout, const int64_t* message,
                 const std::vector<std::shared_ptr<ev::EmbeddingTable>>& tables,
                 ev::Span<const float> ratios, uint64_t seed, float* flags);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_ADMISSION_H_
