// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The carrier "nccl": connects ranks with a GPU each by NCCL. Buffers in GPU
// memory are sent and received in place. Host buffers are copied to the GPU
// first and from it afterwards. The GPU accesses pinned memory
// (base/transfer_memory.h) directly; other memory is staged through the
// carrier's pinned memory in parts, so that CPU copies overlap with the link.
//
// Names and sizes of transfers between ranks of one host go through shared
// memory (control_carrier.h).
//
// Gradients to be summed are packed into one block, which NCCL sums in one
// call. That takes two launches beside NCCL's, whatever the number of
// gradients.
//
// NCCL requires all ranks to make their calls in the same order; CarrierQueue
// ensures that. All calls use one communicator and one stream.
//
// Transfers from GPU memory to GPU memory are started: the CPU waits neither
// for their inputs nor for their end. They are all in one stream, in an order
// that all ranks share. So an NCCL kernel only waits for kernels that the other
// rank has started or will start, even if something else waits for this rank's
// device.
//
// ENDINGS. If a rank dies, the kernels of the others wait forever. The carrier
// therefore polls them instead of blocking, so that End can abort them. Ranks
// of one host detect a death through the shared memory; otherwise the time
// limit of the exchange calls Abort, or the launcher ends all ranks. Aborted
// kernels leave undefined bytes. A flag, set before the abort, makes a later
// kernel overwrite them.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"
#include "addons/sparse_operation_kit/exchange/carrier/control_carrier.h"
#include "addons/sparse_operation_kit/exchange/carrier/nccl/nccl_library.h"
#include "addons/sparse_operation_kit/exchange/carrier/nccl/reduce_kernels.h"
#include "addons/sparse_operation_kit/exchange/gpu/gpu_event.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/gpu/device_event.h"
#include "kernels/engine/base/gpu/process_device.h"
#include "kernels/engine/base/gpu/side_stream.h"
#include "kernels/engine/base/gpu/urgent_stream.h"

namespace sok {
namespace {

using gpu::GpuEvent;

// Polls of a stream before the thread starts to sleep.
constexpr int kLooksAtOnce = 20000;
constexpr auto kNap = std::chrono::microseconds(20);
// Sleeps, some 50 to 100 ms in all, between checks that all ranks are alive.
constexpr int kLooksForTheDead = 1000;
constexpr auto kLastWords = std::chrono::milliseconds(50);
// Time for the other ranks of the host to see a failure: they check every 50
// ms.
constexpr auto kUntilAllKnow = std::chrono::milliseconds(200);

// Bytes that the CPU copies at a time while the link is busy.
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

ev::Status Ended() { return ev::Internal("the exchange by NCCL was ended"); }

// Clears cudaErrorNotReady, which could otherwise be reported as the error of a
// later launch.
bool IsNotReady(cudaError_t error) {
  if (error != cudaErrorNotReady) return false;
  cudaGetLastError();
  return true;
}

// An event for a started transfer; Wait returns an error after Abort.
class StartedEvent : public StreamEvent {
 public:
  StartedEvent(int device, std::shared_ptr<ev::gpu::DeviceEvent> event,
               std::shared_ptr<const std::atomic<bool>> aborted)
      : event_(device, std::move(event)), aborted_(std::move(aborted)) {}
  bool IsReached() override { return event_.IsReached(); }
  ev::Status Before(const ev::DeviceStream& stream) override {
    return event_.Before(stream);
  }
  ev::Status Wait() override {
    EV_RETURN_IF_ERROR(event_.Wait());
    return *aborted_ ? Ended() : ev::Status::OK();
  }

 private:
  GpuEvent event_;
  const std::shared_ptr<const std::atomic<bool>> aborted_;
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

// A list of pieces, in pinned and in GPU memory, unchanged until the GPU has
// used it.
struct PieceList {
  char* host = nullptr;  // pinned
  int64_t bytes = 0;
  ev::gpu::DeviceBuffer device;
  std::shared_ptr<ev::gpu::DeviceEvent> read;  // null: never used
  ~PieceList() {
    if (host != nullptr) EV_CUDA_LOG_IF_ERROR(cudaFreeHost(host));
  }
};

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
    if (is_ended_ != nullptr) EV_CUDA_LOG_IF_ERROR(cudaFreeHost(is_ended_));
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
    void* flag = nullptr;
    EV_CUDA_RETURN_IF_ERROR(cudaMallocHost(&flag, sizeof(int32_t)));
    made->is_ended_ = static_cast<int32_t*>(flag);
    *made->is_ended_ = 0;
    EV_RETURN_IF_ERROR(made->is_ended_on_device_.Allocate(
        sizeof(int32_t), "an exchange by NCCL"));
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
    // Kernels after NCCL's read is_ended_, and readers of events read aborted_.
    // No CUDA call here: some wait for the device.
    if (is_ended_ != nullptr) *static_cast<volatile int32_t*>(is_ended_) = 1;
    aborted_->store(true);
    if (control_ != nullptr) control_->Abort();
  }
  bool HostWaitsForStarted() const override { return control_ == nullptr; }
  ev::Status CheckRanks(int64_t call) override {
    if (control_ != nullptr) EV_RETURN_IF_ERROR(control_->CheckRanks(call));
    // try_lock: if End holds the lock there is nothing to report.
    std::unique_lock<std::mutex> lock(communicator_mu_, std::try_to_lock);
    if (!lock.owns_lock() || communicator_ == nullptr) return ev::Status::OK();
    int result = NcclLibrary::kSuccess;
    EV_RETURN_IF_ERROR(
        nccl_->Check(nccl_->comm_get_async_error(communicator_, &result),
                     "ncclCommGetAsyncError"));
    return result == NcclLibrary::kInProgress
               ? ev::Status::OK()
               : nccl_->Check(result, "an exchange by NCCL");
  }
  void Leave(int64_t calls, std::chrono::milliseconds limit) override {
    if (control_ != nullptr) control_->Leave(calls, limit);
  }

  ev::Status AllToAllOnHost(const char* send,
                            ev::Span<const int64_t> send_bytes, char* out,
                            ev::Span<const int64_t> received_bytes) override {
    if (control_ == nullptr) {
      return AllToAll(send, send_bytes, out, received_bytes);
    }
    if (*aborted_) return Ended();
    return control_->AllToAll(send, send_bytes, out, received_bytes);
  }

  ev::Status AllToAll(const char* send, ev::Span<const int64_t> send_bytes,
                      char* out,
                      ev::Span<const int64_t> received_bytes) override {
    const ev::Status status = Carry(send, send_bytes, out, received_bytes);
    // Stop work on memory that the caller takes back.
    if (!status.ok()) End();
    return status;
  }

  ev::Status StartAllToAll(const char* send, ev::Span<const int64_t> send_bytes,
                           const std::shared_ptr<StreamEvent>& after, char* out,
                           ev::Span<const int64_t> received_bytes,
                           int when_failed,
                           std::shared_ptr<StreamEvent>* ready) override {
    ready->reset();
    const ev::Status status =
        Start(send, send_bytes, after, out, received_bytes, when_failed, ready);
    if (!status.ok()) End();
    return status;
  }

  ev::Status AllReduce(const Reduction& reduction,
                       std::shared_ptr<StreamEvent>* ready) override {
    ready->reset();
    const ev::Status status = Sum(reduction, ready);
    if (!status.ok()) End();
    return status;
  }

  ev::Status RecordEvent(const ev::DeviceStream& stream,
                         std::shared_ptr<StreamEvent>* event) override {
    return GpuEvent::Make(device_, static_cast<cudaStream_t>(stream.native),
                          event);
  }

  // Aborts NCCL's kernels and waits for them.
  void End() override {
    std::lock_guard<std::mutex> lock(communicator_mu_);
    if (communicator_ == nullptr) return;
    // Aborting a kernel may let another rank's kernel finish with bytes that
    // were never sent. So all ranks of the host get the failure, and time to
    // set their flags, before the first abort.
    Abort();
    std::this_thread::sleep_for(kUntilAllKnow);
    nccl_->comm_abort(communicator_);
    communicator_ = nullptr;
    EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
    EV_CUDA_LOG_IF_ERROR(cudaStreamSynchronize(own_.get()));
    EV_CUDA_LOG_IF_ERROR(cudaStreamSynchronize(stream_));
  }

 private:
  // Pinned staging memory for callers without any.
  struct Staging {
    char* data = nullptr;
    int64_t bytes = 0;
    Staging() {}
    Staging(Staging&& other) { *this = std::move(other); }
    Staging& operator=(Staging&& other) {
      std::swap(data, other.data);
      std::swap(bytes, other.bytes);
      return *this;
    }
    ~Staging() {
      if (data != nullptr) EV_CUDA_LOG_IF_ERROR(cudaFreeHost(data));
    }
  };

  // Spare room, since batch sizes vary a little between steps.
  static int64_t WithRoom(int64_t bytes) { return bytes + bytes / 4 + 4096; }

  // Outgrown buffers stay until the carrier ends; together they are at most
  // four times what it uses. CUDA would free them only when the device is idle,
  // and the device may wait for a call that this thread has to end.
  ev::Status Reserve(int64_t bytes, Staging* staging) {
    if (bytes <= staging->bytes) return ev::Status::OK();
    Staging made;
    void* data = nullptr;
    EV_CUDA_RETURN_IF_ERROR(cudaMallocHost(&data, WithRoom(bytes)));
    made.data = static_cast<char*>(data);
    made.bytes = WithRoom(bytes);
    if (staging->data != nullptr)
      outgrown_staging_.push_back(std::move(*staging));
    *staging = std::move(made);
    return ev::Status::OK();
  }
  ev::Status Reserve(int64_t bytes,
                     std::unique_ptr<ev::gpu::DeviceBuffer>* buffer) {
    if (*buffer != nullptr &&
        bytes <= static_cast<int64_t>((*buffer)->size_bytes())) {
      return ev::Status::OK();
    }
    std::unique_ptr<ev::gpu::DeviceBuffer> made(new ev::gpu::DeviceBuffer);
    EV_RETURN_IF_ERROR(made->Allocate(WithRoom(bytes), "an exchange by NCCL"));
    if (*buffer != nullptr) outgrown_.push_back(std::move(*buffer));
    *buffer = std::move(made);
    return ev::Status::OK();
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

  ev::Status Carry(const char* send, ev::Span<const int64_t> send_bytes,
                   char* out, ev::Span<const int64_t> received_bytes) {
    if (communicator_ == nullptr || *aborted_) return Ended();
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    const int64_t up = TotalOf(send_bytes), down = TotalOf(received_bytes);
    const char* from = send;
    if (up > 0 && !IsOnDevice(send)) {
      EV_RETURN_IF_ERROR(Reserve(up, &sent_));
      EV_RETURN_IF_ERROR(BringUp(send, up));
      from = sent_->as<char>();
    }
    const bool stays = down > 0 && IsOnDevice(out);
    if (!stays) EV_RETURN_IF_ERROR(Reserve(down, &received_));
    EV_RETURN_IF_ERROR(Exchange(
        from, send_bytes, stays ? out : received_->as<char>(), received_bytes));
    return stays ? Wait() : BringDown(out, down);
  }

  // Returns without waiting if both buffers are in GPU memory.
  ev::Status Start(const char* send, ev::Span<const int64_t> send_bytes,
                   const std::shared_ptr<StreamEvent>& after, char* out,
                   ev::Span<const int64_t> received_bytes, int when_failed,
                   std::shared_ptr<StreamEvent>* ready) {
    if (communicator_ == nullptr || *aborted_) return Ended();
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    if (after != nullptr) {
      EV_RETURN_IF_ERROR(after->Before(ev::DeviceStream{stream_}));
    }
    const int64_t up = TotalOf(send_bytes), down = TotalOf(received_bytes);
    if ((up > 0 && !IsOnDevice(send)) || (down > 0 && !IsOnDevice(out))) {
      return Carry(send, send_bytes, out, received_bytes);
    }
    EV_RETURN_IF_ERROR(Exchange(send, send_bytes, out, received_bytes));
    EV_RETURN_IF_ERROR(FillIfEnded(out, down, when_failed));
    return RecordStarted(ready);
  }

  // Copies the flag after NCCL's kernels: 1 us in a trace. A kernel that reads
  // host memory itself takes 18 us.
  ev::Status FillIfEnded(char* to, int64_t bytes, int byte) {
    if (bytes == 0) return ev::Status::OK();
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(is_ended_on_device_.data(),
                                            is_ended_, sizeof(int32_t),
                                            cudaMemcpyHostToDevice, stream_));
    return LaunchFillIf(is_ended_on_device_.as<int32_t>(), to, bytes, byte,
                        stream_);
  }

  ev::Status RecordStarted(std::shared_ptr<StreamEvent>* ready) {
    std::shared_ptr<ev::gpu::DeviceEvent> event;
    EV_RETURN_IF_ERROR(ev::gpu::DeviceEvent::Record(stream_, &event));
    *ready =
        std::make_shared<StartedEvent>(device_, std::move(event), aborted_);
    return ev::Status::OK();
  }

  ev::Status BringUp(const char* send, int64_t bytes) {
    const bool is_pinned = IsPinned(send);
    if (!is_pinned) EV_RETURN_IF_ERROR(Reserve(bytes, &up_));
    const int64_t step = is_pinned ? bytes : kPieceBytes;
    for (int64_t at = 0; at < bytes; at += step) {
      const int64_t n = std::min(step, bytes - at);
      const char* from = send + at;
      if (!is_pinned) {
        std::memcpy(up_.data + at, from, n);
        from = up_.data + at;
      }
      EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(sent_->as<char>() + at, from, n,
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

  // Copies what this rank sends to itself beside NCCL, whose few blocks move
  // the bytes of the other ranks.
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
      EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(out, received_->data(), bytes,
                                              cudaMemcpyDeviceToHost, stream_));
      return Wait();
    }
    EV_RETURN_IF_ERROR(Reserve(bytes, &down_));
    // The copy to the caller's memory is one part behind the link.
    int64_t copied = 0;
    for (int64_t at = 0; at < bytes; at += kPieceBytes) {
      const int64_t n = std::min(kPieceBytes, bytes - at);
      EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(down_.data + at,
                                              received_->as<char>() + at, n,
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

  ev::Status Sum(const Reduction& reduction,
                 std::shared_ptr<StreamEvent>* ready) {
    if (communicator_ == nullptr || *aborted_) return Ended();
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
    const bool in_host_memory = reduction.after == nullptr;
    FusedBlock block;
    block.most = most;
    block.num_pieces = pieces.size();
    if (in_host_memory) {
      EV_RETURN_IF_ERROR(BringPiecesUp(pieces, bytes));
      // The sums are scaled in place.
      pieces.assign(1, FusedPiece{nullptr, sums_->as<char>(), 0, bytes});
      block.num_pieces = 1;
      block.most = bytes;
    } else {
      EV_RETURN_IF_ERROR(reduction.after->Before(ev::DeviceStream{stream_}));
    }
    PieceList* list = nullptr;
    EV_RETURN_IF_ERROR(UploadPieces(pieces, &list));
    block.pieces = list->device.as<FusedPiece>();
    if (!in_host_memory) {
      EV_RETURN_IF_ERROR(LaunchFuse(block, sums_->as<char>(), stream_));
    }
    EV_RETURN_IF_ERROR(nccl_->Check(
        nccl_->all_reduce(sums_->data(), sums_->data(), bytes / size,
                          NcclTypeOf(reduction.type), NcclLibrary::kSum,
                          communicator_, stream_),
        "ncclAllReduce"));
    EV_RETURN_IF_ERROR(FillIfEnded(sums_->as<char>(), bytes, 0));
    if (!in_host_memory || reduction.scale != 1.0) {
      EV_RETURN_IF_ERROR(LaunchSpread(block, sums_->as<char>(), reduction.type,
                                      reduction.scale, stream_));
    }
    EV_RETURN_IF_ERROR(ev::gpu::DeviceEvent::Record(stream_, &list->read));
    if (!in_host_memory) return RecordStarted(ready);
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(up_.data, sums_->data(), bytes,
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

  // Copies pieces from host memory to the GPU through up_.
  ev::Status BringPiecesUp(const std::vector<FusedPiece>& pieces,
                           int64_t bytes) {
    EV_RETURN_IF_ERROR(Reserve(bytes, &up_));
    for (const FusedPiece& piece : pieces) {
      std::memcpy(up_.data + piece.at, piece.from, piece.bytes);
    }
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(sums_->data(), up_.data, bytes,
                                            cudaMemcpyHostToDevice, stream_));
    return ev::Status::OK();
  }

  // Uploads the list of pieces for kernels. *list is reused when list->read has
  // passed.
  ev::Status UploadPieces(const std::vector<FusedPiece>& pieces,
                          PieceList** list) {
    const int64_t bytes = pieces.size() * sizeof(FusedPiece);
    *list = nullptr;
    for (const auto& one : piece_lists_) {
      if (one->bytes >= bytes && one->read != nullptr &&
          one->read->IsThroughOrFailed()) {
        *list = one.get();
      }
    }
    if (*list == nullptr) {
      std::unique_ptr<PieceList> made(new PieceList);
      void* host = nullptr;
      EV_CUDA_RETURN_IF_ERROR(cudaMallocHost(&host, WithRoom(bytes)));
      made->host = static_cast<char*>(host);
      made->bytes = WithRoom(bytes);
      EV_RETURN_IF_ERROR(
          made->device.Allocate(WithRoom(bytes), "an exchange by NCCL"));
      piece_lists_.push_back(std::move(made));
      *list = piece_lists_.back().get();
    }
    std::memcpy((*list)->host, pieces.data(), bytes);
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync((*list)->device.data(),
                                            (*list)->host, bytes,
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
      if (*aborted_) return Ended();
      if (looks < kLooksAtOnce) continue;
      if (control_ != nullptr && looks % kLooksForTheDead == 0) {
        // All ranks have started this call, so a rank that has left is not an
        // error.
        const ev::Status alive = control_->CheckRanks(/*call=*/-1);
        if (!alive.ok()) {
          // The rank may have completed its part just before it ended.
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

  const NcclLibrary* const nccl_;
  const int device_, rank_, num_ranks_;
  // Shared with events, which may outlive the carrier.
  const std::shared_ptr<std::atomic<bool>> aborted_ =
      std::make_shared<std::atomic<bool>>(false);
  // Not 0 once NCCL's kernels may have been aborted. In pinned memory, and as a
  // copy in GPU memory.
  int32_t* is_ended_ = nullptr;
  ev::gpu::DeviceBuffer is_ended_on_device_;
  cudaStream_t stream_ = nullptr;
  ev::gpu::SideStream own_;  // for what a rank sends to itself
  cudaEvent_t came_[2] = {nullptr, nullptr};
  std::mutex communicator_mu_;  // held by End; CheckRanks tries it
  NcclLibrary::Communicator* communicator_ = nullptr;
  std::unique_ptr<Carrier> control_;  // may be null
  std::unique_ptr<ev::gpu::DeviceBuffer> sent_, received_, sums_;
  Staging up_, down_;
  std::vector<std::unique_ptr<ev::gpu::DeviceBuffer>> outgrown_;
  std::vector<Staging> outgrown_staging_;
  std::vector<std::unique_ptr<PieceList>> piece_lists_;
};

const bool kRegistered =
    RegisterCarrier("nccl", CarrierKind{&Check, &MakeId, &NcclCarrier::Make});

}  // namespace
}  // namespace sok
