// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/update/row_update.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <list>
#include <map>
#include <memory>

#include "kernels/engine/base/random_rounding.h"
#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/update/update_steps.h"

namespace ev {
namespace {

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
                           std::to_string(slots.size()) + ", " +
                           table.QuotedName());
  }
  for (const SlotSpec& slot : slots) {
    if (slot.is_per_row() == rule.is_per_row()) continue;
    return InvalidArgument(
        "slot '" + slot.name + "' has one number per " +
        (slot.is_per_row() ? "row" : "element") + ", rule " + rule.name() +
        " needs one per " + (rule.is_per_row() ? "row" : "element") +
        ": expected a name that " +
        (rule.is_per_row() ? "ends" : "does not end") + " with " +
        kPerRowSlotSuffix + ", " + table.QuotedName());
  }
  if (in.keys.size() >
      static_cast<size_t>(std::numeric_limits<int32_t>::max())) {
    return InvalidArgument(
        "the number of keys: expected a number below 2^31, got " +
        std::to_string(in.keys.size()) + ", " + table.QuotedName());
  }
  if (in.pooled_grads != nullptr && in.plan == nullptr) {
    return InvalidArgument("gradients of samples need a plan, " +
                           table.QuotedName());
  }
  if (!in.keys.empty() &&
      (in.keys.data() == nullptr ||
       (in.grads == nullptr) == (in.pooled_grads == nullptr))) {
    return InvalidArgument(
        "keys need either gradients or gradients of samples, " +
        table.QuotedName());
  }
  if (in.stream != nullptr && in.pooled_grads == nullptr && !in.keys.empty()) {
    return InvalidArgument(
        "gradients in device memory: expected those of samples, " +
        table.QuotedName());
  }
  if (in.plan == nullptr) return Status::OK();
  if (in.plan_table < 0 || in.plan_table >= in.plan->num_tables() ||
      in.plan->table(in.plan_table) != in.table) {
    return InvalidArgument("table " + std::to_string(in.plan_table) +
                           " of the plan is not the table to update, " +
                           table.QuotedName());
  }
  if (in.stream != nullptr && in.plan->sums_on_cpu(in.plan_table)) {
    return InvalidArgument(
        "gradients of samples whose combiner selects: expected in CPU "
        "memory, " +
        table.QuotedName());
  }
  if (in.pooled_grads != nullptr && in.keys.empty()) return Status::OK();
  Span<const int64_t> planned;
  EV_RETURN_IF_ERROR(in.plan->UniqueKeys(in.plan_table, &planned));
  if (planned.size() != in.keys.size() ||
      (planned.data() != in.keys.data() && !planned.empty() &&
       std::memcmp(planned.data(), in.keys.data(),
                   planned.size() * sizeof(int64_t)) != 0)) {
    return InvalidArgument("the keys to update are not those of the plan, " +
                           table.QuotedName());
  }
  return Status::OK();
}

// Sets what the inputs determine of updates, which are empty, and begins a call
// of each table. Returns the number of rounds: a table that occurs k times has
// an update in each of k rounds.
int StartUpdates(Span<const UpdateInput> inputs, int64_t step,
                 std::vector<TableJournal>* journals,
                 std::vector<Update>* updates) {
  updates->resize(inputs.size());
  int num_rounds = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Update& update = (*updates)[i];
    update.table = inputs[i].table->impl();
    update.keys = inputs[i].keys;
    update.num_keys = update.keys.size();
    update.grads = inputs[i].grads;
    update.journal = &(*journals)[i];
    for (size_t j = 0; j < i; ++j) {
      if ((*updates)[j].table == update.table) {
        update.round = (*updates)[j].round + 1;
        update.call = (*updates)[j].call;
      }
    }
    if (update.round == 0) update.call = update.table->BeginCall(step);
    num_rounds = std::max(num_rounds, update.round + 1);
    if (inputs[i].plan == nullptr) continue;
    update.planned = &inputs[i].plan->planned(inputs[i].plan_table);
    update.num_keys = update.planned->num_unique;
  }
  return num_rounds;
}

// Numbers an update whose values are rounded stochastically.
void BeginRounding(Update* update) {
  EmbeddingTable::Impl* const table = update->table;
  update->rounds_randomly =
      table->is_narrow() && !table->options.rounds_to_nearest;
  if (!update->rounds_randomly) return;
  update->salt = UpdateSalt(
      table->rounding_seed.load(std::memory_order_relaxed),
      table->rounded_updates.fetch_add(1, std::memory_order_relaxed));
}

// Updates with keys that filters have admitted, by table: threads that erase
// from one index contend at every key.
using AdmittingUpdates =
    std::map<EmbeddingTable::Impl*, std::vector<const Update*>>;
AdmittingUpdates FindAdmitting(const std::vector<Update>& updates) {
  AdmittingUpdates all;
  for (const Update& update : updates) {
    const std::list<JournalPart>& parts = update.journal->parts();
    if (std::any_of(parts.begin(), parts.end(), [](const JournalPart& part) {
          return !part.admitted.empty();
        })) {
      all[update.table].push_back(&update);
    }
  }
  return all;
}

// Removes the filters' counters of those keys, at one or two cache misses each.
Status ForgetAdmitted(const AdmittingUpdates& admitting, Parallel* parallel) {
  std::vector<const AdmittingUpdates::value_type*> tables;
  for (const auto& one : admitting) tables.push_back(&one);
  return RunTasksWithStatus(
      parallel, static_cast<int64_t>(tables.size()), [&](int64_t k) {
        for (const Update* update : tables[k]->second) {
          for (const JournalPart& part : update->journal->parts()) {
            tables[k]->first->ForgetAdmitted(part.admitted);
          }
        }
        return Status::OK();
      });
}

}  // namespace

Status ApplyRule(const std::string& rule_name, Span<const float> hyper,
                 Span<const UpdateInput> inputs,
                 Span<const std::vector<SlotSpec>> slots, int64_t step,
                 Parallel* parallel) {
  const auto who = [&] { return "rule " + rule_name; };
  return NoThrow(who, [&] {
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

    std::vector<TableJournal> journals(inputs.size());
    std::vector<Update> updates;
    const int num_rounds = StartUpdates(inputs, step, &journals, &updates);
    std::vector<EmbeddingTable::Impl*> impls;
    for (const Update& update : updates) impls.push_back(update.table);
    const int64_t num_unplanned =
        std::count_if(inputs.begin(), inputs.end(), [](const UpdateInput& in) {
          return in.plan == nullptr && !in.keys.empty();
        });
    std::shared_ptr<LookupPlan> own_plan;
    if (num_unplanned > 0) {
      own_plan = LookupPlan::Make(num_unplanned);
      const SharedTableLocks table_locks(impls,
                                         SharedTableLocks::Purpose::kReading);
      EV_RETURN_IF_ERROR(
          SumDuplicates(inputs, own_plan.get(), &updates, parallel));
    }
    std::vector<Recycler<LineBuffer>::Handle> buffers;
    std::vector<size_t> bounded;
    bounded.reserve(impls.size());  // now: nothing may throw after the update

    bool rows_change = false;
    const auto apply = [&] {
      for (;;) {
        for (size_t i = 0; i < inputs.size(); ++i) {
          EV_RETURN_IF_ERROR(inputs[i].table->EnsureSlots(slots[i], nullptr));
        }
        const SharedTableLocks table_locks(
            impls, SharedTableLocks::Purpose::kUpdating);
        // A slot is missing again if a table was initialized meanwhile.
        bool has_slots = true;
        std::vector<int> columns;
        for (size_t i = 0; i < updates.size() && has_slots; ++i) {
          Update& update = updates[i];
          has_slots = update.table->FindSlots(slots[i], &columns);
          update.slot_columns = columns;
        }
        if (!has_slots) continue;
        std::vector<std::unique_ptr<SumBuffer>> sums;
        EV_RETURN_IF_ERROR(SumPooled(*rule, inputs, &updates, &sums, parallel));
        EV_RETURN_IF_ERROR(FetchPlanned(*rule, inputs, &updates, parallel));
        const UpdateLocks locks(table_locks.tables());
        for (Update& update : updates) update.solo = locks.solo(update.table);
        for (int round = 0; round < num_rounds; ++round) {
          EV_RETURN_IF_ERROR(
              FindAllHandles(&updates, round, &buffers, parallel));
        }
        EV_RETURN_IF_ERROR(FetchBelow(inputs, &updates, &buffers, parallel));
        for (const Update& update : updates) {
          if (update.keys_stay_on_device) continue;
          update.table->BeforeChange(
              Span<const RowHandle>(update.handles, update.keys.size()));
        }
        // Reserves room first, so that a lack of it raises an error before any
        // row has changed.
        std::vector<RowRoom> rooms(updates.size());
        for (size_t i = 0; i < updates.size(); ++i) {
          // Otherwise the GPU accesses the rows.
          if (updates[i].keys_stay_on_device) continue;
          EV_RETURN_IF_ERROR(
              rooms[i].Reserve(updates[i].table, updates[i].keys.size()));
        }
        const AdmittingUpdates admitting = FindAdmitting(updates);
        rows_change = true;
        for (size_t i = 0; i < updates.size(); ++i) {
          BeginRounding(&updates[i]);
          const Update& update = updates[i];
          update.table->CountIds(update.planned == nullptr
                                     ? static_cast<int64_t>(update.keys.size())
                                     : update.planned->num_ids,
                                 update.keys_stay_on_device);
        }
        EV_RETURN_IF_ERROR(ForgetAdmitted(admitting, parallel));
        for (int round = 0; round < num_rounds; ++round) {
          EV_RETURN_IF_ERROR(ApplyRound(*rule, updates, round, parallel));
        }
        return Status::OK();
      }
    };
    const Status status = NoThrow(who, apply);
    if (!status.ok()) {
      // In reverse order, as a table may occur several times. Outside of the
      // table locks.
      for (size_t i = updates.size(); i > 0; --i) {
        EmbeddingTable::Impl* const table = updates[i - 1].table;
        // The counters of a filter are gone when rows change; without one, new
        // keys whose rows were not reached can still be taken back.
        if (rows_change && table->options.admission.filters()) continue;
        table->TakeBack(journals[i - 1]);
      }
    }
    EV_RETURN_IF_ERROR(status);
    for (size_t i = 0; i < impls.size(); ++i) {
      if (impls[i]->options.capacity.bounded()) bounded.push_back(i);
    }
    RunTasks(parallel, static_cast<int64_t>(bounded.size()), [&](int64_t k) {
      impls[bounded[k]]->EvictExcess(updates[bounded[k]].call);
    });
    return Status::OK();
  });
}

}  // namespace ev
