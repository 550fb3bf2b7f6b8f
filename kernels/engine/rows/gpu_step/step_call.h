// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// GpuStep on a GPU. Ids of all tables are copied to the GPU as one block
// through pinned memory, or as one block for each of several waves of tables
// (step_waves.cu). int64 ids are copied as int32 until the table meets an id
// that does not fit (step_ids.cc). Ids in pinned memory are copied directly,
// and ids in GPU memory are read in place and kept. Kernels find the ids in the
// key tables and pool (step_lookup.h). The ids without a row are copied to the
// host when an update needs them. The update groups occurrences by row
// (step_groups.h) and applies the rule with the kernels of gpu_step/.
//
// MEMORY. From Make until destruction: on the GPU 16 bytes per id and 4 per
// sample, and 4 more of each if samples have several ids; pinned 12 bytes per
// id and 4 per sample, and 8 more per id if some were not put. Ids copied as
// int32 take 4 bytes less of each; ids that stand for several occurrences 4
// more. Outputs in host memory take their bytes on the GPU, and as many pinned
// unless they are pinned themselves. From the update on, or from the pooling if
// an update is expected, 40 bytes per id on the GPU, and 12 per id pinned for
// tables that note their rows in CPU memory (step_rows.h). All of it is lanes'
// memory (base/gpu/work_lane.h), except 16 bytes per id of a table that meets
// its first wide id, 8 of them pageable.

#ifndef KERNELS_ENGINE_ROWS_GPU_STEP_STEP_CALL_H_
#define KERNELS_ENGINE_ROWS_GPU_STEP_STEP_CALL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "kernels/engine/base/gpu/device_buffer.h"
#include "kernels/engine/base/gpu/device_event.h"
#include "kernels/engine/base/gpu/staged_upload.h"
#include "kernels/engine/base/gpu/work_lane.h"
#include "kernels/engine/rows/gpu/gpu_rows.h"
#include "kernels/engine/rows/gpu/known_keys.h"
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
  // tables: GpuRows on this device, which is current. ResourceExhausted.
  static Status Make(int device, Span<const GpuStepTable> tables,
                     const DeviceStream* stream,
                     std::shared_ptr<GpuStep>* step);
  ~StepCall() override;

  std::unique_ptr<DeviceDistinct> Distinct(int t) override;
  Status Pool() override;
  Status TakeOutput(int t) override;
  std::function<void()> TakeRest() override;
  bool CanUpdate(const std::string& rule,
                 Span<const int> slot_columns) const override;
  Status Update(const std::string& rule, Span<const float> hyper,
                Span<const GpuStepUpdate> updates, const DeviceStream* stream,
                std::unique_ptr<GpuStepNotes>* notes) override;

 private:
  friend class StepDistinct;  // step_distinct.cc

  enum class IdsAre {
    kHere,    // put
    kPinned,  // read by the GPU where the caller has them
    kThere,   // in the GPU's memory
  };
  // Memory of its own, since a table needs it in one step only. 'there' is
  // freed first, which waits for the copy that reads 'here'.
  struct WideIds {
    std::vector<int64_t> here;
    DeviceBuffer there;
  };
  struct Table {
    GpuRows* rows = nullptr;  // while the caller's gates are held
    std::shared_ptr<KnownKeys> known;
    int64_t num_ids = 0, num_samples = 0;
    int64_t dim = 0;
    Combiner combiner = Combiner::kSum;
    float* out = nullptr;       // in GPU memory
    float* host_out = nullptr;  // in host memory; null if the step has a stream
    bool is_host_out_pinned = false;
    size_t out_at = 0;  // bytes, in the lane's outputs
    std::vector<GpuStepPiece> pieces;
    int wave = 0;
    bool is_narrow = false;  // the ids of the block
    // Whether the caller's int64 ids are int32 in the block, and where they are
    // instead if one does not fit.
    bool narrows = false;
    std::unique_ptr<WideIds> wide;
    IdsAre where = IdsAre::kHere;
    int64_t first_default = 0, num_defaults = 0;  // as GpuStepTable
    std::shared_ptr<const void> ids_owner;
    const int64_t* occurrences = nullptr;  // as GpuStepTable, until Start
    bool has_occurrences = false;
    // As the caller has them, while Wait has not returned or the owner lives.
    const void* given = nullptr;
    const int64_t* splits = nullptr;
    const int64_t* indices = nullptr;
    // Of the first table with the samples. Known when all tables are started;
    // of ids on the GPU after Wait.
    bool one_id_each = true;
    int64_t id_begin = 0, sample_begin = 0;  // in the arrays of the batch
    // The first table with these samples, and where its offsets are.
    int first = 0;
    int64_t offsets_at = 0;
    size_t ids_at = 0;  // bytes, in the block of ids
    // The ids without a row: positions in the batch, ascending, which of 'keys'
    // each is, the distinct keys, and how often each occurs.
    Span<const uint32_t> unknown;
    const int64_t* unknown_keys = nullptr;  // of those; null: read the ids
    std::vector<int64_t> keys;
    std::vector<int32_t> key_of, counts;
    bool is_settled = false;

    size_t id_width() const {
      return is_narrow ? sizeof(int32_t) : sizeof(int64_t);
    }
    size_t id_bytes() const { return num_ids * id_width(); }
    size_t out_bytes() const { return num_samples * dim * sizeof(float); }
  };
  // Tables [begin, end), worked on together as soon as their ids, and those of
  // earlier waves, have been put (step_waves.cu).
  struct Wave {
    int begin = 0, end = 0;
    // Of their ids that are put, in the block of ids.
    size_t put_at = 0, put_bytes = 0;
    std::unique_ptr<StagedUpload> upload;
    // Of their samples, in the offsets of all.
    int64_t offsets_at = 0, num_offsets = 0;
    size_t tables_at = 0;  // bytes, in the pinned descriptions
  };
  struct NewHandles {  // of a table's unknown keys
    const Table* table;
    Span<const RowHandle> handles;
  };

  explicit StepCall(int device);
  Status Create(Span<const GpuStepTable> tables);

  // Of table t: what its DeviceDistinct does.
  Status Put(int t, int64_t begin, Span<const int64_t> ids);
  Status Put(int t, int64_t begin, Span<const int32_t> ids);
  Status Start(int t, Span<const int32_t> offsets);
  bool IsDone() const;
  int64_t num_unknown();
  Status Wait();
  bool is_settled(int t) const { return tables_[t].is_settled; }
  Status Settle(int t);
  const int64_t* keys(int t) const { return tables_[t].keys.data(); }
  const int32_t* counts(int t) const { return tables_[t].counts.data(); }
  // Of the table's ids, [N]; null: 1 each.
  const int32_t* OccurrencesHere(const Table& table) const {
    return table.has_occurrences
               ? OnHost<int32_t>(here_.occurrences) + table.id_begin
               : nullptr;
  }
  const int32_t* OccurrencesThere(const Table& table) const {
    return table.has_occurrences
               ? OnDevice<int32_t>(there_.occurrences) + table.id_begin
               : nullptr;
  }
  // The table's ids, brought down where they were not put.
  Status Ids(int t, std::vector<char>* ids) const;
  // Where the table's samples begin.
  Status Offsets(int t, int32_t* offsets) const;
  // Brings down the names of a table's ids, [N].
  Status BringNames(int t, RowHandle* names) const;

  // Whether the ids of all tables are in the lane's pinned memory.
  bool all_put() const { return !are_there_ && !are_pinned_; }
  const char* HostIds(const Table& table) const;
  char* DeviceIds(const Table& table) const;
  char* UploadTo(const Wave& wave) const;
  // Sends ids of which one did not fit again, as they are.
  Status PutWide(Table* table);
  Status SendPinned();
  // Locks the key tables of tables [begin, end), in one order for all steps.
  // Work that reads them is enqueued before they may be freed.
  using KnownLocks = std::vector<std::unique_lock<std::mutex>>;
  KnownLocks LockKnown(int begin, int end) const;
  Status CutIntoWaves();
  void PlaceIds();
  StreamView upload_stream() const;
  Status Launch(const Wave& wave);
  Status LaunchWave(const Wave& wave);
  // All tables at once.
  Status LaunchFind();
  Status FindSamples();
  Status BringCounter();
  Status TakeOnce();
  Status Take();
  Status TakeSamplesOnce();
  Status TakeSamples();
  Status TakeUnknown();
  // Fills unknown_, and unknown_keys_ where keys [count] came.
  void PutInOrder(Span<const uint32_t> positions, const int64_t* keys);
  Status FindKeysOfUnknown(Table* table);
  bool OneIdEach(const Table& table) const {
    return tables_[table.first].one_id_each;
  }
  // Writes the handles that keys have got since the lookup.
  Status SetHandles(const std::vector<NewHandles>& all, StreamView stream);
  // What is queued of new rows and keys is written, on the stream.
  Status WriteNew(std::vector<GpuRows*> all, StreamView stream);
  Status WriteQueues(const std::vector<GpuRows*>& all,
                     const std::vector<GpuRows::Queue>& queues,
                     StreamView stream, BegunEvents* followed);
  // The stream comes after the events, but for those in 'followed', which it
  // comes after and to which they are added.
  static Status FollowAll(const BegunEvents& events, StreamView stream,
                          BegunEvents* followed);
  // As WriteNew, and the stream comes after what was begun on the rows.
  Status FollowRows(const std::vector<GpuRows*>& all, StreamView stream,
                    BegunEvents* followed);
  // The stream comes after the last keys that were put.
  static Status FollowKeys(const std::vector<GpuRows*>& all, StreamView stream);
  // Whether an update is expected, of all tables. Once.
  bool ExpectsUpdate() const;
  // Groups occurrences for it, if there is memory, and if it has not come.
  void GroupEarly();
  void LaunchGroupsEarly();
  static StepTable TableOf(const Table& of, bool fits);
  Status LaunchGroups(StepGroups* groups) const;
  Status End(StreamView work, const DeviceStream* outside);
  // Of so many entries, as described last.
  StepLookup LookupView(int num_entries) const;
  // Tables [begin, end) for the kernels that find, that pool, or both.
  struct Described {
    int begin = 0, end = 0;
    bool finds = false, pools = false;
    size_t here = 0;  // where it is put, in pinned memory
  };
  // Ids and samples that a block of those kernels works on: of a table, or of
  // a piece.
  struct Entry {
    int t = 0;
    int64_t begin = 0;  // id and sample
    int64_t num_ids = 0, num_samples = 0;
    float* out = nullptr;
  };
  std::vector<Entry> EntriesOf(const Described& described) const;
  // How many EntriesOf gives at most, of tables [begin, end).
  size_t NumEntries(int begin, int end) const;
  // InvalidArgument: table t's output is in another GPU's memory.
  Status CheckOutput(int t) const;
  // Copies outputs of tables [begin, end) to the host.
  Status BringOutputs(int begin, int end);
  struct Launches {
    int num_entries = 0;
    int find_blocks = 0;
    // Where each kind begins in pool_order and in blocks.
    std::vector<int> kind_begin, block_begin;
  };
  Status SendDescription(const Described& described, Launches* launches);
  Status LaunchPools(const Launches& launches);
  Status PoolAll();

  template <typename T>
  T* OnDevice(size_t at) const {
    return reinterpret_cast<T*>(lane_->device() + at);
  }
  template <typename T>
  T* OnHost(size_t at) const {
    return reinterpret_cast<T*>(lane_->host() + at);
  }

  struct Layout {
    size_t ids, names, samples, factors, offsets, occurrences, unknown,
        unknown_keys, counter, waves, tables, pool_tables, outputs, bytes;
  };

  const int device_;
  std::vector<Table> tables_;
  int64_t num_ids_ = 0, num_samples_ = 0;
  int64_t num_offsets_ = 0;  // of all samples, each once, with their ends
  size_t id_bytes_ = 0, table_bytes_ = 0;
  bool divides_ = false;
  // Ids, samples and descriptions are sent by one copy, and the GPU counts
  // unknown ids in host memory: each copy takes the CPU and the GPU some 5 us.
  bool is_small_ = false;
  // Of some tables.
  bool are_there_ = false, are_pinned_ = false, have_occurrences_ = false;
  // Null: outputs are in host memory.
  std::unique_ptr<const DeviceStream> stream_;
  size_t output_bytes_ = 0;  // of those
  std::atomic<bool> are_outputs_taken_{false};
  std::atomic<bool> has_lists_{false};  // samples of other than one id
  Layout here_, there_;                 // on the host, on the device
  std::unique_ptr<WorkLane> lane_;
  std::vector<std::unique_ptr<Wave>> waves_;
  std::unique_ptr<SideStream> uploads_;  // null: ids go up on the lane's stream
  std::vector<std::atomic<bool>> misfits_;  // of a table that narrows
  std::unique_ptr<WaveQueue> queue_;
  // Of the thread that launches.
  bool pools_early_ = false;     // with the finding
  bool writes_outputs_ = false;  // some are being written
  bool is_pooled_ = false;       // all are pooled
  BegunEvents followed_;         // by it
  std::atomic<bool> is_launched_{false};
  // After the GPU has read pinned ids that have no owner; null: there are none.
  std::shared_ptr<DeviceEvent> ids_are_read_;

  std::mutex mu_;
  bool is_taken_ = false;  // the ids without a row are on the host
  Status taken_;
  std::shared_ptr<DeviceEvent> samples_are_here_;  // of ids that are there
  bool samples_taken_ = false;
  Status samples_status_;
  std::vector<uint32_t> unknown_;
  std::vector<int64_t> unknown_keys_;  // of those, unless all were put
  // Memory of work that may be under way.
  std::vector<std::unique_ptr<WorkLane>> lanes_;
  bool groups_early_ = false;  // what TakeRest gives is not done
  // Launched behind the pooling, for the update; null: none.
  std::unique_ptr<StepGroups> groups_;
  std::shared_ptr<DeviceEvent> end_;  // of what was begun last
  bool has_failed_ = false;           // the state of work in flight is unknown
};

// As GpuStep::Distinct (step_distinct.cc).
std::unique_ptr<DeviceDistinct> MakeStepDistinct(std::shared_ptr<StepCall> step,
                                                 int t);

}  // namespace gpu
}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_GPU_STEP_STEP_CALL_H_
