// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/hash_map/segment.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/engine/base/pages.h"

namespace hps {
namespace {

// The highest load: a search for an absent key reads a few groups.
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
  keys_ = static_cast<int64_t*>(ev::AllocateLines(slots() * sizeof(int64_t)));
  rows_ = static_cast<float*>(ev::AllocateLines(slots() * row_bytes_));
  if (with_use) {
    use_ = static_cast<std::atomic<uint32_t>*>(
        ev::AllocateLines(UseBytes(slots())));
  }
  if (keys_ == nullptr || rows_ == nullptr || (with_use && use_ == nullptr)) {
    Free();
    throw std::bad_alloc();
  }
  std::fill(keys_, keys_ + slots(), free_key_);
}

Segment::~Segment() { Free(); }

void Segment::Free() {
  if (keys_ != nullptr) ev::FreeLines(keys_, slots() * sizeof(int64_t));
  if (rows_ != nullptr) ev::FreeLines(rows_, slots() * row_bytes_);
  if (use_ != nullptr) ev::FreeLines(use_, UseBytes(slots()));
}

int64_t Segment::bytes() const {
  return static_cast<int64_t>(sizeof(*this) +
                              slots() * (sizeof(int64_t) + row_bytes_) +
                              (use_ == nullptr ? 0 : UseBytes(slots())));
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
