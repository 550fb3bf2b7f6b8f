// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// From a configuration to a database. A new type is a line in databases.cc.

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
  // The same database where its rows are the files themselves.
  MappedFiles* files = nullptr;
  // Of a database that may be away; shared by its tables. Null for others.
  std::shared_ptr<Breaker> breaker;
};

// Whether every model has a database of its own, which goes when the model
// goes: databases of this process's memory. Others are shared by all models,
// told apart by tags.
bool IsOwnOfModel(const std::string& type);

// Errors name the type, and what is missing. all_rows_are_below: a database
// that loses rows may forget them, since the tier below has them.
ev::Status MakeVolatile(const VolatileConfig& config, bool all_rows_are_below,
                        MadeDatabase* made);
ev::Status MakePersistent(const PersistentConfig& config, MadeDatabase* made);

// Tries to reach a tier that is another program's, and makes and changes
// nothing. *what: type and address, "" for a tier of this process's memory or
// of the table files, which is always reached.
ev::Status ReachVolatile(const VolatileConfig& config, std::string* what);
ev::Status ReachPersistent(const PersistentConfig& config, std::string* what);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_DATABASES_H_
