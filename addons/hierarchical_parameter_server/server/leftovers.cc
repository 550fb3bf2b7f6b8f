// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/leftovers.h"

#include <algorithm>
#include <vector>

namespace hps {
namespace {

constexpr size_t kRemoveAtOnce = 65536;

std::vector<int64_t> NormalKeys(ev::Span<const int64_t> in_files,
                                KeyBits bits) {
  std::vector<int64_t> keys(in_files.begin(), in_files.end());
  if (bits == KeyBits::k32) {
    for (int64_t& key : keys) NormalKey(bits, key, &key);
  }
  return keys;
}

ev::Status RemoveAll(const std::vector<int64_t>& keys, Table* table) {
  for (size_t begin = 0; begin < keys.size(); begin += kRemoveAtOnce) {
    const size_t count = std::min(kRemoveAtOnce, keys.size() - begin);
    EV_RETURN_IF_ERROR(table->Remove(
        ev::Span<const int64_t>(keys.data() + begin, count), nullptr));
  }
  return ev::Status::OK();
}

}  // namespace

ev::Status RemoveLeftovers(const TableDirectory& files, int64_t stored,
                           KeyBits bits, bool keeps_unknown, Table* table) {
  const ev::Span<const int64_t> all = files.keys();
  std::vector<int64_t> keys = NormalKeys(all.subspan(0, stored), bits);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  const auto is_stored = [&](int64_t key) {
    return std::binary_search(keys.begin(), keys.end(), key);
  };
  std::vector<int64_t> others;
  if (keeps_unknown) {
    if (stored == files.rows()) return ev::Status::OK();
    int64_t rows = 0;
    EV_RETURN_IF_ERROR(table->Count(&rows));
    if (rows == static_cast<int64_t>(keys.size())) return ev::Status::OK();
    for (const int64_t key :
         NormalKeys(all.subspan(stored, all.size() - stored), bits)) {
      if (!is_stored(key)) others.push_back(key);
    }
  } else {
    EV_RETURN_IF_ERROR(
        table->ForEach([&](ev::Span<const int64_t> some, const float*) {
          for (const int64_t key : some) {
            if (!is_stored(key)) others.push_back(key);
          }
          return ev::Status::OK();
        }));
  }
  return RemoveAll(others, table);
}

}  // namespace hps
