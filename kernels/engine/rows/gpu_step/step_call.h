// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepCall: GpuStep on a GPU.
//
// The ids of all tables are copied to the GPU through pinned memory, as one
// block or as one block per wave. A WAVE is a range of tables that is looked up
// and pooled while the ids of later waves are copied (step_waves.cu). int64 ids
// are copied as int32 until a table gets an id that does not fit (step_ids.cc).
// Ids in pinned memory are copied directly; ids in GPU memory are read in
// place, and copied for the update. Kernels look up the ids in the key tables
// and pool the rows (step_lookup.h). The ids without a row are copied to the
// host when an update needs them. The update groups occurrences by row
// (step_groups.h) and applies the rule with the kernels of gpu_step/.
//
// MEMORY, from Make until destruction, in bytes:
//
//   per id: 16 on the GPU and 12 pinned. 4 less of each if it is copied as
//     int32; 4 more of each if ids have occurrence counts; 8 more pinned if
//     some ids were not put; 8 more on the GPU if rows have places.
//   if rows are in host memory: 16 per id, the memory of a sort, and up to
//     kMaxStagedBytes of rows (step_fetch.h), on the GPU.
//   per sample: 4 on the GPU and 4 pinned. 4 more on the GPU if a combiner
//     divides.
//   outputs in host memory: their size on the GPU, and again pinned unless they
//     are in pinned memory.
//   per id, for an update: 40 on the GPU, 16 more if rows are in host memory;
//   12 pinned for tables with lists_rows
//     (step_rows.h), and 4 pinned if the update has handles. Held from the
//     update on, or from the pooling on if an update is expected.
//
// All of it is memory of contexts (base/gpu/work/work_context.h), except 16
// bytes per id of a table in the step in which it gets its first wide id: 8 on
// the GPU and 8 pageable.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_CALL_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_CALL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/gpu/device_event.h"
#include "kernels/engine/base/gpu/work/staged_upload.h"
#include "kernels/engine/base/gpu/work/work_context.h"
#include "kernels/engine/rows/gpu/gpu_rows.h"
#include "kernels/engine/rows/gpu/known_keys.h"
#include "kernels/engine/rows/gpu/row_places.h"
#include "kernels/engine/rows/gpu_step.h"
#include "kernels/engine/rows/gpu_step/step_lookup.h"
#include "kernels/engine/rows/gpu_step/wave_queue.h"

namespace ev {
namespace gpu {

class SideStream;  // base/gpu/side_stream.h
class StepGroups;  // step_groups.h
struct StepTable;  // gpu_step/step_plan.cuh

class StepCall : public GpuStep, public std::enable_shared_from_this<StepCall> {
 public:
  // tables: all are GpuRows on this device. REQUIRES: the device is current.
  // ResourceExhausted: not enough memory. InvalidArgument: ids or samples are
  // in another GPU's memory.
  static Status Make(int device, Span<const GpuStepTable> tables,
                     const DeviceStream* stream,
                     std::shared_ptr<GpuStep>* step);
  // Waits for outputs in host memory that were not taken and, if Settle was not
  // called, until the GPU has read the caller's ids.
  ~StepCall() override;

  bool needs_put(int t) const override {
    return tables_[t].where == IdsAre::kPut;
  }
  Status Put(int t, int64_t begin, Span<const int64_t> ids) override;
  Status Put(int t, int64_t begin, Span<const int32_t> ids) override;
  Status Start(int t, Span<const int32_t> offsets) override;
  Status Pool() override;
  Status TakeOutput(int t) override;
  std::function<void()> TakeRest() override;
  Status Settle(int t, GpuStepUnknown* unknown) override;
  Status BringIds(int t, GpuStepIds* ids) override;
  bool CanUpdate(const std::string& rule,
                 Span<const int> slot_columns) const override;
  Status Update(const std::string& rule, Span<const float> hyper,
                Span<const GpuStepUpdate> updates, const DeviceStream* stream,
                std::unique_ptr<GpuMetaUpdates>* meta_updates) override;

 private:
  enum class IdsAre {
    kPut,     // copied by Put
    kPinned,  // in the caller's pinned memory, which the GPU reads
    kOnGpu,   // in GPU memory
  };
  // The int64 ids of a table whose ids do not all fit into int32. Not context
  // memory, since a table needs it in one step only. 'on_device' is freed
  // first; that waits for the copy that reads 'on_host'.
  struct WideIds {
    std::vector<int64_t> on_host;
    DeviceBuffer on_device;
  };
  struct Table {
    GpuRows* rows = nullptr;  // valid while the caller holds the table locks
    std::shared_ptr<KnownKeys> known;
    // Until the lookup is enqueued, or the step fails: keeps rows from moving.
    // Null if the table's rows do not move.
    std::shared_ptr<const RowPlaces::Use> use;
    int64_t num_ids = 0, num_samples = 0;
    int64_t dim = 0;
    Combiner combiner = Combiner::kSum;
    FloatType out_type = FloatType::kFloat32;
    MutableFloats out;         // in GPU memory, or host_out if it is pinned
    void* host_out = nullptr;  // in host memory; null if the step has a stream
    bool is_host_out_pinned = false;
    size_t out_at = 0;  // byte offset in the context's outputs
    std::vector<GpuStepPiece> pieces;
    int wave = 0;
    bool is_narrow = false;      // ids on the GPU are int32
    bool are_handles = false;    // as GpuStepTable
    bool has_host_rows = false;  // when the step was made
    // True if the caller's int64 ids are copied to the block of ids as int32.
    // If one does not fit, all are in 'wide' instead.
    bool narrows = false;
    std::unique_ptr<WideIds> wide;
    IdsAre where = IdsAre::kPut;
    int64_t first_default = 0, num_defaults = 0;  // as GpuStepTable
    std::shared_ptr<const void> ids_owner;
    const int64_t* occurrences = nullptr;  // as GpuStepTable; null after Start
    bool has_occurrences = false;
    // The caller's ids and samples; valid until Wait has returned, or as long
    // as ids_owner lives.
    const void* given = nullptr;
    const int64_t* splits = nullptr;
    const int64_t* indices = nullptr;
    // True if each sample is exactly one id. Set only for tables[first], when
    // all tables have been started; for samples in GPU memory by Wait.
    bool one_id_each = true;
    int64_t id_begin = 0, sample_begin = 0;  // in the arrays of the step
    // The first table with these samples, and the index of their first offset.
    int first = 0;
    int64_t offsets_at = 0;
    size_t ids_at = 0;  // byte offset in the block of ids
    // Positions in the step of the ids without a row, ascending.
    Span<const uint32_t> unknown;
    // The ids at these positions; null: read them from the block of ids.
    const int64_t* unknown_keys = nullptr;
    // The distinct unknown keys, the occurrences of each, and for each of the
    // positions the index of its key.
    std::vector<int64_t> keys;
    std::vector<int32_t> key_of, counts;
    bool is_settled = false;

    size_t id_width() const {
      return is_narrow ? sizeof(int32_t) : sizeof(int64_t);
    }
    size_t id_bytes() const { return num_ids * id_width(); }
    size_t out_bytes() const {
      return num_samples * dim * FloatBytes(out_type);
    }
  };
  // Tables [begin, end). Launched when their ids, and those of earlier waves,
  // have been put (step_waves.cu).
  struct Wave {
    int begin = 0, end = 0;
    // Byte range, in the block of ids, of their ids that are put.
    size_t put_at = 0, put_bytes = 0;
    std::unique_ptr<StagedUpload> upload;
    // Range of their offsets in the offsets of all tables.
    int64_t offsets_at = 0, num_offsets = 0;
    size_t tables_at = 0;  // byte offset in the pinned descriptions of waves
  };
  // Handles of a table's unknown keys, [K].
  struct NewHandles {
    const Table* table;
    Span<const RowHandle> handles;
  };

  explicit StepCall(int device);
  Status Create(Span<const GpuStepTable> tables);
  Status AddTable(const GpuStepTable& given);
  // Sets on_host_ and on_device_.
  Status LayOut();

  // The occurrences of the table's ids, [N], in host and in GPU memory; null: 1
  // each.
  const int32_t* HostOccurrences(const Table& table) const {
    return table.has_occurrences
               ? OnHost<int32_t>(on_host_.occurrences) + table.id_begin
               : nullptr;
  }
  const int32_t* DeviceOccurrences(const Table& table) const {
    return table.has_occurrences
               ? OnDevice<int32_t>(on_device_.occurrences) + table.id_begin
               : nullptr;
  }
  // Writes the offsets of the table's samples, [B + 1].
  Status Offsets(const Table& table, int32_t* offsets) const;

  // True if all ids were put, so that HostIds has those of all tables.
  bool all_put() const { return !are_on_device_ && !are_pinned_; }
  const char* HostIds(const Table& table) const;
  char* DeviceIds(const Table& table) const;
  char* UploadTo(const Wave& wave) const;
  // Copies a table's ids again, as int64, because one does not fit into int32.
  Status PutWide(Table* table);
  // Copies ids in the caller's pinned memory to the GPU.
  Status SendPinned();
  // Locks the key tables of tables [begin, end), in the same order in all
  // steps. Kernels that read a key table must be enqueued under its lock.
  using KnownLocks = std::vector<std::unique_lock<std::mutex>>;
  KnownLocks LockKnown(int begin, int end) const;
  // Divides the tables into waves, and decides whether their lookup and pooling
  // are launched together (pools_early_).
  Status CutIntoWaves();
  void PlaceIds();
  StreamView upload_stream() const;
  // Enqueues the work of a wave whose tables have all been started.
  Status Launch(const Wave& wave);
  Status LaunchWave(const Wave& wave);
  // Enqueues the lookup of all tables, without the pooling.
  Status LaunchFind();
  // Enqueues the check of samples in GPU memory.
  Status FindSamples();
  // Enqueues the copy of the number of unknown ids to the host.
  Status BringCounter();
  // Waits for the lookup and copies the unknown ids to the host, once.
  Status TakeOnce();
  Status Take();
  // Waits until the GPU has read pinned ids without an owner, and checked the
  // samples in GPU memory. Unimplemented: they are not sorted.
  Status WaitForInput();
  Status TakeUnknown();
  // Fills unknown_, and unknown_keys_ if keys, [count], is not null.
  void PutInOrder(Span<const uint32_t> positions, const int64_t* keys);
  Status FindKeysOfUnknown(Table* table);
  bool OneIdEach(const Table& table) const {
    return tables_[table.first].one_id_each;
  }
  // Overwrites the handles of unknown ids with the handles that their keys have
  // got since the lookup.
  Status SetHandles(const std::vector<NewHandles>& all, StreamView stream);
  // Overwrites the handles of all ids of the updates that have handles.
  Status SetGivenHandles(const std::vector<GpuStepUpdate>& updates,
                         StreamView stream);
  // Writes the queued new rows and keys of these tables, on the stream.
  Status WriteNew(std::vector<GpuRows*> all, StreamView stream);
  Status WriteQueues(const std::vector<GpuRows*>& all,
                     std::list<NewRows::Writing>* writings, StreamView stream,
                     InFlightEvents* followed);
  // Makes later work of the stream wait for 'events'. Skips events in
  // 'followed', which the stream already waits for, and adds the others to it.
  static Status FollowAll(const InFlightEvents& events, StreamView stream,
                          InFlightEvents* followed);
  // Like WriteNew; then makes later work of the stream wait for all work in
  // flight on the rows.
  Status FollowRows(const std::vector<GpuRows*>& all, StreamView stream,
                    InFlightEvents* followed);
  // Makes later work of the stream wait for the last key insertions.
  static Status FollowKeys(const std::vector<GpuRows*>& all, StreamView stream);
  // Returns true if an update of all tables is expected
  // (GpuRows::Hints). Clears the tables' flags, so a second call returns
  // false.
  bool ExpectsUpdate() const;
  // Groups occurrences for the expected update, unless there is not enough
  // memory or the update has already been called.
  void GroupEarly();
  void LaunchGroupsEarly();
  static StepTable TableOf(const Table& of, bool fits);
  Status LaunchGroups(StepGroups* groups) const;
  // Enqueues moves of rows of these tables (rows/gpu/row_places.h), if they can
  // move now, and adds their event to those of the rows. Returns the event;
  // null if nothing moves. REQUIRES: the event of the step's own work was
  // added, and the step holds no RowPlaces::Use of them. followed: as in
  // FollowAll.
  std::shared_ptr<DeviceEvent> MoveRows(Span<const int> numbers,
                                        Span<GpuRows* const> rows,
                                        StreamView stream,
                                        InFlightEvents* followed) const;
  Status LaunchMoves(Span<const int> numbers, Span<GpuRows* const> rows,
                     StreamView stream, InFlightEvents* followed,
                     std::shared_ptr<DeviceEvent>* moved) const;
  // The same for tables that are looked up without updates.
  void MoveAfterLookups();
  // Parts of Update (step_update.cu).
  struct UpdateWork;
  Status AddUpdate(size_t k, UpdateWork* call) const;
  Status TakeGroups(const UpdateWork& call, std::unique_ptr<StepGroups>* groups,
                    bool* is_grouped);
  static void DescribeRows(UpdateWork* call);
  static Status LaunchRule(const std::string& rule, Span<const float> hyper,
                           StepGroups* groups);
  // Records end_ after the work so far. Later work of 'outside' waits for it.
  Status End(StreamView work, const DeviceStream* outside);
  // Arguments of the kernels for the description that was sent last, which has
  // num_entries entries.
  StepLookup LookupView(int num_entries) const;
  // The description of tables [begin, end) for the kernels that look up ids,
  // that pool, or both.
  struct Described {
    int begin = 0, end = 0;
    bool finds = false, pools = false;
    size_t on_host = 0;  // byte offset of the description in pinned memory
  };
  // An entry of a description: the ids and samples of one table or of one
  // GpuStepPiece.
  struct Entry {
    int t = 0;
    int64_t begin = 0;  // first id and first sample, in the table
    int64_t num_ids = 0, num_samples = 0;
    MutableFloats out;
  };
  std::vector<Entry> EntriesOf(const Described& described) const;
  // Maximum number of entries of tables [begin, end).
  size_t NumEntries(int begin, int end) const;
  // InvalidArgument: table t's output is in another GPU's memory.
  Status CheckOutput(int t) const;
  // Copies outputs of tables [begin, end) to the host.
  Status BringOutputs(int begin, int end);
  struct Launches {
    int num_entries = 0;
    int find_blocks = 0;
    // First entry, in pool_order, and first block of each kind (PoolKind).
    std::vector<int> kind_begin, block_begin;
  };
  Status Describe(const Described& described, const Entry& entry,
                  StepLookupTable* to) const;
  void DescribePools(const std::vector<Entry>& entries, int32_t* tiles,
                     int32_t* order, Launches* launches) const;
  Status SendDescription(const Described& described, Launches* launches);
  // Writes the addresses of the rows of tables [begin, end), which were
  // described for the pooling, and reads rows in host memory (step_fetch.h).
  // REQUIRES: the stream waits for all work on the rows and the outputs.
  Status LocateRows(int begin, int end, const Launches& launches);
  Status LaunchPools(const Launches& launches);
  Status PoolAll();

  template <typename T>
  T* OnDevice(size_t at) const {
    return reinterpret_cast<T*>(context_->device() + at);
  }
  template <typename T>
  T* OnHost(size_t at) const {
    return reinterpret_cast<T*>(context_->host() + at);
  }

  struct Layout {
    size_t ids, handles, rows, sort, staged, samples, factors, offsets,
        occurrences, unknown, unknown_keys, counter, waves, tables, pool_tables,
        outputs, bytes;
  };

  const int device_;
  std::vector<Table> tables_;
  int64_t num_ids_ = 0, num_samples_ = 0;
  // B + 1 offsets per table; tables with the same samples share them.
  int64_t num_offsets_ = 0;
  size_t id_bytes_ = 0, table_bytes_ = 0;
  bool divides_ = false;  // some combiner divides
  // True if some table's rows have places, if some table has rows in host
  // memory, and if samples of such a table are not one id each.
  bool has_places_ = false, has_host_rows_ = false, may_pool_host_rows_ = false;
  // Rows that fit into the staging buffer, and the floats of each.
  int64_t num_staged_ = 0, staged_stride_ = 0;
  int64_t most_wave_ids_ = 0;
  // True if ids, offsets and the description are sent by one copy and the GPU
  // counts unknown ids in host memory. Each copy that this saves takes 5 us of
  // CPU and of GPU time.
  bool is_small_ = false;
  // True if some tables have ids in GPU memory, ids in the caller's pinned
  // memory, or occurrences.
  bool are_on_device_ = false, are_pinned_ = false, have_occurrences_ = false;
  // Null if outputs are in host memory.
  std::unique_ptr<const DeviceStream> stream_;
  size_t output_bytes_ = 0;  // of outputs in host memory
  std::atomic<bool> are_outputs_taken_{false};
  // True if some sample may not be exactly one id.
  std::atomic<bool> has_lists_{false};
  Layout on_host_,
      on_device_;  // of the context's pinned memory and its GPU memory
  std::unique_ptr<WorkContext> context_;
  std::vector<std::unique_ptr<Wave>> waves_;
  // The stream that copies ids to the GPU; null: the context's stream does.
  std::unique_ptr<SideStream> uploads_;
  // Per table: true if it narrows and an id did not fit into int32.
  std::vector<std::atomic<bool>> misfits_;
  std::unique_ptr<WaveQueue> queue_;
  // Used by the launching thread only (wave_queue.h).
  bool pools_early_ = false;     // lookup and pooling are launched together
  bool writes_outputs_ = false;  // some outputs may be being written
  bool is_pooled_ = false;       // the pooling of all tables is enqueued
  InFlightEvents followed_;      // events that the context's stream waits for
  // Event recorded after the GPU has read pinned ids without an owner; null if
  // there are none.
  std::shared_ptr<DeviceEvent> ids_are_read_;

  std::mutex mu_;
  bool is_taken_ = false;  // TakeOnce has copied unknown ids to the host
  Status taken_;           // its result
  // Event recorded after the check of samples in GPU memory.
  std::shared_ptr<DeviceEvent> samples_are_copied_;
  // Positions of the unknown ids, ascending, and, unless all ids were put, the
  // ids.
  std::vector<uint32_t> unknown_;
  std::vector<int64_t> unknown_keys_;
  // Contexts whose memory is used by work that may be in flight.
  std::vector<std::unique_ptr<WorkContext>> contexts_;
  bool groups_early_ = false;  // TakeRest has work that is not done
  // Groups launched right after the pooling, for the update; may be null.
  std::unique_ptr<StepGroups> groups_;
  std::shared_ptr<DeviceEvent> end_;  // recorded after the last work
  bool has_failed_ = false;           // the state of work in flight is unknown
};

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_CALL_H_
