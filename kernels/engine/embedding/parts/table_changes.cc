// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/parts/table_changes.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace ev {
namespace {

// The log of a small table may be longer than the table.
constexpr int64_t kShortLog = 1 << 18;

template <typename T>
T* ZeroedArray(size_t n) {
  return static_cast<T*>(std::calloc(n, sizeof(T)));
}

}  // namespace

HandleEpochs::HandleEpochs()
    : pieces_(ZeroedArray<std::atomic<std::atomic<uint32_t>*>>(kPieces)) {
  if (pieces_ == nullptr) throw std::bad_alloc();
}

HandleEpochs::~HandleEpochs() {
  Clear();
  std::free(pieces_);
}

std::atomic<uint32_t>* HandleEpochs::MakePiece(size_t index) {
  std::atomic<uint32_t>* made =
      ZeroedArray<std::atomic<uint32_t>>(kPieceMask + 1);
  if (made == nullptr) return nullptr;
  std::atomic<uint32_t>* existing = nullptr;
  if (pieces_[index].compare_exchange_strong(existing, made)) {
    num_pieces_.fetch_add(1, std::memory_order_relaxed);
    return made;
  }
  std::free(made);
  return existing;
}

void HandleEpochs::Clear() {
  for (size_t i = 0; i < kPieces && num_pieces_.load() > 0; ++i) {
    std::atomic<uint32_t>* piece = pieces_[i].exchange(nullptr);
    if (piece == nullptr) continue;
    std::free(piece);
    num_pieces_.fetch_sub(1);
  }
}

int64_t HandleEpochs::bytes() const {
  return num_pieces_.load() *
         static_cast<int64_t>((kPieceMask + 1) * sizeof(uint32_t));
}

void TableChanges::LoseAll() {
  first_cut_ = epoch_;
  std::lock_guard<std::mutex> lock(mu_);
  std::vector<Erasure>().swap(erased_);
}

void TableChanges::Erased(Span<const int64_t> keys, int64_t rows_left) {
  if (static_cast<int64_t>(erased_.size() + keys.size()) >
      std::max(kShortLog, rows_left)) {
    LoseAll();
    return;
  }
  try {
    for (const int64_t key : keys) erased_.push_back(Erasure{epoch_, key});
  } catch (const std::bad_alloc&) {
    LoseAll();
  }
}

void TableChanges::Emptied() {
  LoseAll();
  rows_.Clear();
  counters_.Clear();
}

int64_t TableChanges::Cut() {
  if (lost_.exchange(false)) LoseAll();
  return epoch_++;
}

bool TableChanges::NeedsEverything(int64_t since) const {
  return since < first_cut_ || lost_.load();
}

std::vector<int64_t> TableChanges::ErasedSince(int64_t since) const {
  std::vector<int64_t> keys;
  for (const Erasure& erasure : erased_) {
    if (erasure.epoch > since) keys.push_back(erasure.key);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

void TableChanges::Forget(int64_t since) {
  if (since <= first_cut_) return;
  std::lock_guard<std::mutex> lock(mu_);
  first_cut_ = std::min<int64_t>(since, int64_t{epoch_} - 1);
  const auto kept = std::find_if(
      erased_.begin(), erased_.end(),
      [&](const Erasure& erasure) { return erasure.epoch > first_cut_; });
  erased_.erase(erased_.begin(), kept);
}

int64_t TableChanges::bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return static_cast<int64_t>(sizeof(*this)) + rows_.bytes() +
         counters_.bytes() +
         static_cast<int64_t>(erased_.capacity() * sizeof(Erasure));
}

}  // namespace ev
