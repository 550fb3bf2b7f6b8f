// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Implements the NCCL calls of the exchange for ranks of one host that share a
// GPU, because NCCL refuses two ranks on one GPU. With it, programs for several
// ranks run on a machine with one card:
//
//   SOK_NCCL_LIBRARY=.../libnccl_one_gpu.so CUDA_VISIBLE_DEVICES=0
//
// Data pass through shared memory in chunks. A call, or a group of calls, is
// complete when it returns; NCCL's calls are not. So this library tests the
// content of messages, but neither speed nor stream order. It sums float16,
// float32 and float64 in the order of ranks. If a rank dies, the others wait
// until they abort.

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <new>
#include <random>
#include <vector>

namespace {

enum Result { kSuccess = 0, kUnhandledCudaError = 1, kSystemError = 2 };
constexpr int kInvalidArgument = 4;
enum Type { kInt8 = 0, kFloat16 = 6, kFloat32 = 7, kFloat64 = 8 };

constexpr int kMostRanks = 8;
constexpr size_t kPiece = 256 << 10;

struct Id {
  char name[128];
};

// A chunk in flight from one rank to another.
struct Box {
  std::atomic<int> full;
  size_t bytes;
  char data[kPiece];
};

struct Shared {
  std::atomic<int> joined, aborted;
  Box boxes[kMostRanks][kMostRanks];  // [from][to]
};

struct Transfer {
  char* memory;
  size_t left;
};

bool Failed(cudaError_t error) {
  if (error == cudaSuccess) return false;
  std::fprintf(stderr, "nccl_one_gpu: %s\n", cudaGetErrorString(error));
  return true;
}

struct Communicator {
  Shared* shared;
  int rank, num_ranks;
  // Transfers of the current group.
  std::deque<Transfer> sends[kMostRanks], receives[kMostRanks];
  cudaStream_t stream;
};

thread_local int group_depth = 0;
thread_local std::vector<Communicator*> of_group;

// Copies between memories of any kind; complete when it returns.
int Copy(void* to, const void* from, size_t bytes, cudaStream_t stream) {
  if (Failed(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream)) ||
      Failed(cudaStreamSynchronize(stream))) {
    return kUnhandledCudaError;
  }
  return kSuccess;
}

int Run(Communicator* c) {
  if (Failed(cudaStreamSynchronize(c->stream))) return kUnhandledCudaError;
  for (;;) {
    bool done = true, moved = false;
    for (int peer = 0; peer < c->num_ranks; ++peer) {
      auto& sends = c->sends[peer];
      Box& out = c->shared->boxes[c->rank][peer];
      if (!sends.empty() && out.full.load(std::memory_order_acquire) == 0) {
        Transfer& first = sends.front();
        out.bytes = std::min(first.left, kPiece);
        const int code = Copy(out.data, first.memory, out.bytes, c->stream);
        if (code != kSuccess) return code;
        first.memory += out.bytes;
        first.left -= out.bytes;
        if (first.left == 0) sends.pop_front();
        out.full.store(1, std::memory_order_release);
        moved = true;
      }
      auto& receives = c->receives[peer];
      Box& in = c->shared->boxes[peer][c->rank];
      if (!receives.empty() && in.full.load(std::memory_order_acquire) == 1) {
        Transfer& first = receives.front();
        if (in.bytes > first.left) return kInvalidArgument;
        const int code = Copy(first.memory, in.data, in.bytes, c->stream);
        if (code != kSuccess) return code;
        first.memory += in.bytes;
        first.left -= in.bytes;
        if (first.left == 0) receives.pop_front();
        in.full.store(0, std::memory_order_release);
        moved = true;
      }
      done &= sends.empty() && receives.empty();
    }
    if (done) return kSuccess;
    if (c->shared->aborted.load()) return kSystemError;
    if (!moved) sched_yield();
  }
}

int Add(Communicator* c, std::deque<Transfer>* to, const void* memory,
        size_t count, int type, cudaStream_t stream) {
  const size_t size = type == kFloat64 ? 8 : type == kFloat32 ? 4 : 1;
  if (type != kInt8 && size == 1) return kInvalidArgument;
  if (count > 0) {
    to->push_back(
        {static_cast<char*>(const_cast<void*>(memory)), count * size});
  }
  c->stream = stream;
  if (group_depth == 0) return Run(c);
  if (std::find(of_group.begin(), of_group.end(), c) == of_group.end()) {
    of_group.push_back(c);
  }
  return kSuccess;
}

template <typename T>
T Plus(T a, T b) {
  return a + b;
}

__half Plus(__half a, __half b) {
  return __float2half(__half2float(a) + __half2float(b));
}

template <typename T>
int Sum(const void* from, void* to, size_t count, Communicator* c,
        cudaStream_t stream) {
  if (Failed(cudaStreamSynchronize(stream))) return kUnhandledCudaError;
  std::vector<T> own(count);
  int code = Copy(own.data(), from, count * sizeof(T), stream);
  if (code != kSuccess) return code;
  std::vector<std::vector<T>> all(c->num_ranks, std::vector<T>(count));
  ++group_depth;
  for (int peer = 0; peer < c->num_ranks; ++peer) {
    Add(c, &c->sends[peer], own.data(), count * sizeof(T), kInt8, stream);
    Add(c, &c->receives[peer], all[peer].data(), count * sizeof(T), kInt8,
        stream);
  }
  --group_depth;
  of_group.clear();
  code = Run(c);
  if (code != kSuccess) return code;
  std::vector<T> sum(count);
  for (const auto& one : all) {
    for (size_t i = 0; i < count; ++i) sum[i] = Plus(sum[i], one[i]);
  }
  return Copy(to, sum.data(), count * sizeof(T), stream);
}

}  // namespace

#define SOK_NCCL_CALL extern "C" __attribute__((visibility("default")))

SOK_NCCL_CALL int ncclGetVersion(int* version) {
  *version = 22803;
  return kSuccess;
}

SOK_NCCL_CALL const char* ncclGetErrorString(int result) {
  switch (result) {
    case kSuccess:
      return "no error";
    case kUnhandledCudaError:
      return "a CUDA call failed; see the log of this rank";
    case kSystemError:
      return "a rank aborted, or there is no shared memory";
    default:
      return "an argument that nccl_one_gpu does not support";
  }
}

SOK_NCCL_CALL int ncclGetUniqueId(Id* id) {
  std::memset(id, 0, sizeof(*id));
  std::snprintf(id->name, sizeof(id->name), "/sok_one_gpu_%d_%x",
                static_cast<int>(getpid()), std::random_device()());
  return kSuccess;
}

SOK_NCCL_CALL int ncclCommInitRank(Communicator** made, int num_ranks, Id id,
                                   int rank) {
  if (num_ranks > kMostRanks) return kInvalidArgument;
  const int file = shm_open(id.name, O_CREAT | O_RDWR, 0600);
  if (file < 0) return kSystemError;
  if (ftruncate(file, sizeof(Shared)) != 0) {
    close(file);
    return kSystemError;
  }
  void* const memory = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                            MAP_SHARED, file, 0);
  close(file);
  if (memory == MAP_FAILED) return kSystemError;
  // A new file is all zeros, which are empty boxes.
  Shared* const shared = static_cast<Shared*>(memory);
  shared->joined.fetch_add(1);
  while (shared->joined.load() < num_ranks) usleep(1000);
  if (rank == 0) shm_unlink(id.name);
  *made = new Communicator();
  (*made)->shared = shared;
  (*made)->rank = rank;
  (*made)->num_ranks = num_ranks;
  return kSuccess;
}

SOK_NCCL_CALL int ncclCommAbort(Communicator* c) {
  c->shared->aborted.store(1);
  return kSuccess;  // not unmapped: a call may still use the memory
}

SOK_NCCL_CALL int ncclCommGetAsyncError(Communicator* c, int* result) {
  *result = c->shared->aborted.load() ? kSystemError : kSuccess;
  return kSuccess;
}

SOK_NCCL_CALL int ncclGroupStart() {
  ++group_depth;
  return kSuccess;
}

SOK_NCCL_CALL int ncclGroupEnd() {
  if (--group_depth > 0) return kSuccess;
  int code = kSuccess;
  for (Communicator* c : of_group) {
    const int one = Run(c);
    if (one != kSuccess) code = one;
  }
  of_group.clear();
  return code;
}

SOK_NCCL_CALL int ncclSend(const void* from, size_t count, int type, int peer,
                           Communicator* c, cudaStream_t stream) {
  return Add(c, &c->sends[peer], from, count, type, stream);
}

SOK_NCCL_CALL int ncclRecv(void* to, size_t count, int type, int peer,
                           Communicator* c, cudaStream_t stream) {
  return Add(c, &c->receives[peer], to, count, type, stream);
}

SOK_NCCL_CALL int ncclAllReduce(const void* from, void* to, size_t count,
                                int type, int operation, Communicator* c,
                                cudaStream_t stream) {
  if (operation != 0) return kInvalidArgument;
  if (type == kFloat16) return Sum<__half>(from, to, count, c, stream);
  if (type == kFloat32) return Sum<float>(from, to, count, c, stream);
  if (type == kFloat64) return Sum<double>(from, to, count, c, stream);
  return kInvalidArgument;
}
