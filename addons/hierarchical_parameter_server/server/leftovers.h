// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Removes rows that a reload did not store. A database that outlives a model
// still has the rows of its previous files. The new files may lack some of
// these keys, and in a tier that holds only part of a table such rows may be
// older than the files.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_LEFTOVERS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_LEFTOVERS_H_

#include <cstdint>

#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/files/table_directory.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Removes all rows except those of the first `stored` rows of the files, which
// must have been stored before. With keeps_unknown, keys that are in no row of
// the files stay: an update source may have sent them.
//
// The first rows stay available at all times. Needs 8 bytes of memory per row.
// Reads the whole table once, or, with keeps_unknown, removes the keys of the
// files' other rows if the table has any other rows. REQUIRES: every key of the
// files fits `bits`.
ev::Status RemoveLeftovers(const TableDirectory& files, int64_t stored,
                           KeyBits bits, bool keeps_unknown, Table* table);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_LEFTOVERS_H_
