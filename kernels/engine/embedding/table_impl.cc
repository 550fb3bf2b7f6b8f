// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/table_impl.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <new>
#include <utility>

#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/frozen_rows.h"

namespace ev {
namespace {

constexpr int64_t kKeysPerTask = 2048;  // of a search in the index

uint64_t NextNumber() {
  static std::atomic<uint64_t> next{0};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// Creates rows and records them in a journal before they can be found.
class JournaledRows : public RowSource {
 public:
  JournaledRows(RowSource* source, JournalPart* part)
      : source_(source), part_(part) {}

  Status NewRow(int64_t key, RowHandle* handle) override {
    // The index holds a lock, which no exception may pass.
    try {
      part_->inserted.push_back(key);
    } catch (const std::bad_alloc&) {
      return ResourceExhausted("no memory for another row");
    }
    const Status status = source_->NewRow(key, handle);
    if (!status.ok()) part_->inserted.pop_back();
    return status;
  }

 private:
  RowSource* const source_;
  JournalPart* const part_;
};

}  // namespace

TableOptions TableOptions::Completed() const {
  TableOptions completed = *this;
  if (admission.filters()) completed.record_frequency = true;
  if (capacity.bounded()) {
    completed.record_version = true;
    if (NeedsFrequency(capacity.strategy)) {
      completed.record_frequency = true;
    }
  }
  return completed;
}

EmbeddingTable::Impl::Impl(const TableOptions& o)
    : options(o.Completed()),
      number(NextNumber()),
      hand(std::hash<std::string>()(options.name)),
      rounding_seed(static_cast<uint64_t>(options.rounding_seed)) {}

Status EmbeddingTable::Impl::CheckInitialized() const {
  if (initialized.load(std::memory_order_acquire)) return Status::OK();
  return FailedPrecondition(QuotedName() +
                            " is not initialized: run its initializer first");
}

Status EmbeddingTable::Impl::CheckInt32Keys(Span<const int64_t> keys) const {
  constexpr int64_t kLeast = std::numeric_limits<int32_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  // Checking all keys is several times faster than a loop that may end early.
  uint64_t outside = 0;
  for (const int64_t key : keys) {
    outside |=
        (static_cast<uint64_t>(key) - static_cast<uint64_t>(kLeast)) >> 32;
  }
  if (outside == 0) return Status::OK();
  const int64_t key = *std::find_if(keys.begin(), keys.end(), [](int64_t k) {
    return k < kLeast || k > kMost;
  });
  return InvalidArgument(
      "id " + std::to_string(key) +
      " does not fit into int32, the table's key type; use ids in [" +
      std::to_string(kLeast) + ", " + std::to_string(kMost) +
      "], or create the variable with key_dtype=tf.int64, " + QuotedName());
}

UpdateCall EmbeddingTable::Impl::BeginCall(int64_t step) {
  UpdateCall call;
  do {
    call.call = calls.fetch_add(1, std::memory_order_relaxed) + 1;
  } while (call.call == 0);
  call.step = step;
  call.steps_are_times = options.versions_are_times;
  return call;
}

uint32_t EmbeddingTable::Impl::ImportCall() {
  if (!KeepsFirstCall(options.capacity.strategy)) return 0;
  if (last_import == 0 || last_import != calls.load()) {
    last_import = BeginCall(/*step=*/-1).call;
  }
  return last_import;
}

int EmbeddingTable::Impl::FindSlot(const std::string& name) const {
  for (size_t c = 0; c < slots.size(); ++c) {
    if (slots[c].name == name) return static_cast<int>(c);
  }
  return -1;
}

bool EmbeddingTable::Impl::FindSlots(Span<const SlotSpec> wanted,
                                     std::vector<int>* columns) const {
  columns->clear();
  for (const SlotSpec& slot : wanted) {
    const int column = FindSlot(slot.name);
    if (column < 0) return false;
    columns->push_back(column);
  }
  return true;
}

Status EmbeddingTable::Impl::CheckTakesDeviceTensors(const char* what) const {
  if (home->gpu_table() != nullptr) return Status::OK();
  return FailedPrecondition(
      std::string(what) +
      " is in device memory, but the table's rows are not, " + QuotedName());
}

Status EmbeddingTable::Impl::FindAndHold(Span<const int64_t> keys,
                                         RowHandle* handles,
                                         const float** found, int64_t* absent,
                                         std::unique_ptr<RowHold>* hold,
                                         bool* held) const {
  Status status;
  int64_t num_absent = 0;
  *held = true;
  const auto hold_some = [&](size_t begin, size_t end) {
    if (!status.ok()) return;
    status = home->Hold(Span<const RowHandle>(handles + begin, end - begin),
                        found + begin, hold, held);
    for (size_t i = begin; i < end; ++i) {
      if (handles[i] < kFirstReservedHandle) continue;
      found[i] = AbsentRow(keys[i]);
      if (is_narrow()) {
        found[i] = reinterpret_cast<const float*>(
            narrow_defaults.data() +
            (found[i] - defaults.data()) * FloatBytes(options.value_type));
      }
      ++num_absent;
    }
  };
  if (home->costs().calls_are_cheap) {
    // Holds rows while the index's cache lines of the next keys are being
    // fetched.
    index.FindWith(keys, handles, hold_some);
  } else {
    index.Find(keys, handles);
    hold_some(0, keys.size());
  }
  *absent = num_absent;
  return WithName(status);
}

Status EmbeddingTable::Impl::ReadValues(Span<const int64_t> keys,
                                        const RowHandle* handles,
                                        float* out) const {
  EV_RETURN_IF_ERROR(WithName(
      home->Read(Span<const RowHandle>(handles, keys.size()), 0, out)));
  for (size_t i = 0; i < keys.size(); ++i) {
    if (handles[i] < kFirstReservedHandle) continue;
    std::copy_n(AbsentRow(keys[i]), dim(), out + i * dim());
  }
  return Status::OK();
}

Status EmbeddingTable::Impl::WithName(const Status& status) const {
  if (status.ok()) return status;
  return Status(status.code(), status.message() + ", " + QuotedName());
}

Status EmbeddingTable::Impl::CopyColumns(Span<const RowHandle> handles,
                                         Span<const int> columns,
                                         Span<float* const> out) const {
  return WithName(home->ReadColumnsOnce(handles, columns, out));
}

Status EmbeddingTable::Impl::FindOrInsert(Span<const int64_t> keys,
                                          RowHandle* handles,
                                          JournalPart* part) {
  int64_t inserted = 0;
  JournaledRows journaled(this, part);
  RowSource* const source = part == nullptr
                                ? static_cast<RowSource*>(this)
                                : static_cast<RowSource*>(&journaled);
  const Status status = index.FindOrInsert(keys, source, handles, &inserted);
  if (inserted != 0) {
    inserted_rows.fetch_add(inserted, std::memory_order_relaxed);
  }
  return WithName(status);
}

Status EmbeddingTable::Impl::NewRow(int64_t key, RowHandle* handle) {
  EV_RETURN_IF_ERROR(rows->Allocate(handle));
  MarkChanged(*handle);
  for (FrozenRows* frozen : frozen_rows) frozen->AddNew(*handle);
  const int64_t default_row = FloorMod(key, num_defaults);
  GpuRowCompute* const gpu = home->gpu();
  const Status status = gpu != nullptr
                            ? gpu->NewKeyedRow(key, *handle, default_row)
                            : home->NewRow(*handle, default_row);
  if (!status.ok()) {
    // Freeing it requires being alone under the table lock.
    std::lock_guard<std::mutex> lock(unused_handles_mu);
    try {
      unused_handles.push_back(*handle);
    } catch (const std::bad_alloc&) {
      // It stays unused until the table is cleared.
    }
  }
  return status;
}

void EmbeddingTable::Impl::FindHandles(Span<const int64_t> keys,
                                       Parallel* parallel,
                                       std::vector<RowHandle>* handles) const {
  handles->resize(keys.size());
  ForRanges(
      parallel, keys.size(), kKeysPerTask, [&](int64_t begin, int64_t end) {
        index.Find(keys.subspan(begin, end - begin), handles->data() + begin);
      });
}

Status EmbeddingTable::Impl::BringRows(Span<const int64_t> keys,
                                       Parallel* parallel, bool* all) {
  *all = false;
  RowsBelow::Brought brought;
  const Status status = CatchBadAlloc([&] {
    std::vector<RowHandle> handles;
    std::unique_ptr<RowCopies> copies;
    {
      SharedTableLock shared(&table_lock);
      // The table may have been initialized again with another storage.
      if (rows_below() == nullptr) return Status::OK();
      if (table_lock.has_snapshot()) return Status::OK();
      FindHandles(keys, parallel, &handles);
      copies = rows_below()->Copy(handles, parallel);
    }
    if (!table_lock.TryEnterAlone()) return Status::OK();
    struct Leave {
      EmbeddingTable::Impl* table;
      const RowsBelow::Brought* brought;
      ~Leave() {
        if (brought->moved_below) ++table->generation;
        table->table_lock.LeaveAlone();
      }
    } leave{this, &brought};
    if (rows_below() == nullptr) return Status::OK();
    FindHandles(keys, parallel, &handles);
    return rows_below()->Bring(keys, handles, copies.get(), parallel, &brought);
  });
  *all = status.ok() && brought.fits;
  if (status.ok()) return status;
  // Without room rows can still be read and written where they are.
  return status.code() == StatusCode::kResourceExhausted ? Status::OK()
                                                         : WithName(status);
}

Status EmbeddingTable::Impl::BringRowsBelow(Span<const int64_t> keys,
                                            Parallel* parallel) {
  {
    SharedTableLock shared(&table_lock);
    if (home == nullptr || rows_below() == nullptr) return Status::OK();
    std::vector<RowHandle> handles;
    FindHandles(keys, parallel, &handles);
    const bool needs_room = rows_below()->NeedsRoom();
    if (home->gpu()->FindStepHandles(handles, handles.data()) && !needs_room) {
      return Status::OK();
    }
  }
  bool all = false;
  return BringRows(keys, parallel, &all);
}

void EmbeddingTable::Impl::KeepFrozen(Span<const RowHandle> handles) {
  for (FrozenRows* frozen : frozen_rows) frozen->BeforeChange(handles);
}

void EmbeddingTable::Impl::AddToMeta(RowHandle handle, int64_t occurrences,
                                     const UpdateCall& call) {
  MarkChanged(handle);
  RowMeta* meta = rows->Meta(handle);
  if (meta == nullptr) return;
  constexpr int64_t kMax = std::numeric_limits<uint32_t>::max();
  // A row has one updater at a time, but GetMeta may be reading.
  const int64_t before = __atomic_load_n(&meta->frequency, __ATOMIC_RELAXED);
  const int64_t after = std::min(
      kMax, before + std::min(kMax, std::max<int64_t>(0, occurrences)));
  __atomic_store_n(&meta->frequency, static_cast<uint32_t>(after),
                   __ATOMIC_RELAXED);
  __atomic_store_n(&meta->version_plus1, RowMeta::PlusOne(call.step),
                   __ATOMIC_RELAXED);
  const uint32_t kept = __atomic_load_n(&meta->call, __ATOMIC_RELAXED);
  __atomic_store_n(&meta->call,
                   CallToKeep(options.capacity.strategy, kept, call.call),
                   __ATOMIC_RELAXED);
}

Status EmbeddingTable::Impl::TakeCounters() {
  if (home == nullptr || !keeps_counters()) return Status::OK();
  const uint32_t now = calls.load(std::memory_order_relaxed);
  return WithName(home->gpu_table()->TakeCounters(
      [this, now](RowHandle handle, const RowMeta& counters) {
        AddCounters(handle, counters, now);
      }));
}

void EmbeddingTable::Impl::AddCounters(RowHandle handle,
                                       const RowMeta& counters, uint32_t now) {
  const RowMeta& meta = *rows->Meta(handle);
  const uint32_t call = __atomic_load_n(&meta.call, __ATOMIC_RELAXED);
  UpdateCall last;
  // The row may have been updated outside a step after their last update.
  // The later of the two calls is the one that is fewer calls back from 'now':
  // their numbers wrap.
  const bool was_last = call == 0 || now - counters.call <= now - call;
  last.call = was_last ? counters.call : call;
  last.step = static_cast<int64_t>(
      (was_last ? counters.version_plus1
                : __atomic_load_n(&meta.version_plus1, __ATOMIC_RELAXED)) -
      1);
  AddToMeta(handle, counters.frequency, last);
}

void EmbeddingTable::Impl::FreeRows(Span<const RowHandle> handles) {
  home->Forget(handles);
  rows->Free(handles);
}

void EmbeddingTable::Impl::Clear() {
  home->Clear();
  ++generation;
  index.Clear();
  rows->Clear();
  unused_handles.clear();
  hand.Reset();
  if (filter != nullptr) filter->Clear();
  if (changes != nullptr) changes->Emptied();
}

SharedTableLocks::SharedTableLocks(std::vector<EmbeddingTable::Impl*> tables,
                                   Purpose purpose)
    : tables_(std::move(tables)), purpose_(purpose) {
  std::sort(tables_.begin(), tables_.end(),
            [](const EmbeddingTable::Impl* a, const EmbeddingTable::Impl* b) {
              return a->number < b->number;
            });
  tables_.erase(std::unique(tables_.begin(), tables_.end()), tables_.end());
  for (EmbeddingTable::Impl* table : tables_) {
    if (purpose_ == Purpose::kReading) {
      table->table_lock.EnterShared();
    } else {
      table->table_lock.EnterUpdating();
    }
  }
}

SharedTableLocks::~SharedTableLocks() {
  for (EmbeddingTable::Impl* table : tables_) {
    if (purpose_ == Purpose::kReading) {
      table->table_lock.LeaveShared();
    } else {
      table->table_lock.LeaveUpdating();
    }
  }
}

UpdateLocks::UpdateLocks(const std::vector<EmbeddingTable::Impl*>& tables)
    : tables_(tables) {
  modes_.reserve(tables_.size());
  for (EmbeddingTable::Impl* table : tables_) {
    modes_.push_back(table->update_lock.Lock());
  }
}

UpdateLocks::~UpdateLocks() {
  for (size_t t = 0; t < tables_.size(); ++t) {
    tables_[t]->update_lock.Unlock(modes_[t]);
  }
}

bool UpdateLocks::solo(const EmbeddingTable::Impl* table) const {
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t] == table) return modes_[t] == UpdateLock::Mode::kSolo;
  }
  return false;
}

}  // namespace ev
