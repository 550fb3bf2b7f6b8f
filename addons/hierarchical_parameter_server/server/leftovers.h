// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows that a reload has not stored. A database that outlives a model has the
// rows of its last files, which may be more than those of the new ones, and in
// a tier that holds a part of a table they may be older than the new ones.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_LEFTOVERS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_LEFTOVERS_H_

#include <cstdint>

#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/files/table_directory.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Removes what is not of the first `stored` rows of the files, which have been
// stored before. Keys that are in no row of the files stay where keeps_unknown
// is true: an update source may have sent them.
//
// No row of the first ones is missing at any time. Takes 8 bytes of memory for
// each row; reads the whole table once, or where keeps_unknown is true removes
// the keys of the other rows of the files, if the table has any others at all.
// REQUIRES: every key of the files is one of `bits`.
ev::Status RemoveLeftovers(const TableDirectory& files, int64_t stored,
                           KeyBits bits, bool keeps_unknown, Table* table);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_LEFTOVERS_H_
