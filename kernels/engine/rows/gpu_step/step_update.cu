// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <cuda_runtime_api.h>

#include <algorithm>
#include <list>
#include <new>
#include <utility>

#include "kernels/engine/base/gpu/block_parts.h"
#include "kernels/engine/base/gpu/cuda_error.h"
#include "kernels/engine/base/gpu/pinned_memory.h"
#include "kernels/engine/gpu_step/update.h"
#include "kernels/engine/optimizer/rule_list.h"
#include "kernels/engine/rows/gpu_step/step_counters.h"
#include "kernels/engine/rows/gpu_step/step_lookup.h"
#include "kernels/engine/rows/gpu_step/step_moves.h"
#include "kernels/engine/rows/gpu_step/step_new_rows.h"
#include "kernels/engine/rows/gpu_step/step_update.h"

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

// Returns the table's fields for the update's kernels, without its rows and
// gradients. fits: the gradients are aligned to four numbers.
StepTable TableOf(const StepLayout::Table& of, bool fits) {
  StepTable to = {};
  to.id_begin = of.id_begin;
  to.num_ids = of.num_ids;
  to.sample_begin = of.sample_begin;
  to.num_samples = of.num_samples;
  to.dim = static_cast<int32_t>(of.dim);
  to.combiner = static_cast<int32_t>(of.combiner);
  to.has_host_rows = of.has_host_rows;
  to.dim_class = fits ? UpdateClassOf(to.dim, of.row_type) : kAnyClass;
  return to;
}

// Sets where the rows and counters are, after FollowRows.
void DescribeRows(StepUpdate::Call* call) {
  for (size_t k = 0; k < call->updates.size(); ++k) {
    GpuRows* const rows = call->rows[k];
    StepTable* const table = &call->tables[k];
    const PiecesView pieces = rows->pieces();
    table->pieces = pieces.pieces;
    table->rows_log2 = pieces.rows_log2;
    table->places = pieces.placed.places;
    table->places_log2 = kPlacesLog2;
    table->first_on_host = pieces.placed.num_on_gpu;
    PlaceState* const state = pieces.placed.state;
    table->updated_on_host = state == nullptr ? nullptr : &state->updated;
    table->stride = pieces.stride;
    table->slots_at = static_cast<int32_t>(rows->shape().offset(1));
    table->value_type = rows->shape().value_type();
    table->overflows = rows->overflow_counter();
    if (call->updates[k].counters == nullptr) continue;
    table->counters = rows->counters()->pieces();
    rows->counters()->WillHave();
  }
}

// Enqueues the rule for all rows of the plan.
Status LaunchRule(const std::string& rule, Span<const float> hyper,
                  StepGroups* groups) {
  const cudaStream_t s = groups->context()->stream();
  EV_RETURN_IF_ERROR(groups->side()->Fork(s));
  const float* const grads = nullptr;  // see pooled_begin
  Status status;
  EV_RETURN_IF_ERROR(VisitRule(rule, hyper, [&](const auto& r) {
    using Rule = typename std::decay<decltype(r)>::type;
    StepPlan plan = groups->plan();
    plan.grad_factor = GradFactor<Rule>(hyper);
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

}  // namespace

bool StepUpdate::ExpectsUpdate() const {
  for (const StepLayout::Table& table : layout_->tables) {
    if (!table.rows->hints().groups_early) return false;
  }
  // No step groups early again until an update has set the flags again.
  for (const StepLayout::Table& table : layout_->tables) {
    table.rows->hints().groups_early = false;
  }
  return true;
}

Status StepUpdate::LaunchGroups(StepGroups* groups) const {
  const StepLayout::Memory& device = layout_->on_device;
  StepGroups::Source source;
  source.handles = find_->handles();
  if (ids_->has_lists()) {
    source.samples = work_->OnDevice<uint32_t>(device.samples);
  }
  if (layout_->divides) {
    source.factors = work_->OnDevice<float>(device.factors);
  }
  return groups->Launch(source);
}

// If it fails, Run groups the occurrences, or returns the error.
void StepUpdate::GroupEarly() {
  if (!groups_early_) return;
  groups_early_ = false;
  try {
    LaunchGroupsEarly();
  } catch (const std::bad_alloc&) {
  }
}

// May run after the pooling, when Table::rows may have been destroyed.
void StepUpdate::LaunchGroupsEarly() {
  std::vector<int> numbers;
  std::vector<StepTable> tables;
  for (const StepLayout::Table& table : layout_->tables) {
    numbers.push_back(static_cast<int>(numbers.size()));
    tables.push_back(TableOf(table, /*fits=*/true));
  }
  std::unique_ptr<StepGroups> groups;
  if (cudaSetDevice(work_->device()) != cudaSuccess ||
      !StepGroups::Make(work_->device(), std::move(numbers), std::move(tables),
                        &groups)
           .ok() ||
      !groups->context()->Follow(DeviceStream{work_->stream()}).ok() ||
      !LaunchGroups(groups.get()).ok()) {
    return;
  }
  groups_ = std::move(groups);
}

// Checks an update and adds its part of the call's arrays.
Status StepUpdate::AddUpdate(size_t k, Call* call) const {
  const GpuStepUpdate& update = call->updates[k];
  const StepLayout::Table& of = layout_->tables[update.number];
  GpuRows* const rows = static_cast<GpuRows*>(update.table);
  EV_RETURN_IF_ERROR(rows->CheckUsable());
  auto* const put = static_cast<GpuGradients*>(update.put_grads);
  if (put != nullptr) {
    call->put_grads.push_back(put);
  } else {
    EV_RETURN_IF_ERROR(
        CheckIsOn(work_->device(), update.grads.data(), "the gradient"));
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
  table.rounds_randomly = update.salt != nullptr;
  if (update.salt != nullptr) table.update_salt = *update.salt;
  table.occurrences = ids_->DeviceOccurrences(update.number);
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
  call->new_handles.push_back(k);
  return Status::OK();
}

Status StepUpdate::Prepare(Span<const GpuStepUpdate> updates,
                           const DeviceStream* stream, Call* call) const {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(work_->device()));
  // Recorded first: the gradients do not depend on the stream's later work.
  if (stream != nullptr) {
    EV_RETURN_IF_ERROR(DeviceEvent::Record(
        static_cast<cudaStream_t>(stream->native), &call->made));
  }
  call->updates.assign(updates.begin(), updates.end());
  std::sort(call->updates.begin(), call->updates.end(),
            [](const GpuStepUpdate& a, const GpuStepUpdate& b) {
              return a.number < b.number;
            });
  call->rows_only.resize(call->updates.size());
  for (size_t k = 0; k < call->updates.size(); ++k) {
    EV_RETURN_IF_ERROR(AddUpdate(k, call));
  }
  if (call->num_listed == 0) return Status::OK();
  return StepRows::Make(work_->device(), call->num_listed, &call->listed);
}

Status StepUpdate::TakeGroups(Call* call, bool* is_grouped) {
  groups_early_ = false;  // Run groups, if still needed
  call->groups = std::move(groups_);
  *is_grouped = call->groups != nullptr && !call->changes_handles() &&
                call->groups->AreOf(call->numbers, call->tables);
  if (*is_grouped) return Status::OK();
  if (call->groups != nullptr) {
    work_->Begin();
    EV_RETURN_IF_ERROR(call->groups->End(work_->context()));
    work_->Succeed();
    call->groups.reset();
  }
  return StepGroups::Make(work_->device(), call->numbers, call->tables,
                          &call->groups);
}

Status StepUpdate::SetHandles(const Call& call, StreamView stream) {
  int64_t num_ids = 0;
  for (size_t k : call.new_handles) {
    num_ids += find_->unknown(call.updates[k].number).at.size();
  }
  if (num_ids == 0) return Status::OK();
  Parts both;
  const size_t ids_at = both.AddBytes(num_ids * sizeof(uint32_t));
  const size_t given_at = both.AddBytes(num_ids * sizeof(RowHandle));
  WorkContext* context = nullptr;
  EV_RETURN_IF_ERROR(work_->AcquireMore(both.bytes(), both.bytes(), &context));
  char* const on_device = context->device();
  uint32_t* const ids = reinterpret_cast<uint32_t*>(context->host() + ids_at);
  RowHandle* const given =
      reinterpret_cast<RowHandle*>(context->host() + given_at);
  int64_t id = 0;
  for (size_t k : call.new_handles) {
    const StepFind::Unknown& unknown = find_->unknown(call.updates[k].number);
    for (size_t i = 0; i < unknown.at.size(); ++i, ++id) {
      ids[id] = unknown.at[i];
      given[id] = call.rows_only[k][unknown.key_of[i]];
    }
  }
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(on_device, context->host(),
                                          both.bytes(), cudaMemcpyHostToDevice,
                                          stream.get()));
  return LaunchSetHandles(
      reinterpret_cast<const uint32_t*>(on_device + ids_at),
      reinterpret_cast<const RowHandle*>(on_device + given_at), num_ids,
      find_->handles(), stream);
}

Status StepUpdate::SetGivenHandles(const Call& call, StreamView stream) {
  size_t bytes = 0;
  for (const GpuStepUpdate& update : call.updates) {
    bytes += update.handles.size() * sizeof(RowHandle);
  }
  if (bytes == 0) return Status::OK();
  WorkContext* context = nullptr;
  EV_RETURN_IF_ERROR(work_->AcquireMore(bytes, 0, &context));
  char* on_host = context->host();
  for (const GpuStepUpdate& update : call.updates) {
    const size_t size = update.handles.size() * sizeof(RowHandle);
    if (size == 0) continue;
    std::transform(update.handles.begin(), update.handles.end(),
                   reinterpret_cast<RowHandle*>(on_host), [](RowHandle handle) {
                     return handle < kFirstReservedHandle ? handle : ev::kNoRow;
                   });
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
        find_->handles() + layout_->tables[update.number].id_begin, on_host,
        size, cudaMemcpyHostToDevice, stream.get()));
    on_host += size;
  }
  return Status::OK();
}

Status StepUpdate::LaunchPlan(bool is_grouped, Call* call,
                              InFlightEvents* followed, bool* has_counters) {
  StepGroups* const groups = call->groups.get();
  const cudaStream_t s = groups->context()->stream();
  EV_RETURN_IF_ERROR(WriteNew(call->rows, s, work_));
  EV_RETURN_IF_ERROR(FollowRows(call->rows, s, followed));
  DescribeRows(call);
  // Waits for the lookup. FollowRows has waited for earlier updates of the same
  // tables; updates of other tables change nothing that this one reads.
  EV_RETURN_IF_ERROR(groups->context()->Follow(DeviceStream{work_->stream()}));
  if (!is_grouped) {
    EV_RETURN_IF_ERROR(SetHandles(*call, s));
    EV_RETURN_IF_ERROR(SetGivenHandles(*call, s));
    EV_RETURN_IF_ERROR(LaunchGroups(groups));
  }
  EV_RETURN_IF_ERROR(groups->Describe(call->tables));
  int64_t num_places = 0;
  for (GpuRows* rows : call->rows) {
    if (rows->places() == nullptr) continue;
    num_places = std::max(num_places, rows->places()->num_places());
  }
  EV_RETURN_IF_ERROR(groups->OrderByPlace(num_places));
  if (call->listed != nullptr) {
    EV_RETURN_IF_ERROR(
        call->listed->Launch(groups->plan(), groups->num_processors(), s));
  }
  if (!call->have_counters) return Status::OK();
  *has_counters = true;
  return LaunchCounters(groups->plan(), groups->num_processors(), s);
}

Status StepUpdate::Run(const std::string& rule, Span<const float> hyper,
                       const DeviceStream* stream, Call* call) {
  bool is_grouped = false;
  EV_RETURN_IF_ERROR(TakeGroups(call, &is_grouped));
  // For SetHandles, SetGivenHandles and the groups.
  work_->ReserveKept(3);
  std::list<RowPlaces::Use> uses;
  for (GpuRows* rows : call->rows) {
    if (rows->places() != nullptr) uses.emplace_back(rows->places());
  }
  // From here on, work may be in flight.
  work_->Begin();
  StepGroups* const groups = call->groups.get();
  const cudaStream_t s = groups->context()->stream();
  WaitsAfterFailure after_failure(s);
  InFlightEvents followed;
  EV_RETURN_IF_ERROR(
      LaunchPlan(is_grouped, call, &followed, &after_failure.waits));
  // end() is one event for all work of the step, so this work comes after the
  // previous end().
  if (work_->end() != nullptr) EV_RETURN_IF_ERROR(work_->end()->Before(s));
  // Waited for last, so that the work above runs while the gradients are
  // computed or copied.
  if (call->made != nullptr) EV_RETURN_IF_ERROR(call->made->Before(s));
  for (GpuGradients* put : call->put_grads) {
    after_failure.waits = true;  // before the gradients' memory is reused
    EV_RETURN_IF_ERROR(put->Before(s));
  }
  EV_RETURN_IF_ERROR(LaunchRule(rule, hyper, groups));
  if (call->listed != nullptr) EV_RETURN_IF_ERROR(call->listed->Before(s));
  EV_RETURN_IF_ERROR(work_->End(s, stream));
  for (GpuGradients* put : call->put_grads) {
    EV_RETURN_IF_ERROR(put->UsedUntil(*work_->end()));
  }
  const bool expects_more = !call->changes_handles() &&
                            call->updates.size() == layout_->tables.size();
  for (GpuRows* rows : call->rows) {
    rows->events().Add(work_->end(), followed);
    rows->hints().groups_early = expects_more;
    rows->hints().lookups = 0;
  }
  after_failure.waits = false;
  uses.clear();
  std::shared_ptr<DeviceEvent> moved =
      MoveRows(*layout_, *work_, call->numbers, call->rows, s, &followed);
  if (moved != nullptr) work_->MoveEnd(std::move(moved));
  work_->Keep(groups->TakeContext());
  work_->Succeed();
  return Status::OK();
}

void StepUpdate::Finish() {
  if (groups_ != nullptr && !groups_->End(work_->context()).ok()) {
    work_->Begin();
  }
}

}  // namespace gpu
}  // namespace ev
