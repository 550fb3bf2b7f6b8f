// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// GpuRowHome in the memory of this process's GPU (rows/gpu_row_home.h). Handles
// and gradients go up, and rows come back, through pinned buffers of 2 MiB that
// take turns (base/gpu/transfer_lane.h); calls made at once use lanes of their
// own and overlap on the link.
//
// MEMORY, on the device: 4 * dim * (1 + slots) bytes per row in pieces of up to
// 8 MiB, the default rows, 4 MiB per call under way, what lookups and updates
// hold (gpu_distinct.h, gpu_pooling.cc, gpu_pooled_update.cc), the keys that
// are known (known_keys.h), and the tally (row_tally.h).

#ifndef KERNELS_ENGINE_ROWS_GPU_GPU_ROWS_H_
#define KERNELS_ENGINE_ROWS_GPU_GPU_ROWS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/engine/base/gpu/begun_events.h"
#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/gpu/device_event.h"
#include "kernels/engine/base/gpu/transfer_lane.h"
#include "kernels/engine/rows/gpu/row_pieces.h"
#include "kernels/engine/rows/gpu/row_tally.h"
#include "kernels/engine/rows/gpu_row_home.h"

namespace ev {
namespace gpu {

class KnownKeys;  // known_keys.h
struct RowBatch;  // row_kernels.h

// Makes steps of tables that are GpuRows on this device, which is current.
// Called by a static initializer of the code of steps
// (rows/gpu_step/step_call.h), which every program with rows on a GPU links.
// Returns true.
using GpuStepFactory = Status (*)(int device, Span<const GpuStepTable> tables,
                                  const DeviceStream* stream,
                                  std::shared_ptr<GpuStep>* step);
bool RegisterGpuStepFactory(GpuStepFactory factory);

class GpuRows : public GpuRowHome {
 public:
  // See MakeGpuRowHome.
  static Status Make(const GpuRowHomeOptions& options,
                     std::unique_ptr<GpuRowHome>* rows);
  ~GpuRows() override;

  Status NewRow(RowHandle handle, int64_t default_row) override;
  Status NewKeyedRow(int64_t key, RowHandle handle,
                     int64_t default_row) override;
  Status Flush() override;
  Status RenewRow(RowHandle handle, int64_t default_row) override;
  Status Read(Span<const RowHandle> handles, int column, float* out) override;
  Status StartStep(Span<const GpuStepTable> tables, const DeviceStream* stream,
                   std::shared_ptr<GpuStep>* step) override;
  // These use a lane of base/gpu/work_lane.h until they are waited for.
  Status StartPool(const DevicePooling& pooling, float* out,
                   std::unique_ptr<DeviceWork>* work) override;
  Status StartGradients(const float* grads, int64_t num_samples,
                        std::unique_ptr<DeviceGradients>* put) override;
  Status StartPooledUpdate(const DevicePooledUpdate& update,
                           std::unique_ptr<DeviceWork>* work) override;
  Status SquaredNorms(Span<const RowHandle> handles, double* out) override;
  Status Write(Span<const RowHandle> handles, int column,
               const float* in) override;
  Status WriteWhole(Span<const RowHandle> handles,
                    const FillRows& fill) override;
  Status ReadWhole(Span<const RowHandle> handles,
                   const TakeRows& take) override;
  Status Apply(const RowRule& rule, Span<const RowHandle> handles,
               Span<const int> slot_columns, const float* grads) override;
  Status Relayout(Span<const float> initial_values) override;
  bool keeps_tally() const override { return tally_ != nullptr; }
  bool has_tally() const override {
    return tally_ != nullptr && tally_->has_any();
  }
  Status TakeTally(const TakeRowTally& take) override;
  void ForgetKeys(Span<const int64_t> keys) override;
  void Forget(Span<const RowHandle> handles) override;
  void Clear() override;
  int64_t bytes() const override;

  // For steps (step_call.h), whose work goes on after the call that began it.
  // An error of rows of which nothing is known.
  Status CheckUsable() const { return broken_; }
  int64_t dim() const { return dim_; }
  PiecesView pieces() const { return pieces_->view(); }
  RowTally* tally() const { return tally_.get(); }  // null: it keeps none
  const float* default_rows() const { return defaults_.as<float>(); }
  const std::shared_ptr<KnownKeys>& known() const { return known_; }
  // What steps began on the rows: what a stream is given for these rows comes
  // after all of it.
  BegunEvents begun();
  Status Follow(StreamView stream);  // the stream comes after it
  // What is begun from now on comes after the event too. Of what was begun
  // before only 'behind', which the event comes after, is forgotten: another
  // thread may have begun something since then.
  void BeginAfter(std::shared_ptr<DeviceEvent> event,
                  const BegunEvents& behind);

  // New rows and keys that are queued, taken by a step that writes them. From
  // Take to Done or GiveBack nothing else writes new ones, and calls on the
  // rows wait. REQUIRES that several rows' are taken in the order of their
  // addresses.
  struct Queued {
    RowHandle handle;
    int64_t default_row;
  };
  struct Key {
    int64_t key;
    RowHandle handle;
  };
  struct Queue {
    std::vector<Queued> rows;
    std::vector<Key> keys;
  };
  bool has_queued() const {
    return has_queued_.load(std::memory_order_acquire);
  }
  std::unique_lock<std::mutex> Take(Queue* queue);
  // REQUIRE the lock of Take. Written behind what 'event' is behind, as are
  // 'behind'; null: and waited for.
  void Done(std::shared_ptr<DeviceEvent> event, const BegunEvents& behind);
  void GiveBack(const Queue& queue);
  int64_t num_slots() const { return num_slots_; }
  const float* initial_values() const { return initial_values_.as<float>(); }
  // Whether an id was met that 32 bits do not hold. Steps send the ids of a
  // table as int32 until then.
  bool has_wide_ids() const {
    return has_wide_ids_.load(std::memory_order_relaxed);
  }
  void MeetWideIds() { has_wide_ids_.store(true, std::memory_order_relaxed); }
  // Whether a step's occurrences are grouped as soon as its rows are pooled,
  // for an update that is expected (step_groups.h).
  bool groups_early() const {
    return groups_early_.load(std::memory_order_relaxed);
  }
  void set_groups_early(bool early) {
    groups_early_.store(early, std::memory_order_relaxed);
  }
  // Event recorded after the last insertion of keys by a step; null if there is
  // none. A lookup must wait for it, since a key that it does not find has no
  // row.
  std::shared_ptr<DeviceEvent> last_keys();

 private:
  GpuRows(int device, int64_t dim);
  // key: null, or the row's.
  Status QueueNew(const int64_t* key, RowHandle handle, int64_t default_row);
  // The same when the key table has room for the key.
  Status QueueReserved(const int64_t* key, RowHandle handle,
                       int64_t default_row);
  Status Create(const GpuRowHomeOptions& options);

  // Runs body(lane) with the device current and new rows written; afterwards
  // nothing is under way on the lane.
  Status WithLane(const std::function<Status(TransferLane*)>& body);
  Status WithDevice(const std::function<Status(TransferLane*)>& body);
  Status WriteQueued(const Queue& queue, TransferLane* lane);
  Status UploadInitialValues(Span<const float> values, TransferLane* lane);
  // Sends stretches of handles up; work(batch, out on the device) makes
  // bytes_per_row of each row, which come down; take(begin, n, bytes) finds
  // them.
  Status BringDown(
      Span<const RowHandle> handles, size_t bytes_per_row,
      const std::function<void(int64_t, int64_t, const char*)>& take,
      const std::function<Status(const RowBatch&, char*, TransferLane*)>& work);
  // Sends stretches of handles and their floats [N, width] up; work(batch, data
  // on the device) is called for each. They are at 'pinned', or where that is
  // null fill makes them.
  Status SendUp(
      Span<const RowHandle> handles, int64_t width, const float* pinned,
      const FillRows& fill, TransferLane* lane,
      const std::function<Status(const RowBatch&, const float*)>& work);
  // The same of floats [N, dim] that are anywhere.
  Status SendUpAll(
      Span<const RowHandle> handles, const float* floats, TransferLane* lane,
      const std::function<Status(const RowBatch&, const float*)>& work);
  size_t turn_bytes() const;
  // Before a call that is made alone: nothing that steps began is under way.
  void WaitForSteps();

  const int device_;
  const int64_t dim_;
  int num_slots_ = 0;
  DeviceBuffer defaults_;
  DeviceBuffer initial_values_;
  std::unique_ptr<RowPieces> pieces_;
  std::unique_ptr<RowTally> tally_;         // null: it keeps none
  const std::shared_ptr<KnownKeys> known_;  // batches under way have it too
  // Not OK when a failed call left rows of which nothing is known.
  Status broken_;

  std::mutex after_mu_;
  BegunEvents after_;                  // of steps, in any order
  std::shared_ptr<DeviceEvent> keys_;  // of the last keys; null: none

  std::mutex flush_mu_;
  std::mutex queue_mu_;
  Queue queue_;
  std::vector<int64_t>
      live_;  // rows of each piece; without any it is given back
  // Whether what was queued may be unwritten, also while it is being written.
  std::atomic<bool> has_queued_{false};
  std::atomic<bool> has_wide_ids_{false};
  std::atomic<bool> groups_early_{false};
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_GPU_ROWS_H_
