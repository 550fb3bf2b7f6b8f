// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/work_lane.h"
#include "kernels/engine/rows/gpu/known_keys.cuh"
#include "kernels/engine/rows/gpu/known_keys.h"
#include "kernels/engine/rows/gpu/row_at.cuh"

namespace ev {
namespace gpu {
namespace {

constexpr int64_t kMinSlots = 1024;
// Counters have 32 bits.
constexpr int64_t kMaxSlots = int64_t{1} << 31;
constexpr int64_t kKeysPerErase = 1 << 20;
constexpr int64_t kCallsWithoutMemory = 256;
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
    NameKernel(KnownKeysView known, NamedKeys named, bool puts) {
  for (int64_t i = FirstIndex(); i < named.num_named; i += IndexStep()) {
    const uint32_t u = named.numbers[i];
    const RowHandle name = named.names[i];
    named.all_names[u] = name;
    if (puts && name < kFirstReservedHandle) {
      PutKnown(known, named.keys[u], name);
    }
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

__global__ void __launch_bounds__(kThreads)
    EraseKernel(KnownKeysView known, const int64_t* keys, int64_t num_keys) {
  for (int64_t i = FirstIndex(); i < num_keys; i += IndexStep()) {
    const uint64_t slot = FindSlot(known, keys[i]);
    if (slot == kNoSlot) continue;
    known.handles[slot] = kNoRow;
    if (HasOwnSlot(keys[i])) continue;
    // Once for a key that is named twice.
    if (atomicCAS(reinterpret_cast<unsigned long long*>(known.keys + slot),
                  static_cast<unsigned long long>(keys[i]),
                  static_cast<unsigned long long>(kErasedKey)) ==
        static_cast<unsigned long long>(keys[i])) {
      atomicSub(known.counters + kKeysKnown, 1u);
    }
  }
}

}  // namespace

KnownKeys::~KnownKeys() { EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_)); }

Status KnownKeys::Launch(
    const std::function<Status(const KnownKeysView&)>& launch) {
  // Held so that what is enqueued comes before the memory is given back, which
  // waits for the device.
  std::lock_guard<std::mutex> lock(mu_);
  return launch(view_);
}

bool KnownKeys::KnowsAll() const {
  std::lock_guard<std::mutex> lock(mu_);
  return knows_all_;
}

void KnownKeys::Miss() {
  std::lock_guard<std::mutex> lock(mu_);
  knows_all_ = false;
}

void KnownKeys::Expect(int64_t num_keys, StreamView stream) {
  std::lock_guard<std::mutex> lock(mu_);
  if (knows_all_) knows_all_ = MakeRoom(num_keys, stream);
}

Status KnownKeys::Put(const int64_t* keys, const RowHandle* handles,
                      int64_t num_keys, StreamView stream) {
  if (num_keys == 0) return Status::OK();
  std::lock_guard<std::mutex> lock(mu_);
  if (!MakeRoom(num_keys, stream)) {
    knows_all_ = false;
    return Status::OK();
  }
  PutKernel<<<BlocksFor(num_keys), kThreads, 0, stream.get()>>>(
      view_, keys, handles, num_keys);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("PutKernel");
  used_ += num_keys;
  known_ += num_keys;
  return Status::OK();
}

Status KnownKeys::Name(const NamedKeys& named, StreamView stream) {
  if (named.num_named == 0) return Status::OK();
  std::lock_guard<std::mutex> lock(mu_);
  const bool puts =
      !knows_all_ && named.num_rows > 0 && MakeRoom(named.num_rows, stream);
  NameKernel<<<BlocksFor(named.num_named), kThreads, 0, stream.get()>>>(
      view_, named, puts);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("NameKernel");
  if (puts) {
    used_ += named.num_rows;
    known_ += named.num_rows;
  }
  return Status::OK();
}

bool KnownKeys::MakeRoom(int64_t num_keys, StreamView stream) {
  const auto fits = [&] {
    return used_ + num_keys <=
           MostUsed(static_cast<int64_t>(view_.num_buckets) * kKnownBucket);
  };
  if (fits()) return true;
  if (refusals_ > 0) {
    --refusals_;
    return false;
  }
  Status status = Status::OK();
  if (view_.num_buckets != 0) {
    // What other streams put is counted too.
    status = [&]() -> Status {
      EV_CUDA_RETURN_IF_ERROR(cudaDeviceSynchronize());
      return ReadCounters(stream);
    }();
    if (status.ok() && fits()) return true;
  }
  if (status.ok()) status = Rebuild(num_keys, stream);
  if (!status.ok()) refusals_ = kCallsWithoutMemory;
  return status.ok();
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
  while (2 * (known_ + num_keys) > MostUsed(slots)) slots *= 2;
  if (slots > kMaxSlots) {
    return ResourceExhausted("a device knows no more keys of a table");
  }
  DeviceBuffer memory;
  EV_RETURN_IF_ERROR(memory.Allocate(BytesOf(slots), "keys that are known"));
  const KnownKeysView view = ViewOf(memory.data(), slots);
  EmptyKernel<<<BlocksFor(slots + kOwnSlots), kThreads, 0, stream.get()>>>(
      view, slots);
  EV_CUDA_RETURN_IF_LAUNCH_FAILED("EmptyKernel");
  if (before != 0) {
    CopyKernel<<<BlocksFor(before + kOwnSlots), kThreads, 0, stream.get()>>>(
        view_, before, view);
    EV_CUDA_RETURN_IF_LAUNCH_FAILED("CopyKernel");
  }
  // Other streams may use it as soon as this lets go.
  EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream.get()));
  memory_ = std::move(memory);
  view_ = view;
  used_ = known_;
  return Status::OK();
}

void KnownKeys::Erase(Span<const int64_t> keys) {
  std::lock_guard<std::mutex> lock(mu_);
  if (view_.num_buckets == 0 || keys.empty()) return;
  const Status status = EraseThem(keys);
  if (status.ok()) return;
  knows_all_ = false;
  view_ = KnownKeysView();
  used_ = known_ = 0;
  memory_.Free();
}

Status KnownKeys::EraseThem(Span<const int64_t> keys) {
  const size_t most =
      std::min<size_t>(keys.size(), kKeysPerErase) * sizeof(int64_t);
  std::unique_ptr<WorkLane> lane;
  EV_RETURN_IF_ERROR(WorkLane::Acquire(most, most, &lane));
  int64_t* const there = reinterpret_cast<int64_t*>(lane->device());
  for (size_t begin = 0; begin < keys.size(); begin += kKeysPerErase) {
    const size_t n = std::min<size_t>(keys.size() - begin, kKeysPerErase);
    std::memcpy(lane->host(), keys.data() + begin, n * sizeof(int64_t));
    EV_CUDA_RETURN_IF_ERROR(
        cudaMemcpyAsync(there, lane->host(), n * sizeof(int64_t),
                        cudaMemcpyHostToDevice, lane->stream()));
    EraseKernel<<<BlocksFor(n), kThreads, 0, lane->stream()>>>(
        view_, there, static_cast<int64_t>(n));
    EV_CUDA_RETURN_IF_LAUNCH_FAILED("EraseKernel");
    EV_RETURN_IF_ERROR(lane->Wait());
  }
  EV_RETURN_IF_ERROR(ReadCounters(lane->stream()));
  Shrink(lane->stream());
  WorkLane::Release(std::move(lane));
  return Status::OK();
}

void KnownKeys::Shrink(StreamView stream) {
  const int64_t slots = static_cast<int64_t>(view_.num_buckets) * kKnownBucket;
  if (slots == kMinSlots || 8 * known_ > MostUsed(slots)) return;
  // Without memory for the copy all stays as it is.
  const Status status = Rebuild(0, stream);
  (void)status;
}

void KnownKeys::Clear() {
  std::lock_guard<std::mutex> lock(mu_);
  view_ = KnownKeysView();
  used_ = known_ = 0;
  knows_all_ = true;
  refusals_ = 0;
  memory_.Free();
}

int64_t KnownKeys::bytes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return static_cast<int64_t>(memory_.size_bytes());
}

}  // namespace gpu
}  // namespace ev
