// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/row_numbers.h"

#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/engine/embedding/parts/admission_filter.h"
#include "kernels/engine/storage/dram/row_store.h"

namespace ev {
namespace {

// In the order of RowNumber.
constexpr RowNumberSpec kSpecs[] = {
    {[](const TableOptions& options) { return options.record_version; },
     [](const TableOptions& options) { return options.record_version; },
     [](const RowMeta& meta) { return meta.version(); },
     [](const AdmissionFilter& filter, RowHandle handle) -> int64_t {
       return filter.VersionOf(handle);
     }},
    {[](const TableOptions& options) { return options.record_frequency; },
     [](const TableOptions&) { return true; },
     [](const RowMeta& meta) -> int64_t { return meta.frequency; },
     [](const AdmissionFilter& filter, RowHandle handle) -> int64_t {
       return filter.CountOf(handle);
     }},
};
static_assert(sizeof(kSpecs) / sizeof(kSpecs[0]) == kNumRowNumbers,
              "each number has an entry");

}  // namespace

const RowNumberSpec& SpecOf(RowNumber number) { return kSpecs[number]; }

}  // namespace ev
