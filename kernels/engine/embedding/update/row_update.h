// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Fused optimizer update of many tables.

#ifndef KERNELS_ENGINE_EMBEDDING_UPDATE_ROW_UPDATE_H_
#define KERNELS_ENGINE_EMBEDDING_UPDATE_ROW_UPDATE_H_

#include <cstdint>
#include <string>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/lookup/pooled_lookup.h"

namespace ev {

struct UpdateInput {
  EmbeddingTable* table = nullptr;
  Span<const int64_t> keys;      // M; may be left out with pooled_grads
  const float* grads = nullptr;  // [M, dim]; null with pooled_grads
  // If set, the keys must be exactly those of plan->UniqueKeys(plan_table);
  // they are neither deduplicated nor looked up again. If null, gradients of
  // duplicate keys are summed first, in order of occurrence.
  const LookupPlan* plan = nullptr;
  int plan_table = 0;
  // With a plan, instead of grads: d loss / d output of the plan's lookup, [B,
  // dim]. The row gradients that are applied are those that PooledBackward
  // would compute from it. A GPU that has the rows computes them. If the CPU
  // found the rows, and they are far fewer than the samples, the CPU does.
  ConstFloats pooled_grads;
  // If not null, pooled_grads are in memory of the device that has the rows.
  // Only for tables that take device tensors (embedding_table.h).
  const DeviceStream* stream = nullptr;
  // Without a plan: [M], how often each key occurred; null: once each.
  const int64_t* counts = nullptr;
};

// Applies the rule named 'rule' (optimizer/rule.h) to the rows of every input,
// in parallel. Absent keys are inserted first. Keys that the table's filter
// keeps out are only counted, and their gradients dropped; a key that the
// filter admits gets its first update in the same call. Adds occurrences to the
// frequency and sets the version to 'step'. Evicts rows beyond a table's
// capacity afterwards. slots: one SlotSpec per slot of the rule, per input
// (slots[i] for inputs[i]); slots that a table lacks are added. A table that
// occurs several times is updated once per input, in the order of the inputs.
//
// Thread-safe; see embedding_table.h for concurrent updates of one row.
// InvalidArgument: unknown rule, wrong hyperparameters, a wrong number of
// slots, or keys that are not the plan's. FailedPrecondition: a table is not
// initialized, or has no device for gradients on a device. After these two
// errors nothing has changed, except that slots may have been added. So it is
// after ResourceExhausted, unless temporary memory ran out while rows were
// updated. Then, and after an error of a GPU or an SSD, some rows may have been
// updated, and inserted keys stay.
Status ApplyRule(const std::string& rule, Span<const float> hyper,
                 Span<const UpdateInput> inputs,
                 Span<const std::vector<SlotSpec>> slots, int64_t step,
                 Parallel* parallel);

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_UPDATE_ROW_UPDATE_H_
