// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/admission.h"

#include <string>

#include "kernels/engine/base/hash.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/lookup/presence.h"

namespace sok {

bool Draws(int64_t key, uint64_t seed, double ratio) {
  // Mix both, so that neighbouring keys or seeds do not draw alike.
  const uint64_t bits = ev::MixKey(static_cast<int64_t>(
      ev::MixKey(key) + ev::MixKey(~static_cast<int64_t>(seed))));
  constexpr double kOne = 9007199254740992.0;  // 2^53
  return static_cast<double>(bits >> 11) < ratio * kOne;
}

ev::Status Admit(const MessageLayout& layout, const int64_t* message,
                 const std::vector<std::shared_ptr<ev::EmbeddingTable>>& tables,
                 ev::Span<const float> ratios, uint64_t seed, float* flags) {
  const int num_tables = layout.num_tables();
  if (tables.size() != static_cast<size_t>(num_tables) ||
      ratios.size() != tables.size()) {
    return ev::InvalidArgument("the filter of " + std::to_string(num_tables) +
                               " tables got " + std::to_string(tables.size()) +
                               " tables and " + std::to_string(ratios.size()) +
                               " ratios");
  }
  return ev::CatchBadAlloc([&] {
    std::vector<int32_t> tiers;
    for (int r = 0; r < layout.num_ranks(); ++r) {
      for (int t = 0; t < num_tables; ++t) {
        const ev::Span<const int64_t> keys(message + layout.key_start(r, t),
                                           layout.num_keys(r, t));
        tiers.resize(keys.size());
        const ev::Status status = ev::FindTiers(*tables[t], keys, tiers.data());
        if (!status.ok()) return status;
        for (size_t i = 0; i < keys.size(); ++i) {
          // Each table has its own draws.
          const bool shown = tiers[i] != ev::kAbsentTier ||
                             Draws(keys[i], seed + t, ratios[t]);
          *flags++ = shown ? 1.f : 0.f;
        }
      }
    }
    return ev::Status::OK();
  });
}

}  // namespace sok
