// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// GpuRows: a table's rows in the memory of this process's GPU or, beyond a
// budget, in pinned host memory (row_places.h). Implements GpuRowHome
// (rows/gpu_row_home.h). Handles, gradients and rows are copied
// through double-buffered pinned memory (base/gpu/work/transfer_ring.h), or
// directly if the caller has gradients or rows in pinned memory. Concurrent
// calls use different rings, so their copies overlap.
//
// MEMORY, on the device: the row's floats (RowShape), in pieces of up
// to 8 MiB (row_pieces.h; with a budget, of at most a sixteenth of it), and the
// default rows. Calls in flight use 4 MiB
// each, and what lookups and updates need (rows/gpu_step/step_call.h,
// ids/gpu/gpu_distinct.h). The key table (known_keys.h) and the pending
// counters (row_counters.h) have memory of their own.

#ifndef KERNELS_ENGINE_ROWS_GPU_GPU_ROWS_H_
#define KERNELS_ENGINE_ROWS_GPU_GPU_ROWS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/gpu/work/transfer_ring.h"
#include "kernels/engine/base/row_shape.h"
#include "kernels/engine/rows/gpu/new_rows.h"
#include "kernels/engine/rows/gpu/row_counters.h"
#include "kernels/engine/rows/gpu/row_events.h"
#include "kernels/engine/rows/gpu/row_pieces.h"
#include "kernels/engine/rows/gpu/row_places.h"
#include "kernels/engine/rows/gpu_row_home.h"

namespace ev {
namespace gpu {

class KnownKeys;  // known_keys.h
struct RowBatch;  // row_kernels.h

// Registers the function that GpuRows::StartStep calls. All its tables are
// GpuRows on 'device', which is current. A static initializer of the step's
// code (rows/gpu_step/step_call.cu) calls it; every program with rows on a GPU
// links that code. Returns true.
using GpuStepFactory = Status (*)(int device, Span<const GpuStepTable> tables,
                                  const DeviceStream* stream,
                                  std::shared_ptr<GpuStep>* step);
bool RegisterGpuStepFactory(GpuStepFactory factory);

class GpuRows : public GpuRowHome, public RowTiers {
 public:
  // See MakeGpuRowHome.
  static Status Make(const GpuRowHomeOptions& options,
                     std::unique_ptr<GpuRowHome>* rows);
  ~GpuRows() override;

  Status NewRow(RowHandle handle, int64_t default_row) override;
  Status NewKeyedRow(int64_t key, RowHandle handle,
                     int64_t default_row) override;
  Status Flush() override;
  Status Read(Span<const RowHandle> handles, int column, float* out) override;
  Status StartStep(Span<const GpuStepTable> tables, const DeviceStream* stream,
                   std::shared_ptr<GpuStep>* step) override;
  Status StartGradients(ConstFloats grads, int64_t num_samples,
                        std::unique_ptr<DeviceGradients>* put) override;
  Status BringGradients(ConstFloats grads, int64_t num_samples,
                        const DeviceStream& stream, void* out) override;
  Status SquaredNorms(Span<const RowHandle> handles, double* out) override;
  Status Write(Span<const RowHandle> handles, int column,
               const float* in) override;
  Status Apply(const RowRule& rule, Span<const RowHandle> handles,
               Span<const int> slot_columns, const float* grads,
               const uint64_t* salts) override;
  int64_t overflows() const override;
  Status Relayout(Span<const SlotShape> slots) override;
  bool keeps_counters() const override { return counters_ != nullptr; }
  bool has_counters() const override {
    return counters_ != nullptr && counters_->has_any();
  }
  Status TakeCounters(const TakeRowCounters& take) override;
  void ForgetKeys(Span<const int64_t> keys) override;
  void Forget(Span<const RowHandle> handles) override;
  void Clear() override;
  int64_t bytes() const override;

  RowTiers* tiers() override { return places_ != nullptr ? this : nullptr; }
  // Moves what it can while no other call is using the rows; otherwise nothing.
  Status Prefetch(Span<const RowHandle> handles) override;
  int TierOf(RowHandle handle) const override;
  TierStats tier_stats() const override;
  Status ReadWorth(RowHandle first, Span<uint32_t> worth) override;

  // --- For steps (rows/gpu_step/step_call.h) ---

  // Observations of steps about a table, for which later steps prepare.
  struct Hints {
    // True if a step has met an id that does not fit into int32. Until then,
    // steps copy the table's ids as int32.
    std::atomic<bool> has_wide_ids{false};
    // True if an update is expected, so that a step groups its occurrences
    // right after the pooling (rows/gpu_step/step_update.cu).
    std::atomic<bool> groups_early{false};
    // Lookups since the last update. Rows move to GPU memory after updates, or
    // after lookups if there are no updates.
    std::atomic<int> lookups{0};
  };

  // Returns the error if a failed call has left the rows in an unknown state.
  Status CheckUsable() const { return broken_; }
  int64_t dim() const { return shape_.dim(); }
  const RowShape& shape() const { return shape_; }
  PiecesView pieces() const;
  // Null if all rows are in GPU memory.
  const std::shared_ptr<RowPlaces>& places() const { return places_; }
  // Whether there is memory for rows beyond GPU memory.
  bool has_host_rows() const {
    return places_ != nullptr && places_->num_places() > pieces_->num_on_gpu();
  }
  RowCounters* counters() const {
    return counters_.get();
  }  // null if none is kept
  // [R, shape().offset(1)], as rows keep their values.
  const float* default_rows() const { return defaults_.as<float>(); }
  // The floats of a new row after its value.
  const float* new_slots() const { return new_slots_.as<float>(); }
  // In device memory: the number of rows with a value that rounding has made
  // infinite. Null if values are float32.
  unsigned long long* overflow_counter() const {  // NOLINT: for atomicAdd
    return overflows_.as<unsigned long long>();   // NOLINT
  }
  // Writes the hashes of keys, in device memory, to their rows, if rows have
  // one.
  Status LaunchHashes(const int64_t* keys, const RowHandle* handles, int64_t n,
                      StreamView stream) const;
  const std::shared_ptr<KnownKeys>& known() const { return known_; }
  RowEvents& events() { return events_; }
  NewRows& new_rows() { return new_rows_; }
  Hints& hints() { return hints_; }

 private:
  GpuRows(int device, const GpuRowHomeOptions& options);
  // key: key of the row; may be null.
  Status AddNew(const int64_t* key, RowHandle handle, int64_t default_row);
  // Like AddNew. REQUIRES: memory for the key is reserved in the key table.
  Status AddReserved(const int64_t* key, RowHandle handle, int64_t default_row);
  Status Create(const GpuRowHomeOptions& options);

  // Writes queued rows, makes the device current, runs body(ring), and waits
  // for the ring. WithDevice does the same without writing queued rows.
  Status WithRing(const std::function<Status(TransferRing*)>& body);
  Status WithDevice(const std::function<Status(TransferRing*)>& body);
  // Writes the rows, then the keys.
  Status WriteQueued(NewRows::Writing* writing, TransferRing* ring);
  Status WriteQueuedRows(NewRows::Writing* writing, TransferRing* ring);
  Status WriteQueuedKeys(NewRows::Writing* writing, TransferRing* ring);
  // Copies the slots of a new row to the device.
  static Status UploadNewSlots(const RowShape& shape, TransferRing* ring,
                               DeviceBuffer* to);
  // Moves all rows to new pieces of another width. An error leaves all rows in
  // *from, or sets broken_.
  Status MoveRows(RowPieces* from, RowPieces* to, const float* new_slots,
                  TransferRing* ring);
  // Moves pieces whose memory is too large to smaller memory, as far as there
  // is some. REQUIRES: no work on the rows is in flight.
  static void ShrinkPieces(RowPieces* pieces, TransferRing* ring);
  // Computes bytes_per_row for each row on the device and copies them to the
  // host, in chunks. Per chunk, work(batch, out) enqueues the computation; out
  // is in device memory. take(begin, n, bytes) gets the results of rows [begin,
  // begin + n) in host memory.
  Status BringDown(
      Span<const RowHandle> handles, size_t bytes_per_row,
      const std::function<void(int64_t, int64_t, const char*)>& take,
      const std::function<Status(const RowBatch&, char*, TransferRing*)>& work);
  // Copies handles, their floats, [N, width], and, unless null, their salts to
  // the device in chunks, and calls work(batch, floats, salts) for each chunk;
  // its pointers are device memory.
  Status SendUp(Span<const RowHandle> handles, int64_t width,
                const float* floats, const uint64_t* salts, TransferRing* ring,
                const std::function<Status(const RowBatch&, const float*,
                                           const uint64_t*)>& work);
  size_t turn_bytes() const;
  // Returns pieces without memory, for rows of 'stride' floats. rows_log2: -1,
  // or that of the pieces whose rows move to them.
  std::unique_ptr<RowPieces> NewPieces(int64_t stride, int rows_log2) const;
  // Returns these handles, which have no rows any more, to their own places.
  Status FreePlaces(Span<const RowHandle> handles);
  // Makes the device current and waits until no work of steps is in flight. For
  // calls that run alone.
  void WaitForSteps();

  const int device_;
  RowShape shape_;        // changed only by calls that run alone
  const int64_t budget_;  // bytes of rows in GPU memory; 0: all of them
  DeviceBuffer defaults_;
  DeviceBuffer new_slots_;
  DeviceBuffer overflows_;
  std::unique_ptr<RowPieces> pieces_;
  // Null if all rows are in GPU memory. Shared with steps in flight.
  const std::shared_ptr<RowPlaces> places_;
  std::unique_ptr<RowCounters> counters_;   // null if none is kept
  const std::shared_ptr<KnownKeys> known_;  // shared with steps in flight
  // Not OK if a failed call left the rows in an unknown state.
  Status broken_;

  RowEvents events_;
  NewRows new_rows_;
  Hints hints_;
  mutable std::mutex live_mu_;
  // Number of rows in each piece; a piece without rows is freed.
  std::vector<int64_t> live_;
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_GPU_ROWS_H_
