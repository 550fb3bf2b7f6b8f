// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Creates databases from a configuration. A new type is one line in
// databases.cc.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_DATABASES_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_DATABASES_H_

#include <memory>
#include <string>

#include "addons/hierarchical_parameter_server/config/config.h"
#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/database/mapped/mapped_files.h"
#include "addons/hierarchical_parameter_server/server/breaker.h"
#include "kernels/engine/base/status.h"

namespace hps {

struct MadeDatabase {
  std::shared_ptr<Database> database;  // null: the tier is disabled
  // The same database if it serves the table files directly, otherwise null.
  MappedFiles* files = nullptr;
  // Shared by all tables of a database that may be unavailable; otherwise null.
  std::shared_ptr<Breaker> breaker;
};

// Returns whether each model has a database of its own that is destroyed with
// it: true for databases in this process's memory. Others are shared by all
// models, whose tags keep them apart.
bool IsOwnOfModel(const std::string& type);

// Errors have the type and the missing part. all_rows_are_below: the lower tier
// has all rows, so a database that loses rows may continue without them.
ev::Status MakeVolatile(const VolatileConfig& config, bool all_rows_are_below,
                        MadeDatabase* made);
ev::Status MakePersistent(const PersistentConfig& config, MadeDatabase* made);

// Tries to reach a tier in another process without creating or changing
// anything. *what: type and address; "" for a tier in this process's memory or
// of table files, which is always reachable.
ev::Status ReachVolatile(const VolatileConfig& config, std::string* what);
ev::Status ReachPersistent(const PersistentConfig& config, std::string* what);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_DATABASES_H_
