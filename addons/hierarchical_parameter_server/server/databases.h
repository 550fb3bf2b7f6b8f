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
#include "kernels/engine/base/status.h"

namespace hps {

struct MadeDatabase {
  std::shared_ptr<Database> database;  // null: the tier is disabled
  // The same database where its rows are the files themselves.
  MappedFiles* files = nullptr;
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

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_DATABASES_H_
