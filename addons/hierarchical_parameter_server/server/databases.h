// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The types of databases, and their creation from a configuration. To add a
// type, add its folder beside database/redis, its entry in databases.cc, and
// its target in BUILD.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_DATABASES_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_DATABASES_H_

#include <memory>
#include <string>
#include <vector>

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

// All types except "disabled", in the order in which errors list them.
const std::vector<DatabaseType>& DatabaseTypes();

// Returns whether each model has a database of its own; false for "disabled".
bool IsOwnOfModel(const std::string& type);

// Creates the database of a tier whose type in `config` is `type`. For
// "disabled" made->database is null. Errors have the type and the missing part.
ev::Status MakeDatabase(const std::string& type, const Config& config,
                        MadeDatabase* made);

// Tries to reach a shared database without changing anything. *what: type and
// address or path; "" for another database, which is always reachable.
ev::Status ReachDatabase(const std::string& type, const Config& config,
                         std::string* what);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_DATABASES_H_
