// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/lookup/presence.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/table_impl.h"

namespace ev {
namespace {

constexpr size_t kKeysAtOnce = 1024;

}  // namespace

Status FindTiers(const EmbeddingTable& table, Span<const int64_t> keys,
                 int32_t* tiers) {
  const EmbeddingTable::Impl& impl = *table.impl();
  return NoThrow(impl, [&] {
    SharedTableLock shared(&impl.table_lock);
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

Status Prefetch(EmbeddingTable* table, Span<const int64_t> keys,
                Parallel* parallel) {
  EmbeddingTable::Impl& impl = *table->impl();
  return NoThrow(impl, [&] {
    EV_RETURN_IF_ERROR(impl.BringRowsBelow(keys, parallel));
    SharedTableLock shared(&impl.table_lock);
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
    // Alone, so that no call finds a row before its values are written.
    ExclusiveTableLock alone(&impl->table_lock);
    EV_RETURN_IF_ERROR(impl->CheckInitialized());
    EV_RETURN_IF_ERROR(impl->CheckKeys(keys));
    const int64_t dim = impl->dim();
    std::vector<RowHandle> handles(keys.size());
    impl->index.Find(keys, handles.data());
    std::vector<int64_t> absent;
    std::vector<float> given;
    std::unordered_set<int64_t> seen;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (handles[i] < kFirstReservedHandle || !seen.insert(keys[i]).second) {
        continue;
      }
      absent.push_back(keys[i]);
      given.insert(given.end(), values + i * dim, values + (i + 1) * dim);
    }
    handles.resize(absent.size());
    TableJournal journal;
    const Status status = NoThrow(*impl, [&] {
      TableJournal::Writer writer(&journal);
      EV_RETURN_IF_ERROR(
          impl->FindOrInsert(absent, handles.data(), writer.part()));
      return impl->WithName(impl->home->Write(handles, 0, given.data()));
    });
    if (!status.ok()) {
      impl->TakeBackAlone(journal, /*only_untouched=*/false);
      return status;
    }
    *inserted = absent.size();
    impl->ForgetCounted(absent);
    return Status::OK();
  });
}

}  // namespace ev
