// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/presence.h"

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/table_impl.h"

namespace ev {
namespace {

constexpr size_t kKeysAtOnce = 1024;

// Creates a row with given values, which are written before the row can be
// found.
class GivenRow : public RowSource {
 public:
  GivenRow(EmbeddingTable::Impl* table, const float* values)
      : table_(table), values_(values) {}

  Status NewRow(int64_t key, RowHandle* handle) override {
    EV_RETURN_IF_ERROR(table_->NewRow(key, handle));
    // One call per new key: its row must not be found before.
    return table_->home->Write(Span<const RowHandle>(handle, 1), 0, values_);
  }

 private:
  EmbeddingTable::Impl* const table_;
  const float* const values_;
};

}  // namespace

Status FindTiers(const EmbeddingTable& table, Span<const int64_t> keys,
                 int32_t* tiers) {
  const EmbeddingTable::Impl& impl = *table.impl();
  return NoThrow(impl, [&] {
    SharedGate shared(&impl.gate);
    EV_RETURN_IF_ERROR(impl.CheckInitialized());
    EV_RETURN_IF_ERROR(impl.CheckKeys(keys));
    const RowTiers* const homes_tiers = impl.home->tiers();
    RowHandle handles[kKeysAtOnce];
    for (size_t i = 0; i < keys.size(); i += kKeysAtOnce) {
      const size_t n = std::min(kKeysAtOnce, keys.size() - i);
      impl.index.Find(keys.subspan(i, n), handles);
      for (size_t j = 0; j < n; ++j) {
        tiers[i + j] = handles[j] >= kFirstReservedHandle ? kAbsentTier
                       : homes_tiers != nullptr
                           ? homes_tiers->TierOf(handles[j])
                           : kMemoryTier;
      }
    }
    return Status::OK();
  });
}

Status Prefetch(EmbeddingTable* table, Span<const int64_t> keys) {
  const EmbeddingTable::Impl& impl = *table->impl();
  return NoThrow(impl, [&] {
    SharedGate shared(&impl.gate);
    EV_RETURN_IF_ERROR(impl.CheckInitialized());
    EV_RETURN_IF_ERROR(impl.CheckKeys(keys));
    RowTiers* const homes_tiers = impl.home->tiers();
    if (homes_tiers == nullptr) return Status::OK();
    std::vector<RowHandle> handles(keys.size());
    impl.index.Find(keys, handles.data());
    return impl.WithName(homes_tiers->Prefetch(handles));
  });
}

Status InsertAbsent(EmbeddingTable* table, Span<const int64_t> keys,
                    const float* values, int64_t* inserted) {
  EmbeddingTable::Impl* const impl = table->impl();
  *inserted = 0;
  return NoThrow(*impl, [&] {
    UpdatingGate updating(&impl->gate);
    EV_RETURN_IF_ERROR(impl->CheckInitialized());
    EV_RETURN_IF_ERROR(impl->CheckKeys(keys));
    std::vector<RowHandle> handles(keys.size());
    impl->index.Find(keys, handles.data());
    for (size_t i = 0; i < keys.size(); ++i) {
      if (handles[i] < kFirstReservedHandle) continue;
      GivenRow source(impl, values + i * impl->dim());
      int64_t is_new = 0;
      const Status status = impl->index.FindOrInsert(
          keys.subspan(i, 1), &source, &handles[i], &is_new);
      impl->inserted_rows.fetch_add(is_new, std::memory_order_relaxed);
      *inserted += is_new;
      impl->ForgetCounted(keys.subspan(i, 1));
      if (!status.ok()) {
        return Status(status.code(),
                      status.message() + ", " + impl->QuotedName());
      }
    }
    return Status::OK();
  });
}

}  // namespace ev
