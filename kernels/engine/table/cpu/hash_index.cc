// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/table/cpu/hash_index.h"

#include <mutex>
#include <unordered_map>

namespace ev {

class HashIndex::Impl {
 public:
  mutable std::mutex mu;
  std::unordered_map<int64_t, RowHandle> map;
};

HashIndex::HashIndex() : impl_(new Impl) {}
HashIndex::~HashIndex() {}

void HashIndex::FindInGroups(Span<const int64_t> keys, RowHandle* handles,
                             GroupFn fn, void* context) const {
  std::lock_guard<std::mutex> lock(impl_->mu);
  for (size_t i = 0; i < keys.size(); ++i) {
    auto it = impl_->map.find(keys[i]);
    handles[i] = it == impl_->map.end() ? kNoRow : it->second;
    if (fn != nullptr) fn(context, i, i + 1);
  }
}

Status HashIndex::FindOrInsert(Span<const int64_t> keys, RowSource* source,
                               RowHandle* handles, int64_t* num_inserted) {
  std::lock_guard<std::mutex> lock(impl_->mu);
  if (num_inserted != nullptr) *num_inserted = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    auto it = impl_->map.find(keys[i]);
    if (it != impl_->map.end()) {
      handles[i] = it->second;
      continue;
    }
    Status status = source->NewRow(keys[i], &handles[i]);
    if (!status.ok()) {
      for (; i < keys.size(); ++i) handles[i] = kNoRow;
      return status;
    }
    impl_->map[keys[i]] = handles[i];
    if (num_inserted != nullptr) ++*num_inserted;
  }
  return Status::OK();
}

int64_t HashIndex::Erase(
    Span<const int64_t> keys,
    const std::function<void(int64_t, RowHandle)>& erased) {
  std::lock_guard<std::mutex> lock(impl_->mu);
  int64_t n = 0;
  for (int64_t key : keys) {
    auto it = impl_->map.find(key);
    if (it == impl_->map.end()) continue;
    if (erased) erased(key, it->second);
    impl_->map.erase(it);
    ++n;
  }
  return n;
}

void HashIndex::ForEach(
    const std::function<void(int64_t, RowHandle)>& visit) const {
  std::lock_guard<std::mutex> lock(impl_->mu);
  for (auto& kv : impl_->map) visit(kv.first, kv.second);
}

void HashIndex::Clear() { impl_->map.clear(); }
int64_t HashIndex::size() const {
  std::lock_guard<std::mutex> lock(impl_->mu);
  return impl_->map.size();
}
int64_t HashIndex::bytes() const { return size() * 24; }

}  // namespace ev
