// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu/row_pieces.h"

#include <cuda_runtime_api.h>
#include <pthread.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/tasks.h"

namespace ev {
namespace gpu {
namespace {

int RowsLog2(int64_t stride) {
  int log2 = 0;
  while ((stride * 4) << (log2 + 1) <= RowPieces::kPieceBytes) ++log2;
  return log2;
}

}  // namespace

// A piece of host memory that a thread allocates.
struct NextPiece {
  // Returns null without a thread: the piece is allocated when it is needed.
  // Not std::thread, whose functions are newer than manylinux2014.
  static std::shared_ptr<NextPiece> Start(size_t bytes) {
    std::shared_ptr<NextPiece> next(new NextPiece);
    next->bytes = bytes;
    if (cudaGetDevice(&next->device) != cudaSuccess ||
        pthread_create(&next->thread, nullptr, &Run, next.get()) != 0) {
      return nullptr;
    }
    next->has_thread = true;
    return next;
  }
  static void* Run(void* self) {
    NextPiece* const next = static_cast<NextPiece*>(self);
    cudaSetDevice(next->device);
    // If it fails, the piece is allocated when it is needed, or that call
    // returns the error.
    CatchBadAlloc([next] {
      return next->memory.AllocateOnHost(next->bytes, "one more block of rows");
    });
    return nullptr;
  }
  ~NextPiece() { Wait(); }

  void Wait() {
    if (has_thread) pthread_join(thread, nullptr);
    has_thread = false;
  }
  // Leaves *to empty if the allocation has failed.
  void Take(DeviceBuffer* to) {
    Wait();
    *to = std::move(memory);
  }

  size_t bytes = 0;
  int device = 0;
  bool has_thread = false;
  pthread_t thread = {};
  DeviceBuffer memory;
};

RowPieces::RowPieces(int64_t stride, int rows_log2, bool are_zeros,
                     size_t first_on_host, const char* what)
    : stride_(stride),
      rows_log2_(rows_log2 >= 0 ? rows_log2 : RowsLog2(stride)),
      are_zeros_(are_zeros),
      first_on_host_(first_on_host),
      what_(what) {}

bool RowPieces::Has(RowHandle handle) const {
  std::lock_guard<std::mutex> lock(mu_);
  return HasPiece(handle >> rows_log2_);
}

Status RowPieces::Reserve(RowHandle handle) {
  const size_t piece = handle >> rows_log2_;
  std::lock_guard<std::mutex> lock(mu_);
  return HasPiece(piece) ? Status::OK() : Grow(piece);
}

Status RowPieces::Allocate(size_t piece, const std::string& what,
                           DeviceBuffer* memory) const {
  return IsOnHost(piece) ? memory->AllocateOnHost(piece_bytes(), what)
                         : memory->Allocate(piece_bytes(), what);
}

void RowPieces::PrepareNext() { next_ = NextPiece::Start(piece_bytes()); }

Status RowPieces::AllocateNext(size_t piece, DeviceBuffer* memory) {
  if (next_ != nullptr && IsOnHost(piece)) {
    next_->Take(memory);
    next_.reset();
  }
  if (memory->data() != nullptr) return Status::OK();
  return Allocate(piece,
                  std::string("one more block of ") + what_ +
                      ", in addition to " + std::to_string(bytes_) + " bytes,",
                  memory);
}

Status RowPieces::Grow(size_t piece) {
  DeviceBuffer memory;
  EV_RETURN_IF_ERROR(AllocateNext(piece, &memory));
  if (piece >= table_size_) {
    const size_t size =
        std::max<size_t>(64, std::max(2 * table_size_, piece + 1));
    DeviceBuffer table;
    EV_RETURN_IF_ERROR(
        table.Allocate(size * sizeof(float*), "the table of pieces"));
    EV_CUDA_RETURN_IF_ERROR(cudaMemset(table.data(), 0, table.size_bytes()));
    if (table_size_ != 0) {
      EV_CUDA_RETURN_IF_ERROR(cudaMemcpy(table.data(), tables_.back().data(),
                                         table_size_ * sizeof(float*),
                                         cudaMemcpyDeviceToDevice));
    }
    const int64_t table_bytes = table.size_bytes();
    tables_.push_back(std::move(table));
    bytes_ += table_bytes;
    table_size_ = size;
  }
  if (are_zeros_) {
    EV_CUDA_RETURN_IF_ERROR(cudaMemset(memory.data(), 0, memory.size_bytes()));
  }
  EV_RETURN_IF_ERROR(SetAddress(piece, memory.as<float>()));
  if (pieces_.size() <= piece) pieces_.resize(piece + 1);
  bytes_ += memory.size_bytes();
  pieces_[piece] = std::move(memory);
  if (next_ == nullptr && IsOnHost(piece + 1)) PrepareNext();
  return Status::OK();
}

Status RowPieces::SetAddress(size_t piece, float* address) {
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpy(tables_.back().as<float*>() + piece,
                                     &address, sizeof(address),
                                     cudaMemcpyHostToDevice));
  // Makes the null stream's work visible to all streams.
  EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(nullptr));
  return Status::OK();
}

DeviceBuffer RowPieces::Take(size_t piece) {
  std::lock_guard<std::mutex> lock(mu_);
  bytes_ -= pieces_[piece].size_bytes();
  return std::move(pieces_[piece]);
}

Status RowPieces::Swap(size_t piece, DeviceBuffer* memory) {
  std::lock_guard<std::mutex> lock(mu_);
  EV_RETURN_IF_ERROR(SetAddress(piece, memory->as<float>()));
  bytes_ -= pieces_[piece].size_bytes();
  std::swap(pieces_[piece], *memory);
  bytes_ += pieces_[piece].size_bytes();
  return Status::OK();
}

float* RowPieces::address(size_t piece) const {
  std::lock_guard<std::mutex> lock(mu_);
  return pieces_[piece].as<float>();
}

int64_t RowPieces::allocated_bytes(size_t piece) const {
  std::lock_guard<std::mutex> lock(mu_);
  return pieces_[piece].size_bytes();
}

PiecesView RowPieces::view() const {
  std::lock_guard<std::mutex> lock(mu_);
  PiecesView view;
  view.pieces = tables_.empty() ? nullptr : tables_.back().as<float*>();
  view.rows_log2 = rows_log2_;
  view.stride = stride_;
  return view;
}

std::vector<float*> RowPieces::pieces() const {
  std::lock_guard<std::mutex> lock(mu_);
  std::vector<float*> pieces;
  for (const DeviceBuffer& piece : pieces_) {
    pieces.push_back(piece.as<float>());
  }
  return pieces;
}

int64_t RowPieces::bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return bytes_;
}

void RowPieces::Free(size_t piece) {
  std::lock_guard<std::mutex> lock(mu_);
  bytes_ -= pieces_[piece].size_bytes();
  pieces_[piece].Free();
}

void RowPieces::Clear() {
  std::lock_guard<std::mutex> lock(mu_);
  next_.reset();
  pieces_.clear();
  tables_.clear();
  table_size_ = 0;
  bytes_ = 0;
}

}  // namespace gpu
}  // namespace ev
