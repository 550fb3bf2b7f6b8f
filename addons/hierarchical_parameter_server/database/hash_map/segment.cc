// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/hash_map/segment.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/engine/base/pages.h"

namespace hps {
namespace {

// Maximum load: a search for an absent key still reads only a few groups.
constexpr int64_t kLoadNumerator = 23, kLoadDenominator = 25;  // 92 %

size_t UseBytes(int64_t slots) {
  return static_cast<size_t>(slots) * sizeof(std::atomic<uint32_t>);
}

}  // namespace

int64_t Segment::GroupsFor(int64_t rows) {
  const int64_t slots =
      (rows * kLoadDenominator + kLoadNumerator - 1) / kLoadNumerator + 1;
  return std::max<int64_t>(1, (slots + kGroup - 1) / kGroup);
}

int64_t Segment::BytesFor(int width, int64_t rows, bool with_use) {
  const int64_t slots = GroupsFor(rows) * kGroup;
  return slots *
         (static_cast<int64_t>(sizeof(int64_t)) +
          width * static_cast<int64_t>(sizeof(float)) + (with_use ? 4 : 0));
}

Segment::Segment(int width, int64_t rows, int depth, int64_t free_key,
                 bool with_use)
    : width_(width),
      row_bytes_(width * sizeof(float)),
      depth_(depth),
      free_key_(free_key),
      groups_(GroupsFor(rows)),
      limit_(std::max<int64_t>(
          1, groups_ * kGroup * kLoadNumerator / kLoadDenominator)) {
  const size_t key_bytes = slots() * sizeof(int64_t);
  const size_t row_bytes = ev::RoundUp(slots() * row_bytes_, ev::kCacheLine);
  const size_t use_bytes = with_use ? UseBytes(slots()) : 0;
  // The keys come first, because the tail that does not fill a huge page gets
  // none. In long segments the rows start at a page, so that few of them span
  // two.
  size_t rows_at = ev::RoundUp(key_bytes, ev::kCacheLine);
  if (rows_at + row_bytes + use_bytes >= ev::kHugePage) {
    rows_at = ev::RoundUp(key_bytes, ev::kSmallPage);
  }
  block_bytes_ = rows_at + row_bytes + use_bytes;
  block_ = ev::AllocateLines(block_bytes_);
  if (block_ == nullptr) throw std::bad_alloc();
  char* const begin = static_cast<char*>(block_);
  keys_ = reinterpret_cast<int64_t*>(begin);
  rows_ = reinterpret_cast<float*>(begin + rows_at);
  if (with_use) {
    use_ =
        reinterpret_cast<std::atomic<uint32_t>*>(begin + rows_at + row_bytes);
  }
  std::fill(keys_, keys_ + slots(), free_key_);
}

Segment::~Segment() { ev::FreeLines(block_, block_bytes_); }

int64_t Segment::bytes() const {
  return static_cast<int64_t>(sizeof(*this) + block_bytes_);
}

int64_t Segment::Add(int64_t key, int64_t group) {
  for (;;) {
    for (int i = 0; i < kGroup; ++i) {
      const int64_t slot = group * kGroup + i;
      if (keys_[slot] != free_key_) continue;
      keys_[slot] = key;
      if (use_ != nullptr) use_[slot].store(0, std::memory_order_relaxed);
      ++count_;
      return slot;
    }
    if (++group == groups_) group = 0;
  }
}

void Segment::MoveSlot(int64_t from, int64_t to) {
  keys_[to] = keys_[from];
  std::memcpy(row(to), row(from), row_bytes_);
  if (use_ != nullptr) {
    use_[to].store(use_[from].load(std::memory_order_relaxed),
                   std::memory_order_relaxed);
  }
}

}  // namespace hps
