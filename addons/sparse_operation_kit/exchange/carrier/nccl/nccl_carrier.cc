// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The carrier "nccl": ranks with a GPU each. What a rank sends goes by NCCL
// from its GPU to the others'. What is in the GPU's memory is sent from there,
// and received there. Other memory goes up before and comes down after: pinned
// memory (base/transfer_memory.h) is read and written by the GPU itself, and
// ordinary memory goes through pinned memory of the carrier's, a piece at a
// time, so that the processor's copy and the link work beside each other.
//
// What ranks of one host tell each other goes through memory that they share
// (control_carrier.h).
//
// Gradients to be summed are copied into one block, whatever their number,
// which NCCL sums in one call: two launches beside NCCL's.
//
// NCCL's own words on order: all ranks must call in the same order, which
// CarrierQueue sees to; there is one communicator and one stream for its calls.
//
// ENDINGS. A rank that dies leaves the others' kernels waiting. They are looked
// at, not waited for, so Abort ends them. Ranks of one host notice a death by
// the memory that they share; else the time limit of the exchange calls Abort,
// or the launcher ends all ranks.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"
#include "addons/sparse_operation_kit/exchange/carrier/control_carrier.h"
#include "addons/sparse_operation_kit/exchange/carrier/nccl/nccl_library.h"
#include "addons/sparse_operation_kit/exchange/carrier/nccl/reduce_kernels.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/gpu/process_device.h"
#include "kernels/engine/base/gpu/side_stream.h"
#include "kernels/engine/base/gpu/urgent_stream.h"

namespace sok {
namespace {

// Looks at a stream before the thread begins to nap.
constexpr int kLooksAtOnce = 20000;
constexpr auto kNap = std::chrono::microseconds(20);
// Naps, some 50 to 100 ms, after which it looks whether all ranks live.
constexpr int kLooksForTheDead = 1000;
constexpr auto kLastWords = std::chrono::milliseconds(50);

// What the processor copies at a time, beside the link.
constexpr int64_t kPieceBytes = 2 << 20;

int64_t TotalOf(ev::Span<const int64_t> sizes) {
  int64_t sum = 0;
  for (const int64_t size : sizes) sum += size;
  return sum;
}

ev::Status Check() {
  int device = 0;
  EV_RETURN_IF_ERROR(
      ev::gpu::ProcessDevice("an exchange by NCCL needs", &device));
  const NcclLibrary* nccl = nullptr;
  return NcclLibrary::Get(&nccl);
}

ev::Status MakeId(int num_ranks, std::string* id) {
  (void)num_ranks;
  const NcclLibrary* nccl = nullptr;
  EV_RETURN_IF_ERROR(NcclLibrary::Get(&nccl));
  NcclLibrary::Id made;
  EV_RETURN_IF_ERROR(
      nccl->Check(nccl->get_unique_id(&made), "ncclGetUniqueId"));
  id->assign(made.bytes, sizeof(made.bytes));
  return ev::Status::OK();
}

// Such an answer may stay the thread's last error, for which a later launch
// would be blamed.
bool IsNotReady(cudaError_t error) {
  if (error != cudaErrorNotReady) return false;
  cudaGetLastError();
  return true;
}

class EventMark : public StreamMark {
 public:
  static ev::Status Make(int device, const ev::DeviceStream& stream,
                         std::shared_ptr<StreamMark>* mark) {
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device));
    const auto made = std::make_shared<EventMark>();
    EV_CUDA_RETURN_IF_ERROR(
        cudaEventCreateWithFlags(&made->event_, cudaEventDisableTiming));
    EV_CUDA_RETURN_IF_ERROR(cudaEventRecord(
        made->event_, static_cast<cudaStream_t>(stream.native)));
    *mark = made;
    return ev::Status::OK();
  }
  ~EventMark() override {
    if (event_ != nullptr) EV_CUDA_LOG_IF_ERROR(cudaEventDestroy(event_));
  }
  bool IsReached() override { return !IsNotReady(cudaEventQuery(event_)); }
  cudaEvent_t event() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

int NcclTypeOf(ReducedType type) {
  switch (type) {
    case ReducedType::kFloat16:
      return NcclLibrary::kFloat16;
    case ReducedType::kFloat32:
      return NcclLibrary::kFloat32;
    case ReducedType::kFloat64:
      return NcclLibrary::kFloat64;
  }
  return NcclLibrary::kFloat32;
}

class NcclCarrier : public Carrier {
 public:
  NcclCarrier(const NcclLibrary* nccl, int device,
              const CarrierOptions& options)
      : nccl_(nccl),
        device_(device),
        rank_(options.rank),
        num_ranks_(options.num_ranks) {}

  ~NcclCarrier() override {
    Abort();
    End();
    for (cudaEvent_t event : came_) {
      if (event != nullptr) EV_CUDA_LOG_IF_ERROR(cudaEventDestroy(event));
    }
    if (stream_ != nullptr) EV_CUDA_LOG_IF_ERROR(cudaStreamDestroy(stream_));
  }

  static ev::Status Make(const CarrierOptions& options,
                         std::unique_ptr<Carrier>* carrier) {
    NcclLibrary::Id id;
    if (options.id.size() != sizeof(id.bytes)) {
      return ev::InvalidArgument(
          "an id of NCCL has " + std::to_string(sizeof(id.bytes)) +
          " bytes, got " + std::to_string(options.id.size()));
    }
    std::memcpy(id.bytes, options.id.data(), sizeof(id.bytes));
    int device = 0;
    EV_RETURN_IF_ERROR(
        ev::gpu::ProcessDevice("an exchange by NCCL needs", &device));
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device));
    const NcclLibrary* nccl = nullptr;
    EV_RETURN_IF_ERROR(NcclLibrary::Get(&nccl));
    std::unique_ptr<NcclCarrier> made(new NcclCarrier(nccl, device, options));
    EV_RETURN_IF_ERROR(
        ev::gpu::CreateUrgentStream(/*most=*/true, &made->stream_));
    EV_RETURN_IF_ERROR(made->own_.Create());
    for (cudaEvent_t& event : made->came_) {
      EV_CUDA_RETURN_IF_ERROR(
          cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    }
    EV_RETURN_IF_ERROR(
        nccl->Check(nccl->comm_init_rank(&made->communicator_,
                                         options.num_ranks, id, options.rank),
                    "ncclCommInitRank"));
    EV_RETURN_IF_ERROR(
        MakeControlCarrier(made.get(), /*is_wanted=*/true, &made->control_));
    *carrier = std::move(made);
    return ev::Status::OK();
  }

  int rank() const override { return rank_; }
  int num_ranks() const override { return num_ranks_; }
  void Abort() override {
    aborted_.store(true);
    if (control_ != nullptr) control_->Abort();
  }

  ev::Status Tell(const char* send, ev::Span<const int64_t> send_bytes,
                  char* out, ev::Span<const int64_t> received_bytes) override {
    if (control_ == nullptr) {
      return AllToAll(send, send_bytes, out, received_bytes);
    }
    if (aborted_) return Ended();
    return control_->AllToAll(send, send_bytes, out, received_bytes);
  }

  ev::Status AllToAll(const char* send, ev::Span<const int64_t> send_bytes,
                      char* out,
                      ev::Span<const int64_t> received_bytes) override {
    const ev::Status status = Carry(send, send_bytes, out, received_bytes);
    // Nothing may be under way on memory that the caller takes back.
    if (!status.ok()) End();
    return status;
  }

  ev::Status AllReduce(const Reduction& reduction) override {
    const ev::Status status = Sum(reduction);
    if (!status.ok()) End();
    return status;
  }

  ev::Status Mark(const ev::DeviceStream& stream,
                  std::shared_ptr<StreamMark>* mark) override {
    return EventMark::Make(device_, stream, mark);
  }

 private:
  // Pinned memory for callers that have none; grows.
  struct Staging {
    char* data = nullptr;
    int64_t bytes = 0;
    ~Staging() {
      if (data != nullptr) EV_CUDA_LOG_IF_ERROR(cudaFreeHost(data));
    }
    ev::Status Reserve(int64_t wanted) {
      if (wanted <= bytes) return ev::Status::OK();
      if (data != nullptr) EV_CUDA_RETURN_IF_ERROR(cudaFreeHost(data));
      data = nullptr;
      bytes = 0;
      void* made = nullptr;
      EV_CUDA_RETURN_IF_ERROR(cudaMallocHost(&made, WithRoom(wanted)));
      data = static_cast<char*>(made);
      bytes = WithRoom(wanted);
      return ev::Status::OK();
    }
  };

  // Batches differ a little from step to step.
  static int64_t WithRoom(int64_t bytes) { return bytes + bytes / 4 + 4096; }

  static ev::Status Reserve(int64_t bytes, ev::gpu::DeviceBuffer* buffer) {
    if (bytes <= static_cast<int64_t>(buffer->size_bytes())) {
      return ev::Status::OK();
    }
    return buffer->Allocate(WithRoom(bytes), "an exchange by NCCL");
  }

  static cudaMemoryType TypeOf(const void* memory) {
    cudaPointerAttributes attributes;
    if (cudaPointerGetAttributes(&attributes, memory) != cudaSuccess) {
      cudaGetLastError();
      return cudaMemoryTypeUnregistered;
    }
    return attributes.type;
  }
  static bool IsPinned(const void* memory) {
    return TypeOf(memory) == cudaMemoryTypeHost;
  }
  static bool IsOnDevice(const void* memory) {
    return TypeOf(memory) == cudaMemoryTypeDevice;
  }

  static ev::Status Ended() {
    return ev::Internal("the exchange by NCCL was ended");
  }

  ev::Status Carry(const char* send, ev::Span<const int64_t> send_bytes,
                   char* out, ev::Span<const int64_t> received_bytes) {
    if (communicator_ == nullptr || aborted_) return Ended();
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    const int64_t up = TotalOf(send_bytes), down = TotalOf(received_bytes);
    const char* from = send;
    if (up > 0 && !IsOnDevice(send)) {
      EV_RETURN_IF_ERROR(Reserve(up, &sent_));
      EV_RETURN_IF_ERROR(BringUp(send, up));
      from = sent_.as<char>();
    }
    const bool stays = down > 0 && IsOnDevice(out);
    if (!stays) EV_RETURN_IF_ERROR(Reserve(down, &received_));
    EV_RETURN_IF_ERROR(Exchange(
        from, send_bytes, stays ? out : received_.as<char>(), received_bytes));
    return stays ? Wait() : BringDown(out, down);
  }

  ev::Status BringUp(const char* send, int64_t bytes) {
    const bool is_pinned = IsPinned(send);
    if (!is_pinned) EV_RETURN_IF_ERROR(up_.Reserve(bytes));
    const int64_t step = is_pinned ? bytes : kPieceBytes;
    for (int64_t at = 0; at < bytes; at += step) {
      const int64_t n = std::min(step, bytes - at);
      const char* from = send + at;
      if (!is_pinned) {
        std::memcpy(up_.data + at, from, n);
        from = up_.data + at;
      }
      EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(sent_.as<char>() + at, from, n,
                                              cudaMemcpyHostToDevice, stream_));
    }
    return ev::Status::OK();
  }

  ev::Status Exchange(const char* from, ev::Span<const int64_t> send_bytes,
                      char* to, ev::Span<const int64_t> received_bytes) {
    EV_RETURN_IF_ERROR(CopyOwn(from, send_bytes, to, received_bytes));
    EV_RETURN_IF_ERROR(nccl_->Check(nccl_->group_start(), "ncclGroupStart"));
    ev::Status status;
    for (int r = 0; r < num_ranks_ && status.ok(); ++r) {
      if (r != rank_ && send_bytes[r] > 0) {
        status =
            nccl_->Check(nccl_->send(from, send_bytes[r], NcclLibrary::kInt8, r,
                                     communicator_, stream_),
                         "ncclSend");
      }
      if (r != rank_ && status.ok() && received_bytes[r] > 0) {
        status =
            nccl_->Check(nccl_->recv(to, received_bytes[r], NcclLibrary::kInt8,
                                     r, communicator_, stream_),
                         "ncclRecv");
      }
      from += send_bytes[r];
      to += received_bytes[r];
    }
    const ev::Status ended = nccl_->Check(nccl_->group_end(), "ncclGroupEnd");
    EV_RETURN_IF_ERROR(status.ok() ? ended : status);
    return own_.Join(stream_);
  }

  // What this rank sends to itself is copied beside NCCL, whose few blocks have
  // the others' bytes to move.
  ev::Status CopyOwn(const char* from, ev::Span<const int64_t> send_bytes,
                     char* to, ev::Span<const int64_t> received_bytes) {
    if (send_bytes[rank_] != received_bytes[rank_]) {
      return ev::Internal(
          "a rank sends itself " + std::to_string(send_bytes[rank_]) +
          " bytes and expects " + std::to_string(received_bytes[rank_]));
    }
    EV_RETURN_IF_ERROR(own_.Fork(stream_));
    if (send_bytes[rank_] == 0) return ev::Status::OK();
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        to + TotalOf(received_bytes.subspan(0, rank_)),
        from + TotalOf(send_bytes.subspan(0, rank_)), send_bytes[rank_],
        cudaMemcpyDeviceToDevice, own_.get()));
    return ev::Status::OK();
  }

  ev::Status BringDown(char* out, int64_t bytes) {
    if (bytes == 0) return Wait();
    if (IsPinned(out)) {
      EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(out, received_.data(), bytes,
                                              cudaMemcpyDeviceToHost, stream_));
      return Wait();
    }
    EV_RETURN_IF_ERROR(down_.Reserve(bytes));
    // The copy to the caller's memory follows the link by one piece.
    int64_t copied = 0;
    for (int64_t at = 0; at < bytes; at += kPieceBytes) {
      const int64_t n = std::min(kPieceBytes, bytes - at);
      EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(down_.data + at,
                                              received_.as<char>() + at, n,
                                              cudaMemcpyDeviceToHost, stream_));
      EV_CUDA_RETURN_IF_ERROR(
          cudaEventRecord(came_[at / kPieceBytes % 2], stream_));
      if (at == 0) continue;
      EV_RETURN_IF_ERROR(WaitFor(
          [&] { return cudaEventQuery(came_[(at / kPieceBytes - 1) % 2]); }));
      std::memcpy(out + copied, down_.data + copied, kPieceBytes);
      copied += kPieceBytes;
    }
    EV_RETURN_IF_ERROR(Wait());
    std::memcpy(out + copied, down_.data + copied, bytes - copied);
    return ev::Status::OK();
  }

  ev::Status Sum(const Reduction& reduction) {
    if (communicator_ == nullptr || aborted_) return Ended();
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    const int64_t size = ReducedBytes(reduction.type);
    std::vector<FusedPiece> pieces;
    int64_t bytes = 0, most = 0;
    for (const ReducedPiece& piece : reduction.pieces) {
      if (piece.count == 0) continue;
      const int64_t length = piece.count * size;
      pieces.push_back({piece.from, piece.to, bytes, length});
      most = std::max(most, length);
      bytes += (length + kFusedAlign - 1) / kFusedAlign * kFusedAlign;
    }
    if (bytes == 0) return ev::Status::OK();
    EV_RETURN_IF_ERROR(Reserve(bytes, &sums_));
    const bool is_here = reduction.after == nullptr;
    FusedBlock block;
    block.most = most;
    block.num_pieces = pieces.size();
    if (is_here) {
      EV_RETURN_IF_ERROR(BringPiecesUp(pieces, bytes));
      // The sums are scaled where they lie.
      pieces.assign(1, FusedPiece{nullptr, sums_.as<char>(), 0, bytes});
      block.num_pieces = 1;
      block.most = bytes;
    } else {
      const auto& mark = static_cast<const EventMark&>(*reduction.after);
      EV_CUDA_RETURN_IF_ERROR(cudaStreamWaitEvent(stream_, mark.event(), 0));
    }
    EV_RETURN_IF_ERROR(TellPieces(pieces));
    block.pieces = told_.as<FusedPiece>();
    if (!is_here) {
      EV_RETURN_IF_ERROR(LaunchFuse(block, sums_.as<char>(), stream_));
    }
    EV_RETURN_IF_ERROR(nccl_->Check(
        nccl_->all_reduce(sums_.data(), sums_.data(), bytes / size,
                          NcclTypeOf(reduction.type), NcclLibrary::kSum,
                          communicator_, stream_),
        "ncclAllReduce"));
    if (!is_here || reduction.scale != 1.0) {
      EV_RETURN_IF_ERROR(LaunchSpread(block, sums_.as<char>(), reduction.type,
                                      reduction.scale, stream_));
    }
    if (!is_here) return Wait();
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(up_.data, sums_.data(), bytes,
                                            cudaMemcpyDeviceToHost, stream_));
    EV_RETURN_IF_ERROR(Wait());
    int64_t at = 0;
    for (const ReducedPiece& piece : reduction.pieces) {
      const int64_t length = piece.count * size;
      std::memcpy(piece.to, up_.data + at, length);
      at += (length + kFusedAlign - 1) / kFusedAlign * kFusedAlign;
    }
    return ev::Status::OK();
  }

  // Out of CPU memory, through up_.
  ev::Status BringPiecesUp(const std::vector<FusedPiece>& pieces,
                           int64_t bytes) {
    EV_RETURN_IF_ERROR(up_.Reserve(bytes));
    for (const FusedPiece& piece : pieces) {
      std::memcpy(up_.data + piece.at, piece.from, piece.bytes);
    }
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(sums_.data(), up_.data, bytes,
                                            cudaMemcpyHostToDevice, stream_));
    return ev::Status::OK();
  }

  // The list of pieces, for kernels.
  ev::Status TellPieces(const std::vector<FusedPiece>& pieces) {
    const int64_t bytes = pieces.size() * sizeof(FusedPiece);
    EV_RETURN_IF_ERROR(tell_.Reserve(bytes));
    EV_RETURN_IF_ERROR(Reserve(bytes, &told_));
    std::memcpy(tell_.data, pieces.data(), bytes);
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(told_.data(), tell_.data, bytes,
                                            cudaMemcpyHostToDevice, stream_));
    return ev::Status::OK();
  }

  ev::Status Wait() {
    return WaitFor([this] { return cudaStreamQuery(stream_); });
  }

  template <typename Query>
  ev::Status WaitFor(const Query& query) {
    for (int looks = 0;; ++looks) {
      const cudaError_t error = query();
      if (error == cudaSuccess) return ev::Status::OK();
      if (!IsNotReady(error)) EV_CUDA_RETURN_IF_ERROR(error);
      if (aborted_) return Ended();
      if (looks < kLooksAtOnce) continue;
      if (control_ != nullptr && looks % kLooksForTheDead == 0) {
        const ev::Status alive = control_->CheckRanks();
        if (!alive.ok()) {
          // A rank may have done its part, and ended, just now.
          std::this_thread::sleep_for(kLastWords);
          return query() == cudaSuccess ? ev::Status::OK() : alive;
        }
      }
      int result = NcclLibrary::kSuccess;
      EV_RETURN_IF_ERROR(
          nccl_->Check(nccl_->comm_get_async_error(communicator_, &result),
                       "ncclCommGetAsyncError"));
      EV_RETURN_IF_ERROR(nccl_->Check(result, "an exchange by NCCL"));
      std::this_thread::sleep_for(kNap);
    }
  }

  // Ends NCCL's kernels and waits for them.
  void End() {
    if (communicator_ == nullptr) return;
    EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
    nccl_->comm_abort(communicator_);
    communicator_ = nullptr;
    EV_CUDA_LOG_IF_ERROR(cudaStreamSynchronize(own_.get()));
    EV_CUDA_LOG_IF_ERROR(cudaStreamSynchronize(stream_));
  }

  const NcclLibrary* const nccl_;
  const int device_, rank_, num_ranks_;
  std::atomic<bool> aborted_{false};
  cudaStream_t stream_ = nullptr;
  ev::gpu::SideStream own_;  // of what a rank sends to itself
  cudaEvent_t came_[2] = {nullptr, nullptr};
  NcclLibrary::Communicator* communicator_ = nullptr;
  std::unique_ptr<Carrier> control_;  // or null
  ev::gpu::DeviceBuffer sent_, received_, sums_, told_;
  Staging up_, down_, tell_;
};

const bool kRegistered =
    RegisterCarrier("nccl", CarrierKind{&Check, &MakeId, &NcclCarrier::Make});

}  // namespace
}  // namespace sok
