// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/gpu/gpu_rows.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/pinned_memory.h"
#include "kernels/engine/base/gpu/process_device.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/base/typed_columns.h"
#include "kernels/engine/optimizer/row_rule.h"
#include "kernels/engine/rows/gpu/gpu_gradients.h"
#include "kernels/engine/rows/gpu/known_keys.h"
#include "kernels/engine/rows/gpu/move_pieces.h"
#include "kernels/engine/rows/gpu/row_kernels.h"

namespace ev {
namespace gpu {
namespace {

constexpr size_t kTurnBytes = 2 << 20;
constexpr size_t kAlign = 256;

size_t Aligned(size_t bytes) { return (bytes + kAlign - 1) / kAlign * kAlign; }

const bool kRegistered = RegisterGpuRowHome(&GpuRows::Make);

GpuStepFactory& StepFactory() {
  static GpuStepFactory factory = nullptr;
  return factory;
}

}  // namespace

bool RegisterGpuStepFactory(GpuStepFactory factory) {
  StepFactory() = factory;
  return true;
}

Status GpuRows::Make(const GpuRowHomeOptions& options,
                     std::unique_ptr<GpuRowHome>* rows) {
  (void)kRegistered;
  int device = 0;
  EV_RETURN_IF_ERROR(ProcessDevice("rows in GPU memory need", &device));
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device));
  EV_RETURN_IF_ERROR(CheckDeviceRunsKernels());
  std::unique_ptr<GpuRows> made(new GpuRows(device, options));
  EV_RETURN_IF_ERROR(made->Create(options));
  OfferPinnedMemory(device);
  *rows = std::move(made);
  return Status::OK();
}

GpuRows::GpuRows(int device, const GpuRowHomeOptions& options)
    : device_(device),
      // Kernels access rows in vectors of four floats if the dim allows.
      shape_(options.dim, {}, options.dim % 4 == 0 ? 4 : 1, options.value_type,
             /*has_hash=*/options.value_type != FloatType::kFloat32),
      budget_(options.gpu_bytes),
      places_(budget_ == 0 ? nullptr : new RowPlaces(options.tier_strategy)),
      known_(new KnownKeys(device)) {}

GpuRows::~GpuRows() { WaitForSteps(); }

void GpuRows::WaitForSteps() {
  EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
  events_.WaitForAll();
}

Status GpuRows::StartStep(Span<const GpuStepTable> tables,
                          const DeviceStream* stream,
                          std::shared_ptr<GpuStep>* step) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  for (const GpuStepTable& table : tables) {
    EV_RETURN_IF_ERROR(static_cast<GpuRows*>(table.table)->CheckUsable());
  }
  if (StepFactory() == nullptr) {
    return Internal("the program has no code of GPU steps");
  }
  return StepFactory()(device_, tables, stream, step);
}

Status GpuRows::StartGradients(ConstFloats grads, int64_t num_samples,
                               std::unique_ptr<DeviceGradients>* put) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  return GpuGradients::Make(device_, dim(), grads, num_samples, put);
}

Status GpuRows::BringGradients(ConstFloats grads, int64_t num_samples,
                               const DeviceStream& stream, void* out) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  EV_RETURN_IF_ERROR(CheckIsOn(device_, grads.data(), "the gradient"));
  const cudaStream_t native = static_cast<cudaStream_t>(stream.native);
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      out, grads.data(), num_samples * dim() * FloatBytes(grads.type()),
      cudaMemcpyDeviceToHost, native));
  EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(native));
  return Status::OK();
}

Status GpuRows::Create(const GpuRowHomeOptions& options) {
  pieces_ = NewPieces(shape_.floats(), -1);
  if (options.keeps_counters) counters_.reset(new RowCounters);
  const int64_t num_defaults = options.default_rows.size() / dim();
  std::vector<float> defaults(num_defaults * shape_.offset(1));
  for (int64_t r = 0; r < num_defaults; ++r) {
    WriteNumbers(options.default_rows.data() + r * dim(), dim(),
                 ColumnOf(shape_, defaults.data() + r * shape_.offset(1), 0));
  }
  const size_t bytes = defaults.size() * sizeof(float);
  EV_RETURN_IF_ERROR(defaults_.Allocate(bytes, "default rows"));
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpy(defaults_.data(), defaults.data(), bytes,
                                     cudaMemcpyHostToDevice));
  if (shape_.has_hash()) {
    // A row without slots ends with a hash.
    const size_t rest = (shape_.floats() - shape_.offset(1)) * sizeof(float);
    EV_RETURN_IF_ERROR(new_slots_.Allocate(rest, "initial values of slots"));
    EV_CUDA_RETURN_IF_ERROR(cudaMemset(new_slots_.data(), 0, rest));
    EV_RETURN_IF_ERROR(
        overflows_.Allocate(sizeof(uint64_t), "the counter of overflows"));
    EV_CUDA_RETURN_IF_ERROR(cudaMemset(overflows_.data(), 0, sizeof(uint64_t)));
  }
  EV_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(nullptr));
  return Status::OK();
}

size_t GpuRows::turn_bytes() const {
  return std::max(kTurnBytes, kAlign + pieces_->stride() * sizeof(float));
}

Status GpuRows::WithDevice(const std::function<Status(TransferRing*)>& body) {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  // No row moves until the ring has finished.
  std::unique_ptr<RowPlaces::Use> use;
  if (places_ != nullptr) use.reset(new RowPlaces::Use(places_));
  std::unique_ptr<TransferRing> ring;
  EV_RETURN_IF_ERROR(TransferRing::Acquire(turn_bytes(), &ring));
  EV_RETURN_IF_ERROR(events_.Follow(ring->stream()));
  EV_RETURN_IF_ERROR(body(ring.get()));
  EV_RETURN_IF_ERROR(ring->Wait());
  TransferRing::Release(std::move(ring));
  return Status::OK();
}

Status GpuRows::WithRing(const std::function<Status(TransferRing*)>& body) {
  EV_RETURN_IF_ERROR(broken_);
  EV_RETURN_IF_ERROR(Flush());
  return WithDevice(body);
}

Status GpuRows::NewRow(RowHandle handle, int64_t default_row) {
  return AddNew(nullptr, handle, default_row);
}

Status GpuRows::NewKeyedRow(int64_t key, RowHandle handle,
                            int64_t default_row) {
  return AddNew(&key, handle, default_row);
}

Status GpuRows::AddNew(const int64_t* key, RowHandle handle,
                       int64_t default_row) {
  // The caller may hold a lock of the index, which no exception may pass.
  return CatchBadAlloc([&] {
    if (key == nullptr) return AddReserved(nullptr, handle, default_row);
    EV_RETURN_IF_ERROR(known_->Reserve());
    const Status status =
        CatchBadAlloc([&] { return AddReserved(key, handle, default_row); });
    if (!status.ok()) known_->Unreserve(1);
    return status;
  });
}

Status GpuRows::AddReserved(const int64_t* key, RowHandle handle,
                            int64_t default_row) {
  const size_t piece = handle >> pieces_->rows_log2();
  if (counters_ != nullptr && !counters_->Has(handle)) {
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    EV_RETURN_IF_ERROR(counters_->Reserve(handle));
  }
  if (places_ != nullptr && !places_->Has(handle)) {
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    EV_RETURN_IF_ERROR(places_->Reserve(handle));
  }
  std::unique_lock<std::mutex> lock(live_mu_);
  // A piece has memory as long as it has rows.
  if (live_.size() <= piece || live_[piece] == 0) {
    lock.unlock();
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    EV_RETURN_IF_ERROR(pieces_->Reserve(handle));
    lock.lock();
  }
  try {
    if (live_.size() <= piece) live_.resize(piece + 1, 0);
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("no memory to count the rows of a piece");
  }
  EV_RETURN_IF_ERROR(new_rows_.Add(key, handle, default_row));
  ++live_[piece];
  return Status::OK();
}

Status GpuRows::Flush() {
  if (!new_rows_.has_any()) return Status::OK();
  return CatchBadAlloc([&] {
    NewRows::Writing writing(&new_rows_);
    if (writing.queue().empty()) return Status::OK();
    // If it fails, the ring's destructor waits for what was enqueued.
    return WithDevice(
        [&](TransferRing* ring) { return WriteQueued(&writing, ring); });
  });
}

Status GpuRows::WriteQueued(NewRows::Writing* writing, TransferRing* ring) {
  EV_RETURN_IF_ERROR(WriteQueuedRows(writing, ring));
  return WriteQueuedKeys(writing, ring);
}

Status GpuRows::WriteQueuedKeys(NewRows::Writing* writing, TransferRing* ring) {
  const std::vector<NewRows::Key>& keys = writing->queue().keys;
  const int64_t keys_per_turn =
      (kTurnBytes - kAlign) / (sizeof(RowHandle) + sizeof(int64_t));
  const int64_t num_keys = keys.size();
  for (int64_t begin = 0; begin < num_keys; begin += keys_per_turn) {
    const int64_t n = std::min(keys_per_turn, num_keys - begin);
    TransferRing::Turn* turn = nullptr;
    EV_RETURN_IF_ERROR(ring->Next(&turn));
    const size_t handles_at = Aligned(n * sizeof(int64_t));
    int64_t* const these = reinterpret_cast<int64_t*>(turn->host);
    RowHandle* const handles =
        reinterpret_cast<RowHandle*>(turn->host + handles_at);
    for (int64_t i = 0; i < n; ++i) {
      these[i] = keys[begin + i].key;
      handles[i] = keys[begin + i].handle;
    }
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        turn->device, turn->host, handles_at + n * sizeof(RowHandle),
        cudaMemcpyHostToDevice, ring->stream()));
    const int64_t* const sent = reinterpret_cast<const int64_t*>(turn->device);
    const RowHandle* const rows =
        reinterpret_cast<const RowHandle*>(turn->device + handles_at);
    EV_RETURN_IF_ERROR(LaunchHashes(sent, rows, n, ring->stream()));
    EV_RETURN_IF_ERROR(known_->Put(sent, rows, n, ring->stream()));
    writing->WroteKeys(n);
    EV_RETURN_IF_ERROR(ring->End(turn));
  }
  return Status::OK();
}

Status GpuRows::WriteQueuedRows(NewRows::Writing* writing, TransferRing* ring) {
  const std::vector<NewRows::Row>& rows = writing->queue().rows;
  const int64_t total = rows.size();
  const int64_t per_turn =
      (kTurnBytes - kAlign) / (sizeof(RowHandle) + sizeof(int64_t));
  for (int64_t begin = 0; begin < total; begin += per_turn) {
    const int64_t n = std::min(per_turn, total - begin);
    TransferRing::Turn* turn = nullptr;
    EV_RETURN_IF_ERROR(ring->Next(&turn));
    const size_t defaults_at = Aligned(n * sizeof(RowHandle));
    RowHandle* handles = reinterpret_cast<RowHandle*>(turn->host);
    int64_t* default_rows =
        reinterpret_cast<int64_t*>(turn->host + defaults_at);
    for (int64_t i = 0; i < n; ++i) {
      handles[i] = rows[begin + i].handle;
      default_rows[i] = rows[begin + i].default_row;
    }
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        turn->device, turn->host, defaults_at + n * sizeof(int64_t),
        cudaMemcpyHostToDevice, ring->stream()));
    RowBatch batch;
    batch.rows = pieces();
    batch.handles = reinterpret_cast<const RowHandle*>(turn->device);
    batch.num_rows = n;
    batch.dim = shape_.offset(1);
    EV_RETURN_IF_ERROR(LaunchNewRows(
        batch, reinterpret_cast<const int64_t*>(turn->device + defaults_at),
        defaults_.as<float>(), new_slots(), ring->stream()));
    writing->WroteRows(n);
    EV_RETURN_IF_ERROR(ring->End(turn));
  }
  return Status::OK();
}

Status GpuRows::BringDown(
    Span<const RowHandle> handles, size_t bytes_per_row,
    const std::function<void(int64_t, int64_t, const char*)>& take,
    const std::function<Status(const RowBatch&, char*, TransferRing*)>& work) {
  const int64_t total = handles.size();
  if (total == 0) return Status::OK();
  return WithRing([&](TransferRing* ring) {
    const int64_t per_turn = std::max<int64_t>(
        1, (kTurnBytes - kAlign) / (bytes_per_row + sizeof(RowHandle)));
    // The last two turns, and the first row of the chunk of each turn.
    TransferRing::Turn* turns[2] = {nullptr, nullptr};
    int64_t begins[2] = {0, 0};
    const auto empty = [&](int k) {
      const int64_t n = std::min(per_turn, total - begins[k]);
      const size_t rows_at = Aligned(n * sizeof(RowHandle));
      take(begins[k], n, turns[k]->host + rows_at);
    };
    int k = 0;
    for (int64_t begin = 0; begin < total; begin += per_turn, k ^= 1) {
      const int64_t n = std::min(per_turn, total - begin);
      TransferRing::Turn* turn = nullptr;
      EV_RETURN_IF_ERROR(ring->Next(&turn));
      if (turns[k] != nullptr) empty(k);
      const size_t rows_at = Aligned(n * sizeof(RowHandle));
      std::memcpy(turn->host, handles.data() + begin, n * sizeof(RowHandle));
      EV_CUDA_RETURN_IF_ERROR(
          cudaMemcpyAsync(turn->device, turn->host, n * sizeof(RowHandle),
                          cudaMemcpyHostToDevice, ring->stream()));
      RowBatch batch;
      batch.rows = pieces();
      batch.handles = reinterpret_cast<const RowHandle*>(turn->device);
      batch.num_rows = n;
      batch.dim = dim();
      batch.type = shape_.value_type();
      EV_RETURN_IF_ERROR(work(batch, turn->device + rows_at, ring));
      EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
          turn->host + rows_at, turn->device + rows_at, n * bytes_per_row,
          cudaMemcpyDeviceToHost, ring->stream()));
      EV_RETURN_IF_ERROR(ring->End(turn));
      turns[k] = turn;
      begins[k] = begin;
    }
    // Takes the last two chunks, in the order in which they were sent.
    for (int last = 0; last < 2; ++last, k ^= 1) {
      if (turns[k] == nullptr) continue;
      EV_CUDA_RETURN_IF_ERROR(cudaEventSynchronize(turns[k]->done));
      empty(k);
    }
    return Status::OK();
  });
}

Status GpuRows::Read(Span<const RowHandle> handles, int column, float* out) {
  const int64_t width = shape_.width(column);
  return BringDown(
      handles, width * sizeof(float),
      [&](int64_t begin, int64_t n, const char* rows) {
        std::memcpy(out + begin * width, rows, n * width * sizeof(float));
      },
      [&](RowBatch batch, char* rows, TransferRing* ring) {
        batch.dim = width;
        batch.type = shape_.type(column);
        return LaunchReadRows(batch, shape_.offset(column),
                              reinterpret_cast<float*>(rows), ring->stream());
      });
}

Status GpuRows::SquaredNorms(Span<const RowHandle> handles, double* out) {
  return BringDown(
      handles, sizeof(double),
      [&](int64_t begin, int64_t n, const char* squares) {
        std::memcpy(out + begin, squares, n * sizeof(double));
      },
      [&](const RowBatch& batch, char* squares, TransferRing* ring) {
        return LaunchSquaredNorms(batch, reinterpret_cast<double*>(squares),
                                  ring->stream());
      });
}

Status GpuRows::SendUp(Span<const RowHandle> handles, int64_t width,
                       const float* floats, const uint64_t* salts,
                       TransferRing* ring,
                       const std::function<Status(const RowBatch&, const float*,
                                                  const uint64_t*)>& work) {
  const int64_t total = handles.size();
  const size_t row_bytes = width * sizeof(float);
  const size_t salt_bytes = salts == nullptr ? 0 : sizeof(uint64_t);
  const int64_t per_turn =
      std::max<int64_t>(1, (kTurnBytes - 2 * kAlign) /
                               (row_bytes + salt_bytes + sizeof(RowHandle)));
  const bool direct = IsPinned(floats);
  for (int64_t begin = 0; begin < total; begin += per_turn) {
    const int64_t n = std::min(per_turn, total - begin);
    const size_t salts_at = Aligned(n * sizeof(RowHandle));
    const size_t floats_at = Aligned(salts_at + n * salt_bytes);
    const size_t float_bytes = n * row_bytes;
    TransferRing::Turn* turn = nullptr;
    EV_RETURN_IF_ERROR(ring->Next(&turn));
    std::memcpy(turn->host, handles.data() + begin, n * sizeof(RowHandle));
    if (salts != nullptr) {
      std::memcpy(turn->host + salts_at, salts + begin, n * salt_bytes);
    }
    if (!direct) {
      std::memcpy(turn->host + floats_at, floats + begin * width, float_bytes);
    }
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        turn->device, turn->host, direct ? floats_at : floats_at + float_bytes,
        cudaMemcpyHostToDevice, ring->stream()));
    if (direct) {
      EV_CUDA_RETURN_IF_ERROR(
          cudaMemcpyAsync(turn->device + floats_at, floats + begin * width,
                          float_bytes, cudaMemcpyHostToDevice, ring->stream()));
    }
    RowBatch batch;
    batch.rows = pieces();
    batch.handles = reinterpret_cast<const RowHandle*>(turn->device);
    batch.num_rows = n;
    batch.dim = width;
    EV_RETURN_IF_ERROR(
        work(batch, reinterpret_cast<const float*>(turn->device + floats_at),
             salts == nullptr
                 ? nullptr
                 : reinterpret_cast<const uint64_t*>(turn->device + salts_at)));
    EV_RETURN_IF_ERROR(ring->End(turn));
  }
  return Status::OK();
}

Status GpuRows::Write(Span<const RowHandle> handles, int column,
                      const float* in) {
  if (handles.empty()) return Status::OK();
  return WithRing([&](TransferRing* ring) {
    return SendUp(handles, shape_.width(column), in, nullptr, ring,
                  [&](RowBatch batch, const float* floats, const uint64_t*) {
                    batch.type = shape_.type(column);
                    return LaunchWriteRows(batch, shape_.offset(column), floats,
                                           ring->stream());
                  });
  });
}

Status GpuRows::Apply(const RowRule& rule, Span<const RowHandle> handles,
                      Span<const int> slot_columns, const float* grads,
                      const uint64_t* salts) {
  if (handles.empty()) return Status::OK();
  std::vector<int64_t> offsets;
  for (int column : slot_columns) offsets.push_back(shape_.offset(1 + column));
  return WithRing([&](TransferRing* ring) {
    return SendUp(handles, dim(), grads, salts, ring,
                  [&](RowBatch batch, const float* floats,
                      const uint64_t* salts_of_batch) {
                    batch.type = shape_.value_type();
                    return LaunchApplyRule(
                        rule.name(), rule.hyper(), batch, offsets, floats,
                        RowRounding{salts_of_batch, overflow_counter()},
                        ring->stream());
                  });
  });
}

// Waits on a copy of the list, as TakeCounters does. 0 after an error of the
// GPU itself, which the next call returns.
int64_t GpuRows::overflows() const {
  if (overflow_counter() == nullptr) return 0;
  const auto read = [&](uint64_t* count) {
    EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
    for (const std::shared_ptr<DeviceEvent>& event : events_.in_flight()) {
      EV_RETURN_IF_ERROR(event->Wait());
    }
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpy(count, overflow_counter(),
                                       sizeof(*count), cudaMemcpyDeviceToHost));
    return Status::OK();
  };
  uint64_t count = 0;
  const Status status = CatchBadAlloc([&] { return read(&count); });
  return status.ok() ? static_cast<int64_t>(count) : 0;
}

Status GpuRows::LaunchHashes(const int64_t* keys, const RowHandle* handles,
                             int64_t n, StreamView stream) const {
  if (!shape_.has_hash()) return Status::OK();
  RowBatch batch;
  batch.rows = pieces();
  batch.handles = handles;
  batch.num_rows = n;
  return LaunchWriteHashes(batch, keys, stream);
}

Status GpuRows::UploadNewSlots(const RowShape& shape, TransferRing* ring,
                               DeviceBuffer* to) {
  std::vector<float> row(shape.floats());
  shape.FillSlots(0, row.data());
  const int64_t first = shape.offset(1);
  const size_t bytes = (row.size() - first) * sizeof(float);
  EV_RETURN_IF_ERROR(to->Allocate(bytes, "initial values of slots"));
  if (bytes == 0) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(to->data(), row.data() + first, bytes,
                                          cudaMemcpyHostToDevice,
                                          ring->stream()));
  return ring->Wait();
}

Status GpuRows::MoveRows(RowPieces* from, RowPieces* to, const float* new_slots,
                         TransferRing* ring) {
  // For MovePieces.
  struct Steps {
    RowPieces* from;
    RowPieces* to;
    RowChange change;
    const float* new_slots;
    TransferRing* ring;
    DeviceBuffer spare;

    Status Copy(const RowPieces& source, const RowPieces& target,
                size_t piece) {
      change.before = source.stride();
      change.after = target.stride();
      EV_RETURN_IF_ERROR(
          LaunchRelayout(change, source.address(piece), target.address(piece),
                         source.rows_per_piece(), new_slots, ring->stream()));
      return ring->Wait();
    }
    Status Move(size_t piece) {
      EV_RETURN_IF_ERROR(
          to->Reserve(static_cast<RowHandle>(piece << to->rows_log2())));
      return Copy(*from, *to, piece);
    }
    void FreeOld(size_t piece) { from->Free(piece); }
    void DropNew(size_t piece) { spare = to->Take(piece); }
    Status MoveBack(size_t piece) {
      EV_RETURN_IF_ERROR(from->Swap(piece, &spare));
      EV_RETURN_IF_ERROR(Copy(*to, *from, piece));
      DropNew(piece);
      return Status::OK();
    }
  };
  std::vector<size_t> pieces;
  const std::vector<float*> old = from->pieces();
  for (size_t p = 0; p < old.size(); ++p) {
    if (old[p] != nullptr) pieces.push_back(p);
  }
  // Made now, since memory may be short when it is needed.
  Status rows_lost = FailedPrecondition(
      "rows were lost when slots were added: initialize the variable again, or "
      "restore a checkpoint");
  Status lost;
  Status status;
  {
    Steps steps{
        from,
        to,
        {0, 0, shape_.offset(1 + shape_.num_slots()),
         shape_.has_hash() ? RowShape::kHashFloats : 0, shape_.offset(1)},
        new_slots,
        ring,
        {}};
    status = MovePieces(Span<const size_t>(pieces), &steps, &lost);
  }
  if (!lost.ok()) {
    broken_ = std::move(rows_lost);
    CatchBadAlloc([&] {
      broken_ = FailedPrecondition(
          "rows were lost when slots were added (" + status.message() + ", " +
          lost.message() +
          "): initialize the variable again, or restore a checkpoint");
      return Status::OK();
    });
  } else if (!status.ok()) {
    ShrinkPieces(from, ring);
  }
  return status;
}

void GpuRows::ShrinkPieces(RowPieces* pieces, TransferRing* ring) {
  // An error leaves the rows whole in memory that is too large.
  CatchBadAlloc([&] {
    const size_t count = pieces->pieces().size();
    for (size_t p = 0; p < count; ++p) {
      if (pieces->allocated_bytes(p) <= pieces->piece_bytes()) continue;
      DeviceBuffer smaller;
      EV_RETURN_IF_ERROR(pieces->Allocate(p, "rows", &smaller));
      EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
          smaller.data(), pieces->address(p), smaller.size_bytes(),
          cudaMemcpyDefault, ring->stream()));
      EV_RETURN_IF_ERROR(ring->Wait());
      EV_RETURN_IF_ERROR(pieces->Swap(p, &smaller));
    }
    return Status::OK();
  });
}

Status GpuRows::Relayout(Span<const SlotShape> slots) {
  WaitForSteps();
  return WithRing([&](TransferRing* ring) {
    const int64_t before = pieces_->stride();
    RowShape shape = shape_.With(slots);
    const int64_t after = shape.floats();
    DeviceBuffer new_slots;
    EV_RETURN_IF_ERROR(UploadNewSlots(shape, ring, &new_slots));
    // A new slot may fit into the padding of the last one.
    if (shape.num_slots() == shape_.num_slots()) {
      new_slots_ = std::move(new_slots);
      shape_ = std::move(shape);
      return Status::OK();
    }
    const std::vector<float*> old = pieces_->pieces();
    const int64_t count =
        old.size() - std::count(old.begin(), old.end(), nullptr);
    std::unique_ptr<RowPieces> fresh =
        NewPieces(after, count != 0 ? pieces_->rows_log2() : -1);
    if (count != 0) {
      size_t free_bytes = 0, total_bytes = 0;
      EV_CUDA_RETURN_IF_ERROR(cudaMemGetInfo(&free_bytes, &total_bytes));
      // MovePieces keeps the last two pieces in memory twice.
      int64_t needed = std::min<int64_t>(count, 2) * pieces_->piece_bytes();
      for (size_t p = 0; p < old.size(); ++p) {
        if (old[p] == nullptr) continue;
        if (!fresh->IsOnHost(p)) needed += fresh->piece_bytes();
        if (!pieces_->IsOnHost(p)) needed -= pieces_->piece_bytes();
      }
      if (needed > static_cast<int64_t>(free_bytes)) {
        return ResourceExhausted(
            "widening rows from " + std::to_string(before) + " to " +
            std::to_string(after) + " floats needs " + std::to_string(needed) +
            " bytes of device memory, " + std::to_string(free_bytes) + " of " +
            std::to_string(total_bytes) + " are free");
      }
    }
    EV_RETURN_IF_ERROR(
        MoveRows(pieces_.get(), fresh.get(), new_slots.as<float>(), ring));
    if (count == 0) live_.clear();
    new_slots_ = std::move(new_slots);
    pieces_ = std::move(fresh);
    shape_ = std::move(shape);
    return Status::OK();
  });
}

Status GpuRows::TakeCounters(const TakeRowCounters& take) {
  if (!has_counters()) return Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  // Waits on a copy of the list, so that lookups can continue.
  for (const std::shared_ptr<DeviceEvent>& event : events_.in_flight()) {
    EV_RETURN_IF_ERROR(event->Wait());
  }
  return counters_->Take(take);
}

void GpuRows::ForgetKeys(Span<const int64_t> keys) {
  WaitForSteps();
  known_->Unreserve(new_rows_.ForgetKeys(keys));
  const Status status = CatchBadAlloc([&] { return known_->Erase(keys); });
  // Only an error of the GPU itself, since Erase needs no memory. A key left in
  // the table would lead to another key's row.
  if (!status.ok() && broken_.ok()) broken_ = status;
}

void GpuRows::Forget(Span<const RowHandle> handles) {
  WaitForSteps();
  // A reused handle must not be in the queue twice.
  new_rows_.ForgetRows(handles);
  if (places_ != nullptr) {
    const Status status = CatchBadAlloc([&] { return FreePlaces(handles); });
    // Only an error of the GPU itself, or no memory for a first transfer.
    if (!status.ok() && broken_.ok()) broken_ = status;
  }
  for (RowHandle handle : handles) {
    const size_t piece = handle >> pieces_->rows_log2();
    if (--live_[piece] == 0) pieces_->Free(piece);
  }
  if (places_ != nullptr &&
      std::all_of(live_.begin(), live_.end(),
                  [](int64_t rows) { return rows == 0; })) {
    places_->Clear();
  }
}

void GpuRows::Clear() {
  WaitForSteps();
  known_->Clear();
  new_rows_.Clear();
  live_.clear();
  pieces_->Clear();
  if (places_ != nullptr) places_->Clear();
  if (counters_ != nullptr) counters_->Clear();
  broken_ = Status::OK();
}

int64_t GpuRows::bytes() const {
  return pieces_->bytes() + known_->bytes() +
         (places_ == nullptr ? 0 : places_->bytes()) +
         (counters_ == nullptr ? 0 : counters_->bytes()) +
         static_cast<int64_t>(defaults_.size_bytes() + new_slots_.size_bytes());
}

}  // namespace gpu
}  // namespace ev
