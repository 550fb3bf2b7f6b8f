// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// StepCall::Update: groups the occurrences by row and updates the rows.
//
// Grouping needs no gradients, so it overlaps with their computation. It is
// launched right after the pooling if the last update covered all tables of its
// step and every key had a row, since the next update will probably too.
// Otherwise Update launches it.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/pinned_memory.h"
#include "kernels/engine/gpu_step/step_plan.cuh"
#include "kernels/engine/gpu_step/update.h"
#include "kernels/engine/optimizer/rule_list.h"
#include "kernels/engine/rows/gpu/gpu_gradients.h"
#include "kernels/engine/rows/gpu_step/step_call.h"
#include "kernels/engine/rows/gpu_step/step_counters.h"
#include "kernels/engine/rows/gpu_step/step_groups.h"
#include "kernels/engine/rows/gpu_step/step_rows.h"

namespace ev {
namespace gpu {

namespace {

// Synchronizes the stream if the update fails, so that no pending counter is
// taken, and no memory of gradients reused, while its work is in flight.
class WaitsAfterFailure {
 public:
  explicit WaitsAfterFailure(cudaStream_t stream) : stream_(stream) {}
  ~WaitsAfterFailure() {
    if (waits) EV_CUDA_LOG_IF_ERROR(cudaStreamSynchronize(stream_));
  }
  WaitsAfterFailure(const WaitsAfterFailure&) = delete;
  WaitsAfterFailure& operator=(const WaitsAfterFailure&) = delete;

  bool waits = false;

 private:
  const cudaStream_t stream_;
};

}  // namespace

bool StepCall::CanUpdate(const std::string& rule,
                         Span<const int> slot_columns) const {
  for (size_t k = 0; k < slot_columns.size(); ++k) {
    if (slot_columns[k] != static_cast<int>(k)) return false;
  }
  return IsRule(rule);
}

// Returns the table's fields for the update's kernels, without its rows and
// gradients. fits: the gradients are aligned to four numbers.
StepTable StepCall::TableOf(const Table& of, bool fits) {
  StepTable to = {};
  to.id_begin = of.id_begin;
  to.num_ids = of.num_ids;
  to.sample_begin = of.sample_begin;
  to.num_samples = of.num_samples;
  to.dim = static_cast<int32_t>(of.dim);
  to.slot_stride = to.dim;
  to.combiner = static_cast<int32_t>(of.combiner);
  to.has_host_rows = of.has_host_rows;
  to.dim_class = fits ? ClassOfDim(to.dim) : kClasses - 1;
  return to;
}

Status StepCall::LaunchGroups(StepGroups* groups) const {
  StepGroups::Source source;
  source.handles = OnDevice<RowHandle>(on_device_.handles);
  if (has_lists_) source.samples = OnDevice<uint32_t>(on_device_.samples);
  if (divides_) source.factors = OnDevice<float>(on_device_.factors);
  return groups->Launch(source);
}

bool StepCall::ExpectsUpdate() const {
  for (const Table& table : tables_) {
    if (!table.rows->hints().groups_early) return false;
  }
  // No step groups early again until an update has set the flags again.
  for (const Table& table : tables_) table.rows->hints().groups_early = false;
  return true;
}

std::function<void()> StepCall::TakeRest() {
  std::lock_guard<std::mutex> lock(mu_);
  if (!groups_early_) return nullptr;
  const std::shared_ptr<StepCall> self = shared_from_this();
  return [self] { self->GroupEarly(); };
}

// Runs on a pool thread; must not throw. If it fails, Update groups the
// occurrences, or returns the error.
void StepCall::GroupEarly() {
  std::lock_guard<std::mutex> lock(mu_);
  if (!groups_early_) return;
  groups_early_ = false;
  try {
    LaunchGroupsEarly();
  } catch (const std::bad_alloc&) {
  }
}

// May run after Pool has returned, when Table::rows may have been destroyed.
void StepCall::LaunchGroupsEarly() {
  std::vector<int> numbers;
  std::vector<StepTable> tables;
  for (const Table& table : tables_) {
    numbers.push_back(static_cast<int>(numbers.size()));
    tables.push_back(TableOf(table, /*fits=*/true));
  }
  std::unique_ptr<StepGroups> groups;
  if (cudaSetDevice(device_) != cudaSuccess ||
      !StepGroups::Make(device_, std::move(numbers), std::move(tables), &groups)
           .ok() ||
      !groups->context()->Follow(DeviceStream{context_->stream()}).ok() ||
      !LaunchGroups(groups.get()).ok()) {
    return;
  }
  groups_ = std::move(groups);
}

// One call of Update.
struct StepCall::UpdateWork {
  // Sorted by the tables' order in the step; callers pass them in any order.
  std::vector<GpuStepUpdate> updates;
  // One entry per update.
  std::vector<int> numbers;
  std::vector<StepTable> tables;
  std::vector<GpuRows*> rows;
  std::vector<std::vector<RowHandle>> rows_only;
  // One entry per update that has new handles, or put gradients.
  std::vector<NewHandles> new_handles;
  std::vector<GpuGradients*> put_grads;
  int64_t num_listed = 0;  // ids of tables that list their rows
  bool have_handles = false, have_counters = false;

  bool changes_handles() const { return !new_handles.empty() || have_handles; }
};

// Checks an update and adds its part of the call's arrays.
Status StepCall::AddUpdate(size_t k, UpdateWork* call) const {
  const GpuStepUpdate& update = call->updates[k];
  const Table& of = tables_[update.number];
  GpuRows* const rows = static_cast<GpuRows*>(update.table);
  EV_RETURN_IF_ERROR(rows->CheckUsable());
  auto* const put = static_cast<GpuGradients*>(update.put_grads);
  if (put != nullptr) {
    call->put_grads.push_back(put);
  } else {
    EV_RETURN_IF_ERROR(CheckIsOn(device_, update.grads.data(), "the gradient"));
  }
  const ConstFloats grads = put != nullptr ? put->on_gpu() : update.grads;
  const uintptr_t address = reinterpret_cast<uintptr_t>(grads.data());
  const int64_t bytes = FloatBytes(grads.type());
  StepTable table = TableOf(of, address % (4 * bytes) == 0);
  // Counted from address 0: the gradients of the tables are separate arrays.
  table.pooled_begin = static_cast<int64_t>(address / bytes);
  table.grad_type = grads.type();
  table.number = update.number;
  table.lists_rows = update.lists_rows;
  table.occurrences = DeviceOccurrences(of);
  if (update.lists_rows) call->num_listed += of.num_ids;
  call->have_handles |= !update.handles.empty();
  if (update.counters != nullptr) {
    call->have_counters = true;
    table.counted_version_plus1 = update.counters->version_plus1;
    table.counted_call = update.counters->call;
  }
  call->numbers.push_back(update.number);
  call->tables.push_back(table);
  call->rows.push_back(rows);
  if (update.unknown_handles.empty()) return Status::OK();
  std::vector<RowHandle>* const rows_only = &call->rows_only[k];
  rows_only->assign(update.unknown_handles.begin(),
                    update.unknown_handles.end());
  for (RowHandle& handle : *rows_only) {
    if (handle >= kFirstReservedHandle) handle = ev::kNoRow;
  }
  call->new_handles.push_back({&of, *rows_only});
  return Status::OK();
}

// Takes the groups that were launched early, and sets *is_grouped, or makes
// groups that are not launched yet.
Status StepCall::TakeGroups(const UpdateWork& call,
                            std::unique_ptr<StepGroups>* groups,
                            bool* is_grouped) {
  groups_early_ = false;  // Update groups, if still needed
  *groups = std::move(groups_);
  *is_grouped = *groups != nullptr && !call.changes_handles() &&
                (*groups)->AreOf(call.numbers, call.tables);
  if (*is_grouped) return Status::OK();
  if (*groups != nullptr) {
    const bool had_failed = has_failed_;  // an earlier failure is kept
    has_failed_ = true;
    EV_RETURN_IF_ERROR((*groups)->End(context_.get()));
    has_failed_ = had_failed;
    groups->reset();
  }
  return StepGroups::Make(device_, call.numbers, call.tables, groups);
}

// Sets where the rows and counters are, after FollowRows.
void StepCall::DescribeRows(UpdateWork* call) {
  for (size_t k = 0; k < call->updates.size(); ++k) {
    GpuRows* const rows = call->rows[k];
    StepTable* const table = &call->tables[k];
    const PiecesView pieces = rows->pieces();
    table->pieces = pieces.pieces;
    table->rows_log2 = pieces.rows_log2;
    table->places = pieces.placed.places;
    table->places_log2 = kPlacesLog2;
    table->stride = pieces.stride;
    if (call->updates[k].counters == nullptr) continue;
    table->counters = rows->counters()->pieces();
    rows->counters()->WillHave();
  }
}

// Enqueues the rule for all rows of the plan.
Status StepCall::LaunchRule(const std::string& rule, Span<const float> hyper,
                            StepGroups* groups) {
  const cudaStream_t s = groups->context()->stream();
  EV_RETURN_IF_ERROR(groups->side()->Fork(s));
  const float* const grads = nullptr;  // see pooled_begin
  Status status;
  EV_RETURN_IF_ERROR(VisitRule(rule, hyper, [&](const auto& r) {
    using Rule = typename std::decay<decltype(r)>::type;
    const StepPlan& plan = groups->plan();
    const StreamView hot = groups->side()->get();
    for (int c = 0; c < kClasses && status.ok(); ++c) {
      if (plan.class_ids[c] == 0) continue;
      status = LaunchUpdate<Rule>(plan, c, grads, r, groups->num_processors(),
                                  s, hot);
    }
    if (status.ok() && groups->may_have_huge()) {
      status = LaunchHuge<Rule>(plan, groups->max_dim(), grads, r,
                                groups->num_processors(), hot);
    }
  }));
  EV_RETURN_IF_ERROR(groups->side()->Join(s));
  return status;
}

Status StepCall::Update(const std::string& rule, Span<const float> hyper,
                        Span<const GpuStepUpdate> updates,
                        const DeviceStream* stream,
                        std::unique_ptr<GpuMetaUpdates>* meta_updates) {
  meta_updates->reset();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  // Recorded first: the gradients do not depend on the stream's later work.
  std::shared_ptr<DeviceEvent> made;
  if (stream != nullptr) {
    EV_RETURN_IF_ERROR(
        DeviceEvent::Record(static_cast<cudaStream_t>(stream->native), &made));
  }
  UpdateWork call;
  call.updates.assign(updates.begin(), updates.end());
  std::sort(call.updates.begin(), call.updates.end(),
            [](const GpuStepUpdate& a, const GpuStepUpdate& b) {
              return a.number < b.number;
            });
  call.rows_only.resize(call.updates.size());
  for (size_t k = 0; k < call.updates.size(); ++k) {
    EV_RETURN_IF_ERROR(AddUpdate(k, &call));
  }

  std::unique_ptr<StepGroups> groups;
  // Destroyed before 'groups': its destructor waits for work that reads them.
  std::unique_ptr<StepRows> listed;
  if (call.num_listed > 0) {
    EV_RETURN_IF_ERROR(StepRows::Make(device_, call.num_listed, &listed));
  }

  std::lock_guard<std::mutex> lock(mu_);
  const bool had_failed = has_failed_;  // an earlier failure is kept
  bool is_grouped = false;
  EV_RETURN_IF_ERROR(TakeGroups(call, &groups, &is_grouped));
  // For SetHandles, SetGivenHandles and the groups.
  contexts_.reserve(contexts_.size() + 3);
  std::list<RowPlaces::Use> uses;
  for (GpuRows* rows : call.rows) {
    if (rows->places() != nullptr) uses.emplace_back(rows->places());
  }
  // From here on, work may be in flight.
  has_failed_ = true;
  const cudaStream_t s = groups->context()->stream();
  WaitsAfterFailure after_failure(s);
  InFlightEvents followed;
  EV_RETURN_IF_ERROR(FollowRows(call.rows, s, &followed));
  DescribeRows(&call);
  // Waits for the lookup. FollowRows has waited for earlier updates of the same
  // tables; updates of other tables change nothing that this one reads.
  EV_RETURN_IF_ERROR(
      groups->context()->Follow(DeviceStream{context_->stream()}));
  if (!is_grouped) {
    EV_RETURN_IF_ERROR(SetHandles(call.new_handles, s));
    EV_RETURN_IF_ERROR(SetGivenHandles(call.updates, s));
    EV_RETURN_IF_ERROR(LaunchGroups(groups.get()));
  }
  EV_RETURN_IF_ERROR(groups->Describe(call.tables));
  int64_t num_places = 0;
  for (GpuRows* rows : call.rows) {
    if (rows->places() == nullptr) continue;
    num_places = std::max(num_places, rows->places()->num_places());
  }
  EV_RETURN_IF_ERROR(groups->OrderByPlace(num_places));
  if (listed != nullptr) {
    EV_RETURN_IF_ERROR(
        listed->Launch(groups->plan(), groups->num_processors(), s));
  }
  if (call.have_counters) {
    after_failure.waits = true;
    EV_RETURN_IF_ERROR(
        LaunchCounters(groups->plan(), groups->num_processors(), s));
  }
  // end_ is one event for all work of the step, so this work comes after the
  // previous end_.
  if (end_ != nullptr) EV_RETURN_IF_ERROR(end_->Before(s));
  // Waited for last, so that the work above runs while the gradients are
  // computed or copied.
  if (made != nullptr) EV_RETURN_IF_ERROR(made->Before(s));
  for (GpuGradients* put : call.put_grads) {
    after_failure.waits = true;  // before the gradients' memory is reused
    EV_RETURN_IF_ERROR(put->Before(s));
  }
  EV_RETURN_IF_ERROR(LaunchRule(rule, hyper, groups.get()));
  if (listed != nullptr) EV_RETURN_IF_ERROR(listed->Before(s));
  EV_RETURN_IF_ERROR(End(s, stream));
  *meta_updates = std::move(listed);
  for (GpuGradients* put : call.put_grads) {
    EV_RETURN_IF_ERROR(put->UsedUntil(*end_));
  }
  const bool expects_more =
      !call.changes_handles() && call.updates.size() == tables_.size();
  for (GpuRows* rows : call.rows) {
    rows->events().Add(end_, followed);
    rows->hints().groups_early = expects_more;
    rows->hints().lookups = 0;
  }
  after_failure.waits = false;
  uses.clear();
  std::shared_ptr<DeviceEvent> moved =
      MoveRows(call.numbers, call.rows, s, &followed);
  if (moved != nullptr) end_ = std::move(moved);
  contexts_.push_back(groups->TakeContext());
  has_failed_ = had_failed;
  return Status::OK();
}

}  // namespace gpu
}  // namespace ev
