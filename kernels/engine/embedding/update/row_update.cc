// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// An update in three steps, each over all tables at once:
//
//   1  distinct keys and their summed gradients; nothing to do with a plan, or
//      when the keys turn out to be distinct.
//   2  row handles: the plan's when no key was erased since, with only the keys
//      inserted that had no row; otherwise every key is found or inserted.
//      Skipped altogether in the steady state. A key that the table's filter
//      keeps out has no handle afterwards. Where a device has deduplicated,
//      the plan's handles are there and stay there, unless something here
//      wants them (StaysOnDevice).
//   3  the rule, over tasks of some hundred rows, rows prefetched ahead. Rows
//      of one input are distinct, so tasks never meet.
//
// Steps 1 and 2 change no row, and what they insert and count is noted, so that
// an error takes it back. A table that comes again waits for the next round of
// steps 2 and 3, which keeps its admissions and updates in the order of the
// inputs.

#include "kernels/engine/embedding/update/row_update.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>

#include "kernels/engine/base/scratch.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/base/transfer_memory.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/lookup/plan_builder.h"
#include "kernels/engine/embedding/lookup/planned_table.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/embedding/update/pooled_update.h"
#include "kernels/engine/optimizer/row_rule.h"

namespace ev {
namespace {

// Floats of gradient in one task of step 3, at most: homes want fewer.
constexpr int64_t kMostFloatsPerTask = 1 << 18;
constexpr int64_t kKeysPerTask = 2048;
// Keys of one table that are found or inserted by one task: two threads that
// insert in one small table wait for each other's lock, and for the other's
// line of memory, at every key.
constexpr int64_t kInsertsPerTask = 16384;
// Floats of a row whose gradients are summed on the device that has
// deduplicated, however few the rows are.
constexpr int64_t kShortRow = 32;

// One input on its way through the steps.
struct Update {
  EmbeddingTable::Impl* table = nullptr;
  int round = 0;
  bool solo = false;
  UpdateCall call;  // the same in all updates of a table
  TableJournal* journal = nullptr;
  std::vector<int> slot_columns;
  // What a forward found out, when the keys come from one.
  const PlannedTable* planned = nullptr;
  int64_t num_keys = 0;
  // Keys, counts and handles are the device's and stay there: only those of
  // keys that it did not know at the forward are here, if some had no row.
  bool stays_on_device = false;

  // After step 1.
  Span<const int64_t> keys;
  const int32_t* counts = nullptr;  // null: 1 each
  const float* grads = nullptr;
  // Instead, where the rows are on a device.
  const float* pooled_grads = nullptr;
  const DeviceStream* stream = nullptr;
  // After step 2; kNoRow: the filter keeps the key out.
  const RowHandle* handles = nullptr;
  bool handles_known = false;  // handles of keys that have a row are there
};

Recycler<LineBuffer>& HandleBuffers() {
  static Recycler<LineBuffer>* const buffers = new Recycler<LineBuffer>(256);
  return *buffers;
}

Status CheckInput(const UpdateInput& in, const RowRule& rule,
                  const std::vector<SlotSpec>& slots, size_t i) {
  if (in.table == nullptr) {
    return InvalidArgument("update " + std::to_string(i) + " has no table");
  }
  const EmbeddingTable::Impl& table = *in.table->impl();
  EV_RETURN_IF_ERROR(table.CheckInitialized());
  if (slots.size() != static_cast<size_t>(rule.num_slots())) {
    return InvalidArgument(std::string("rule ") + rule.name() + " has " +
                           std::to_string(rule.num_slots()) + " slots, got " +
                           std::to_string(slots.size()) + ", " + table.Named());
  }
  if (in.keys.size() >
      static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return InvalidArgument("fewer than 2^31 keys are updated at once, got " +
                           std::to_string(in.keys.size()) + ", " +
                           table.Named());
  }
  if (in.pooled_grads != nullptr && in.plan == nullptr) {
    return InvalidArgument("gradients of samples came without a plan, " +
                           table.Named());
  }
  if (!in.keys.empty() &&
      (in.keys.data() == nullptr ||
       (in.grads == nullptr) == (in.pooled_grads == nullptr))) {
    return InvalidArgument("keys came without gradients, " + table.Named());
  }
  if (in.stream != nullptr && in.pooled_grads == nullptr && !in.keys.empty()) {
    return InvalidArgument("gradients on a device are not those of samples, " +
                           table.Named());
  }
  if (in.plan == nullptr) return Status::OK();
  if (in.plan_table < 0 || in.plan_table >= in.plan->num_tables() ||
      in.plan->table(in.plan_table) != in.table) {
    return InvalidArgument("table " + std::to_string(in.plan_table) +
                           " of the plan is not the one to update, " +
                           table.Named());
  }
  if (in.pooled_grads != nullptr && in.keys.empty()) return Status::OK();
  EV_RETURN_IF_ERROR(in.plan->Fetch(in.plan_table));
  const Span<const int64_t> planned = in.plan->unique_keys(in.plan_table);
  if (planned.size() != in.keys.size() ||
      (planned.data() != in.keys.data() && !planned.empty() &&
       std::memcmp(planned.data(), in.keys.data(),
                   planned.size() * sizeof(int64_t)) != 0)) {
    return InvalidArgument("the keys to update are not those of the plan, " +
                           table.Named());
  }
  return Status::OK();
}

// Step 1 of the updates that come without a plan: they get one, of which each
// key is a sample of one id, and the gradient of that lookup is the sum wanted.
Status SumDuplicates(Span<const UpdateInput> inputs, LookupPlan* plan,
                     std::vector<Update>* updates, Parallel* parallel) {
  std::vector<PooledInput> lookups;
  std::vector<Update*> owners;
  std::vector<const int64_t*> given;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].plan != nullptr || inputs[i].keys.empty()) continue;
    PooledInput lookup;
    lookup.table = inputs[i].table;
    lookup.combiner = Combiner::kSum;
    lookup.batch_size = lookup.num_ids = inputs[i].keys.size();
    lookup.ids64 = inputs[i].keys.data();
    lookups.push_back(lookup);
    owners.push_back(&(*updates)[i]);
    given.push_back(inputs[i].counts);
  }
  EV_RETURN_IF_ERROR(PlanLookup(lookups, Samples::kOneIdEach, plan, nullptr,
                                parallel, [](int) { return Status::OK(); }));
  std::vector<const float*> grads(lookups.size(), nullptr);
  std::vector<float*> sums(lookups.size(), nullptr);
  for (size_t k = 0; k < lookups.size(); ++k) {
    PlannedTable* planned = plan->mutable_planned(static_cast<int>(k));
    const bool all_unique = planned->all_unique();
    int32_t* occurrences = nullptr;
    if (given[k] != nullptr) {
      occurrences =
          planned->occurrence_counts.ReserveOf<int32_t>(planned->num_unique);
      std::fill(occurrences, occurrences + planned->num_unique, 0);
      for (int64_t i = 0; i < lookups[k].num_ids; ++i) {
        occurrences[all_unique ? i : planned->inverse[i]] +=
            static_cast<int32_t>(given[k][i]);
      }
      owners[k]->counts = occurrences;
    }
    if (all_unique) continue;  // keys and gradients as they came
    grads[k] = owners[k]->grads;
    sums[k] = planned->row_copies.ReserveOf<float>(planned->num_unique *
                                                   planned->dim);
    owners[k]->keys = plan->unique_keys(static_cast<int>(k));
    owners[k]->num_keys = owners[k]->keys.size();
    owners[k]->counts = occurrences != nullptr ? occurrences : planned->counts;
    owners[k]->grads = sums[k];
  }
  return PooledBackward(*plan, grads, sums, parallel);
}

// Whether the gradients of the samples go to a device as they are: with fewer
// than half as many rows as samples their sums are so much shorter that forming
// them here costs less than the link. Unless a device has the occurrences and
// they are many, when what it costs grows with them, or rows are short, when
// fetching what is needed here costs more than it saves. Gradients that are
// there stay there.
bool SumsOnDevice(const EmbeddingTable::Impl& table,
                  const PlannedTable& planned, const DeviceStream* stream) {
  if (stream != nullptr) return true;
  if (table.home->gpu() == nullptr) return false;
  if (2 * planned.num_unique >= planned.batch_size) return true;
  return planned.distinct != nullptr &&
         (planned.num_ids > 2 * planned.batch_size || planned.dim <= kShortRow);
}

// Where sums are: memory that a device reads by itself, if there is any.
class SumBuffer {
 public:
  explicit SumBuffer(size_t floats)
      : transfer_(AllocateTransferMemory(floats * sizeof(float))),
        ordinary_(HandleBuffers().Acquire()) {
    data_ = transfer_ != nullptr ? static_cast<float*>(transfer_)
                                 : ordinary_->ReserveOf<float>(floats);
  }
  ~SumBuffer() {
    if (transfer_ != nullptr) FreeTransferMemory(transfer_);
  }
  SumBuffer(const SumBuffer&) = delete;
  SumBuffer& operator=(const SumBuffer&) = delete;
  float* data() const { return data_; }

 private:
  void* const transfer_;
  Recycler<LineBuffer>::Handle ordinary_;
  float* data_ = nullptr;
};

// Step 1 of the updates by gradients of samples: nothing where a device sums
// them, else their sums, in 'buffers'. Null in sums[t]: not wanted.
Status SumPooled(Span<const UpdateInput> inputs, std::vector<Update>* updates,
                 std::vector<std::unique_ptr<SumBuffer>>* buffers,
                 Parallel* parallel) {
  // A table may have been initialized elsewhere since it was looked at.
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].pooled_grads == nullptr) continue;
    (*updates)[i].grads = (*updates)[i].pooled_grads = nullptr;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    Update& update = (*updates)[i];
    if (inputs[i].pooled_grads == nullptr || update.num_keys == 0) continue;
    if (inputs[i].stream != nullptr) {
      EV_RETURN_IF_ERROR(update.table->CheckTakesDeviceTensors("the gradient"));
    }
    if (SumsOnDevice(*update.table, *update.planned, inputs[i].stream)) {
      update.stream = inputs[i].stream;
      update.pooled_grads = inputs[i].pooled_grads;
      continue;
    }
    if (update.grads != nullptr) continue;  // summed with an earlier one
    // All tables of one plan at once.
    const LookupPlan& plan = *inputs[i].plan;
    std::vector<const float*> grads(plan.num_tables(), nullptr);
    std::vector<float*> sums(plan.num_tables(), nullptr);
    for (size_t j = i; j < inputs.size(); ++j) {
      const int t = inputs[j].plan_table;
      Update& other = (*updates)[j];
      if (inputs[j].plan != &plan || inputs[j].pooled_grads == nullptr ||
          SumsOnDevice(*other.table, *other.planned, inputs[j].stream) ||
          other.grads != nullptr || sums[t] != nullptr) {
        continue;
      }
      buffers->emplace_back(new SumBuffer(other.num_keys * other.table->dim()));
      sums[t] = buffers->back()->data();
      grads[t] = inputs[j].pooled_grads;
      other.grads = sums[t];
    }
    EV_RETURN_IF_ERROR(PooledBackward(plan, grads, sums, parallel));
  }
  return Status::OK();
}

// Whether anything is noted about rows that were updated.
bool NeedsStamps(const EmbeddingTable::Impl& table) {
  return table.options.record_frequency || table.options.record_version ||
         table.changes != nullptr;
}

// Whether an update by gradients that are summed on a device needs nothing of
// its rows here: no handle that is another by now, none to be kept for a save,
// nothing to be noted about a row, nobody to be asked whether a key gets one.
bool StaysOnDevice(const Update& update) {
  const EmbeddingTable::Impl& table = *update.table;
  return update.pooled_grads != nullptr &&
         update.planned->distinct != nullptr &&
         update.planned->generation == table.generation &&
         table.frozen_rows.empty() && table.filter == nullptr &&
         !NeedsStamps(table);
}

// Step 1, in its end: keys, counts and handles come here where they are wanted.
Status FetchPlanned(Span<const UpdateInput> inputs,
                    std::vector<Update>* updates, Parallel* parallel) {
  return RunTasksWithStatus(
      parallel, static_cast<int64_t>(inputs.size()), [&](int64_t i) {
        Update& update = (*updates)[i];
        if (update.planned == nullptr) return Status::OK();
        const PlannedTable& planned = *update.planned;
        update.stays_on_device = StaysOnDevice(update);
        if (update.stays_on_device) {
          const DeviceDistinct& distinct = *planned.distinct;
          update.keys = Span<const int64_t>(distinct.unknown_keys(),
                                            distinct.num_unknown());
          update.counts = nullptr;
          return Status::OK();
        }
        EV_RETURN_IF_ERROR(inputs[i].plan->Fetch(inputs[i].plan_table));
        update.keys = Span<const int64_t>(planned.unique, planned.num_unique);
        update.counts = planned.occurrences != nullptr ? planned.occurrences
                                                       : planned.counts;
        return Status::OK();
      });
}

// Where keys [begin, end) were last seen: in the plan, if there is one and it
// is still right, else in the index.
void FindKnown(const Update& update, RowHandle* handles, int64_t begin,
               int64_t end) {
  const PlannedTable* planned = update.planned;
  if (planned != nullptr && planned->generation == update.table->generation) {
    const RowHandle* const known =
        update.stays_on_device ? planned->unknown_handles : planned->handles;
    std::copy(known + begin, known + end, handles + begin);
  } else {
    update.table->index.Find(update.keys.subspan(begin, end - begin),
                             handles + begin);
  }
}

// Step 2 for keys [begin, end) of an update that has its own handles.
Status FindHandles(const Update& update, RowHandle* handles, int64_t begin,
                   int64_t end) {
  const PlannedTable* planned = update.planned;
  const bool is_planned =
      planned != nullptr && planned->generation == update.table->generation;
  const Span<const int64_t> keys = update.keys.subspan(begin, end - begin);
  TableJournal::Writer writer(update.journal);
  if (update.table->filter == nullptr && !is_planned) {
    return update.table->FindOrInsert(keys, handles + begin, writer.part());
  }
  if (!update.handles_known) FindKnown(update, handles, begin, end);
  // Only those that had no row; another call may have inserted them since.
  return update.table->AdmitAbsent(
      keys, update.counts == nullptr ? nullptr : update.counts + begin,
      update.call.step, handles + begin, writer.part());
}

// The first row in [begin, end) that is updated, or end.
int64_t SkipKeptOut(const Update& update, int64_t begin, int64_t end) {
  while (begin < end && update.handles[begin] >= kFirstReservedHandle) ++begin;
  return begin;
}

void StampRows(const Update& update, int64_t begin, int64_t end) {
  for (int64_t i = SkipKeptOut(update, begin, end); i < end;
       i = SkipKeptOut(update, i + 1, end)) {
    update.table->AddToMeta(update.handles[i],
                            update.counts == nullptr ? 1 : update.counts[i],
                            update.call);
  }
}

// Step 3 for rows [begin, end), which no other call updates now.
Status ApplyAlone(const RowRule& rule, const Update& update, int64_t begin,
                  int64_t end) {
  EmbeddingTable::Impl* table = update.table;
  const int64_t at_once = table->home->costs().rows_per_apply;
  const bool with_meta = NeedsStamps(*table);
  for (int64_t i = begin; i < end; i += at_once) {
    const int64_t last = std::min(end, i + at_once);
    if (table->changes != nullptr) {
      // Stamped when the rule is through with these rows.
      for (int64_t j = SkipKeptOut(update, i, last); j < last;
           j = SkipKeptOut(update, j + 1, last)) {
        table->changes->PrefetchMark(update.handles[j]);
      }
    }
    EV_RETURN_IF_ERROR(table->Named(table->home->Apply(
        rule, Span<const RowHandle>(update.handles + i, last - i),
        update.slot_columns, update.grads + i * table->dim())));
    if (with_meta) StampRows(update, i, last);
  }
  return Status::OK();
}

// The same while others update the table too: rows sorted by stripe, each
// stripe under its mutex.
Status ApplyStriped(const RowRule& rule, const Update& update, int64_t begin,
                    int64_t end) {
  EmbeddingTable::Impl* table = update.table;
  const int64_t dim = table->dim();
  std::vector<int64_t> by_stripe[UpdateLock::kStripes];
  for (int64_t i = SkipKeptOut(update, begin, end); i < end;
       i = SkipKeptOut(update, i + 1, end)) {
    by_stripe[UpdateLock::StripeOf(update.handles[i])].push_back(i);
  }
  std::vector<RowHandle> handles;
  std::vector<float> grads;
  for (const std::vector<int64_t>& rows : by_stripe) {
    if (rows.empty()) continue;
    handles.clear();
    grads.clear();
    for (int64_t i : rows) {
      handles.push_back(update.handles[i]);
      const float* const grad = update.grads + i * dim;
      grads.insert(grads.end(), grad, grad + dim);
    }
    std::lock_guard<std::mutex> lock(*table->update_lock.stripe(handles[0]));
    EV_RETURN_IF_ERROR(table->Named(
        table->home->Apply(rule, handles, update.slot_columns, grads.data())));
    for (int64_t i : rows) StampRows(update, i, i + 1);
  }
  return Status::OK();
}

// Step 3 for rows [begin, end).
Status ApplyRows(const RowRule& rule, const Update& update, int64_t begin,
                 int64_t end) {
  if (update.solo) return ApplyAlone(rule, update, begin, end);
  if (update.table->home->costs().writes_side_by_side) {
    return ApplyStriped(rule, update, begin, end);
  }
  // One piece at a time: the first stripe stands for all.
  std::lock_guard<std::mutex> lock(*update.table->update_lock.stripe(0));
  return ApplyAlone(rule, update, begin, end);
}

// Step 2 of the updates of one round. buffers: where handles live that are not
// the plan's.
Status FindAllHandles(std::vector<Update>* updates, int round,
                      std::vector<Recycler<LineBuffer>::Handle>* buffers,
                      Parallel* parallel) {
  TaskList count(kKeysPerTask), find(kKeysPerTask);
  std::vector<RowHandle*> own(updates->size(), nullptr);
  for (size_t i = 0; i < updates->size(); ++i) {
    Update& update = (*updates)[i];
    if (update.round != round) continue;
    const PlannedTable* planned = update.planned;
    if (planned != nullptr && planned->generation == update.table->generation &&
        planned->num_absent == 0) {
      update.handles = update.stays_on_device ? nullptr : planned->handles;
      continue;
    }
    const int64_t n = update.keys.size();
    buffers->push_back(HandleBuffers().Acquire());
    own[i] = buffers->back()->ReserveOf<RowHandle>(n);
    update.handles = own[i];
    if (n > kKeysPerTask) {
      find.AddAlone(static_cast<int>(i), n, kInsertsPerTask);
    } else {
      find.Add(static_cast<int>(i), n, 1);
    }
    const AdmissionFilter* filter = update.table->filter.get();
    update.handles_known = filter != nullptr && filter->is_bloom();
    if (update.handles_known) count.Add(static_cast<int>(i), n, 1);
  }
  // A Bloom filter is asked about the first key when it has counted the last.
  EV_RETURN_IF_ERROR(RunPieces(parallel, count, [&](const Piece& piece) {
    const Update& update = (*updates)[piece.item];
    const int32_t* counts = update.counts;
    TableJournal::Writer writer(update.journal);
    FindKnown(update, own[piece.item], piece.begin, piece.end);
    update.table->CountAbsent(
        update.keys.subspan(piece.begin, piece.end - piece.begin),
        counts == nullptr ? nullptr : counts + piece.begin,
        own[piece.item] + piece.begin, writer.part());
    return Status::OK();
  }));
  return RunPieces(parallel, find, [&](const Piece& piece) {
    return FindHandles((*updates)[piece.item], own[piece.item], piece.begin,
                       piece.end);
  });
}

PooledUpdate PooledUpdateOf(const Update& update) {
  PooledUpdate pooled;
  pooled.table = update.table;
  pooled.planned = update.planned;
  if (update.stays_on_device) {
    pooled.unknown_handles = update.handles;
  } else {
    pooled.handles = update.handles;
  }
  pooled.slot_columns = update.slot_columns;
  pooled.grads = update.pooled_grads;
  pooled.stream = update.stream;
  pooled.is_solo = update.solo;
  return pooled;
}

// Step 3 of the updates of one round, whose tables are distinct.
Status ApplyRound(const RowRule& rule, const std::vector<Update>& updates,
                  int round, Parallel* parallel) {
  TaskList apply(kMostFloatsPerTask);
  std::vector<PooledUpdate> pooled;
  for (size_t i = 0; i < updates.size(); ++i) {
    if (updates[i].round != round) continue;
    if (updates[i].pooled_grads != nullptr) {
      pooled.push_back(PooledUpdateOf(updates[i]));
      continue;
    }
    const RowHomeCosts& costs = updates[i].table->home->costs();
    apply.Add(static_cast<int>(i), updates[i].keys.size(),
              updates[i].table->dim() *
                  (kMostFloatsPerTask / costs.floats_per_update));
  }
  EV_RETURN_IF_ERROR(
      ApplyPooledOnDevices(rule.name(), rule.hyper(), pooled, parallel));
  TaskList stamp(kKeysPerTask);
  for (size_t i = 0; i < updates.size(); ++i) {
    if (updates[i].round == round && updates[i].pooled_grads != nullptr &&
        NeedsStamps(*updates[i].table)) {
      stamp.Add(static_cast<int>(i), updates[i].keys.size(), 1);
    }
  }
  RunPieces(parallel, stamp, [&](const Piece& piece) {
    const Update& update = updates[piece.item];
    std::unique_lock<std::mutex> lock;
    if (!update.solo) {
      lock = std::unique_lock<std::mutex>(*update.table->update_lock.stripe(0));
    }
    StampRows(update, piece.begin, piece.end);
  });
  return RunPieces(parallel, apply, [&](const Piece& piece) {
    return ApplyRows(rule, updates[piece.item], piece.begin, piece.end);
  });
}

}  // namespace

Status ApplyRule(const std::string& rule_name, Span<const float> hyper,
                 Span<const UpdateInput> inputs,
                 Span<const std::vector<SlotSpec>> slots, int64_t step,
                 Parallel* parallel) {
  return NoThrow("rule " + rule_name, [&] {
    std::unique_ptr<const RowRule> rule;
    EV_RETURN_IF_ERROR(MakeRowRule(rule_name, hyper, &rule));
    if (slots.size() != inputs.size()) {
      return InvalidArgument("rule " + rule_name + " got " +
                             std::to_string(inputs.size()) + " tables and " +
                             std::to_string(slots.size()) + " lists of slots");
    }
    for (size_t i = 0; i < inputs.size(); ++i) {
      EV_RETURN_IF_ERROR(CheckInput(inputs[i], *rule, slots[i], i));
    }

    std::vector<Update> updates(inputs.size());
    std::vector<TableJournal> journals(inputs.size());
    std::vector<EmbeddingTable::Impl*> impls;
    int num_rounds = 0;
    int num_unplanned = 0;
    for (size_t i = 0; i < inputs.size(); ++i) {
      Update& update = updates[i];
      update.table = inputs[i].table->impl();
      update.keys = inputs[i].keys;
      update.num_keys = update.keys.size();
      update.grads = inputs[i].grads;
      update.journal = &journals[i];
      for (size_t j = 0; j < i; ++j) {
        if (updates[j].table == update.table) {
          update.round = updates[j].round + 1;
          update.call = updates[j].call;
        }
      }
      if (update.round == 0) update.call = update.table->BeginCall(step);
      num_rounds = std::max(num_rounds, update.round + 1);
      impls.push_back(update.table);
      if (inputs[i].plan != nullptr) {
        update.planned = &inputs[i].plan->planned(inputs[i].plan_table);
        update.num_keys = update.planned->num_unique;
      } else if (!inputs[i].keys.empty()) {
        ++num_unplanned;
      }
    }
    std::shared_ptr<LookupPlan> own_plan;
    if (num_unplanned > 0) {
      own_plan = LookupPlan::Make(num_unplanned);
      const SharedGates gates(impls, SharedGates::Purpose::kReading);
      EV_RETURN_IF_ERROR(
          SumDuplicates(inputs, own_plan.get(), &updates, parallel));
    }
    std::vector<Recycler<LineBuffer>::Handle> buffers;

    bool rows_change = false;
    const auto apply = [&] {
      for (;;) {
        for (size_t i = 0; i < inputs.size(); ++i) {
          EV_RETURN_IF_ERROR(inputs[i].table->EnsureSlots(slots[i], nullptr));
        }
        const SharedGates gates(impls, SharedGates::Purpose::kUpdating);
        // Gone again when a table was initialized meanwhile.
        bool all_there = true;
        std::vector<int> columns;
        for (size_t i = 0; i < updates.size() && all_there; ++i) {
          Update& update = updates[i];
          all_there = update.table->FindSlots(slots[i], &columns);
          update.slot_columns = columns;
        }
        if (!all_there) continue;
        std::vector<std::unique_ptr<SumBuffer>> sums;
        EV_RETURN_IF_ERROR(SumPooled(inputs, &updates, &sums, parallel));
        EV_RETURN_IF_ERROR(FetchPlanned(inputs, &updates, parallel));
        const UpdateLocks locks(gates.tables());
        for (Update& update : updates) update.solo = locks.solo(update.table);
        for (int round = 0; round < num_rounds; ++round) {
          EV_RETURN_IF_ERROR(
              FindAllHandles(&updates, round, &buffers, parallel));
        }
        for (const Update& update : updates) {
          if (update.stays_on_device) continue;
          update.table->BeforeChange(
              Span<const RowHandle>(update.handles, update.keys.size()));
        }
        // Whatever has too little room says so now, before any row has changed.
        std::vector<RowRoom> rooms(updates.size());
        for (size_t i = 0; i < updates.size(); ++i) {
          EV_RETURN_IF_ERROR(
              rooms[i].Reserve(updates[i].table, updates[i].num_keys));
        }
        rows_change = true;
        for (size_t i = 0; i < updates.size(); ++i) {
          updates[i].table->ForgetAdmitted(journals[i]);
        }
        for (int round = 0; round < num_rounds; ++round) {
          EV_RETURN_IF_ERROR(ApplyRound(*rule, updates, round, parallel));
        }
        return Status::OK();
      }
    };
    const Status status = NoThrow("rule " + rule_name, apply);
    if (!status.ok() && !rows_change) {
      // The last first, as a table may come again. Outside of the gates.
      for (size_t i = updates.size(); i > 0; --i) {
        updates[i - 1].table->TakeBack(journals[i - 1]);
      }
    }
    EV_RETURN_IF_ERROR(status);
    RunTasks(parallel, static_cast<int64_t>(impls.size()),
             [&](int64_t i) { impls[i]->EvictExcess(updates[i].call); });
    return Status::OK();
  });
}

}  // namespace ev
