// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/parts/handle_marks.h"

#include <cstdlib>
#include <new>

namespace ev {
namespace {

template <typename T>
T* ZeroedArray(size_t n) {
  return static_cast<T*>(std::calloc(n, sizeof(T)));
}

}  // namespace

HandleMarks::HandleMarks()
    : pieces_(ZeroedArray<std::atomic<std::atomic<uint64_t>*>>(kPieces)) {
  if (pieces_ == nullptr) throw std::bad_alloc();
}

HandleMarks::~HandleMarks() {
  for (size_t i = 0; i < kPieces; ++i) std::free(pieces_[i].load());
  std::free(pieces_);
}

std::atomic<uint64_t>* HandleMarks::MakePiece(size_t index) {
  std::atomic<uint64_t>* const made =
      ZeroedArray<std::atomic<uint64_t>>(kPieceWords);
  if (made == nullptr) return nullptr;
  std::atomic<uint64_t>* existing = nullptr;
  if (pieces_[index].compare_exchange_strong(existing, made)) return made;
  std::free(made);
  return existing;
}

}  // namespace ev
