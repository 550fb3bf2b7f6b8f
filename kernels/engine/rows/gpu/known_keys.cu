// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/work/work_context.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/rows/gpu/known_keys.cuh"
#include "kernels/engine/rows/gpu/known_keys.h"
#include "kernels/engine/rows/gpu/row_at.cuh"

namespace ev {
namespace gpu {
namespace {

constexpr int64_t kMinSlots = 1024;
// Limited by the 32-bit counters.
constexpr int64_t kMaxSlots = int64_t{1} << 31;
constexpr size_t kKeysPerErase = 1 << 20;
constexpr size_t kMinKeysPerErase = 1 << 10;
// Keys in the parameters of a kernel, which have 4 KiB.
constexpr size_t kFewKeys = 256;
constexpr int kOwnSlots = 2;
constexpr int kNumCounters = 2;

int64_t MostUsed(int64_t slots) { return slots / 4 * 3; }

size_t BytesOf(int64_t slots) {
  return slots * sizeof(int64_t) + (slots + kOwnSlots) * sizeof(RowHandle) +
         kNumCounters * sizeof(uint32_t);
}

KnownKeysView ViewOf(void* memory, int64_t slots) {
  KnownKeysView view;
  view.hash = KeyedHash::OfProcess();
  view.keys = static_cast<int64_t*>(memory);
  view.handles = reinterpret_cast<RowHandle*>(view.keys + slots);
  view.counters = view.handles + slots + kOwnSlots;
  view.num_buckets = slots / kKnownBucket;
  return view;
}

__global__ void __launch_bounds__(kThreads)
    EmptyKernel(KnownKeysView known, int64_t slots) {
  for (int64_t s = FirstIndex(); s < slots + kOwnSlots; s += IndexStep()) {
    if (s < slots) known.keys[s] = kEmptyKey;
    known.handles[s] = kNoRow;
    if (s < kNumCounters) known.counters[s] = 0;
  }
}

__global__ void __launch_bounds__(kThreads)
    PutKernel(KnownKeysView known, const int64_t* keys,
              const RowHandle* handles, int64_t num_keys) {
  for (int64_t i = FirstIndex(); i < num_keys; i += IndexStep()) {
    PutKnown(known, keys[i], handles[i]);
  }
}

__global__ void __launch_bounds__(kThreads)
    CopyKernel(KnownKeysView from, int64_t slots, KnownKeysView to) {
  for (int64_t s = FirstIndex(); s < slots + kOwnSlots; s += IndexStep()) {
    const RowHandle handle = __ldcg(from.handles + s);
    if (handle == kNoRow) continue;
    PutKnown(to, s < slots ? __ldcg(from.keys + s) : kEmptyKey + (s - slots),
             handle);
  }
}

__device__ void EraseKnown(const KnownKeysView& known, int64_t key) {
  const uint64_t slot = FindSlot(known, key);
  if (slot == kNoSlot) return;
  known.handles[slot] = kNoRow;
  if (HasOwnSlot(key)) return;
  // Counts a key once if several threads erase it.
  if (atomicCAS(reinterpret_cast<unsigned long long*>(known.keys + slot),
                static_cast<unsigned long long>(key),
                static_cast<unsigned long long>(kErasedKey)) ==
      static_cast<unsigned long long>(key)) {
    atomicSub(known.counters + kKeysKnown, 1u);
  }
}

__global__ void __launch_bounds__(kThreads)
    EraseKernel(KnownKeysView known, const int64_t* keys, int64_t num_keys) {
  for (int64_t i = FirstIndex(); i < num_keys; i += IndexStep()) {
    EraseKnown(known, keys[i]);
  }
}

struct FewKeys {
  int64_t keys[kFewKeys];
};

__global__ void __launch_bounds__(kThreads)
    EraseFewKernel(KnownKeysView known, FewKeys few, int64_t num_keys) {
  for (int64_t i = FirstIndex(); i < num_keys; i += IndexStep()) {
    EraseKnown(known, few.keys[i]);
  }
}

}  // namespace

KnownKeys::~KnownKeys() { EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_)); }

Status KnownKeys::Reserve() {
  std::lock_guard<std::mutex> lock(mu_);
  const int64_t slots = static_cast<int64_t>(view_.num_buckets) * kKnownBucket;
  if (used_ + reserved_ + 1 > MostUsed(slots)) EV_RETURN_IF_ERROR(Grow());
  ++reserved_;
  return Status::OK();
}

void KnownKeys::Unreserve(int64_t num_keys) {
  std::lock_guard<std::mutex> lock(mu_);
  reserved_ -= num_keys;
}

Status KnownKeys::Put(const int64_t* keys, const RowHandle* handles,
                      int64_t num_keys, StreamView stream) {
  if (num_keys == 0) return Status::OK();
  std::lock_guard<std::mutex> lock(mu_);
  if (num_keys > reserved_) {
    return Internal("memory was reserved for " + std::to_string(reserved_) +
                    " keys, and " + std::to_string(num_keys) + " are put");
  }
  PutKernel<<<BlocksFor(num_keys), kThreads, 0, stream.get()>>>(
      view_, keys, handles, num_keys);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("PutKernel");
  used_ += num_keys;
  known_ += num_keys;
  reserved_ -= num_keys;
  return Status::OK();
}

Status KnownKeys::Grow() {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  std::unique_ptr<WorkContext> context;
  EV_RETURN_IF_ERROR(WorkContext::Acquire(0, 0, &context));
  if (view_.num_buckets != 0) {
    // The counters include keys that other streams insert.
    EV_CUDA_RETURN_IF_ERROR(cudaDeviceSynchronize());
    EV_RETURN_IF_ERROR(ReadCounters(context->stream()));
  }
  const int64_t slots = static_cast<int64_t>(view_.num_buckets) * kKnownBucket;
  if (used_ + reserved_ + 1 > MostUsed(slots)) {
    EV_RETURN_IF_ERROR(Rebuild(reserved_ + 1, context->stream()));
  }
  WorkContext::Release(std::move(context));
  return Status::OK();
}

Status KnownKeys::ReadCounters(StreamView stream) {
  uint32_t counters[kNumCounters];
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(counters, view_.counters, sizeof(counters),
                      cudaMemcpyDeviceToHost, stream.get()));
  EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream.get()));
  known_ = counters[kKeysKnown];
  used_ = counters[kSlotsUsed];
  return Status::OK();
}

Status KnownKeys::Rebuild(int64_t num_keys, StreamView stream) {
  const int64_t before = static_cast<int64_t>(view_.num_buckets) * kKnownBucket;
  int64_t slots = kMinSlots;
  while (slots < kMaxSlots && 2 * (known_ + num_keys) > MostUsed(slots)) {
    slots *= 2;
  }
  if (known_ + num_keys > MostUsed(slots)) {
    return ResourceExhausted("a table has at most " +
                             std::to_string(MostUsed(kMaxSlots)) +
                             " keys in GPU memory");
  }
  DeviceBuffer memory;
  EV_RETURN_IF_ERROR(memory.Allocate(BytesOf(slots), "the key table"));
  const KnownKeysView view = ViewOf(memory.data(), slots);
  EmptyKernel<<<BlocksFor(slots + kOwnSlots), kThreads, 0, stream.get()>>>(
      view, slots);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("EmptyKernel");
  if (before != 0) {
    CopyKernel<<<BlocksFor(before + kOwnSlots), kThreads, 0, stream.get()>>>(
        view_, before, view);
    EV_CUDA_RETURN_IF_LAUNCH_FAILED("CopyKernel");
  }
  // Other streams may use the new table as soon as the lock is released.
  EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream.get()));
  memory_ = std::move(memory);
  view_ = view;
  used_ = known_;
  return Status::OK();
}

Status KnownKeys::Erase(Span<const int64_t> keys) {
  std::lock_guard<std::mutex> lock(mu_);
  if (view_.num_buckets == 0) return Status::OK();
  // Erases fewer keys at a time if there is not enough memory.
  size_t at_once = kKeysPerErase;
  for (size_t begin = 0; begin < keys.size();) {
    const size_t n = std::min(keys.size() - begin, at_once);
    const Status status =
        CatchBadAlloc([&] { return EraseSome(keys.subspan(begin, n)); });
    if (status.code() == StatusCode::kResourceExhausted) {
      if (at_once > kMinKeysPerErase) {
        at_once /= 4;
        continue;
      }
      EV_RETURN_IF_ERROR(EraseFew(keys.subspan(begin, n)));
    } else {
      EV_RETURN_IF_ERROR(status);
    }
    begin += n;
  }
  return Status::OK();
}

Status KnownKeys::EraseSome(Span<const int64_t> keys) {
  const size_t bytes = keys.size() * sizeof(int64_t);
  std::unique_ptr<WorkContext> context;
  EV_RETURN_IF_ERROR(WorkContext::Acquire(bytes, bytes, &context));
  int64_t* const on_gpu = reinterpret_cast<int64_t*>(context->device());
  std::memcpy(context->host(), keys.data(), bytes);
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(on_gpu, context->host(), bytes,
                                          cudaMemcpyHostToDevice,
                                          context->stream()));
  EraseKernel<<<BlocksFor(keys.size()), kThreads, 0, context->stream()>>>(
      view_, on_gpu, static_cast<int64_t>(keys.size()));
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("EraseKernel");
  EV_RETURN_IF_ERROR(context->Wait());
  EV_RETURN_IF_ERROR(ReadCounters(context->stream()));
  Shrink(context->stream());
  WorkContext::Release(std::move(context));
  return Status::OK();
}

Status KnownKeys::EraseFew(Span<const int64_t> keys) {
  FewKeys few;
  for (size_t begin = 0; begin < keys.size(); begin += kFewKeys) {
    const size_t n = std::min(kFewKeys, keys.size() - begin);
    std::copy_n(keys.data() + begin, n, few.keys);
    EraseFewKernel<<<1, kThreads>>>(view_, few, static_cast<int64_t>(n));
    EV_CUDA_RETURN_IF_LAUNCH_FAILED("EraseFewKernel");
  }
  return ReadCounters(StreamView(cudaStreamLegacy));
}

void KnownKeys::Shrink(StreamView stream) {
  const int64_t slots = static_cast<int64_t>(view_.num_buckets) * kKnownBucket;
  if (slots == kMinSlots || 8 * (known_ + reserved_) > MostUsed(slots)) return;
  // If there is no memory for the copy, the table stays as it is.
  const Status status = Rebuild(reserved_, stream);
  (void)status;
}

void KnownKeys::Clear() {
  std::lock_guard<std::mutex> lock(mu_);
  view_ = KnownKeysView();
  used_ = known_ = 0;
  reserved_ = 0;
  memory_.Free();
}

int64_t KnownKeys::bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return static_cast<int64_t>(memory_.size_bytes());
}

}  // namespace gpu
}  // namespace ev
