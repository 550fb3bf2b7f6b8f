// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Connects a configuration's update source to the tiers: which tiers take its
// rows, and under which group name it is read.
//
// If both tiers take the same models' rows, one reader feeds both, the
// persistent one first. Otherwise each has its own reader.
//
// A tier that is filled from the table files at start has lost all stored
// updates. It therefore never commits, and reads the source from the beginning
// at every start. The source must keep all updates since the files were
// written. The name of the tier's group ends in ".from_start", so that a commit
// made under an earlier configuration is not its position.
// A tier that is not filled (initialize_after_startup false) continues from its
// last commit.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_UPDATES_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_UPDATES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/config/config.h"
#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/source/update_receiver.h"
#include "addons/hierarchical_parameter_server/source/update_source.h"
#include "kernels/engine/base/status.h"

namespace hps {

struct UpdateTiers {
  bool to_volatile = false;
  bool to_persistent = false;
};

// One reader of the source.
struct UpdateReader {
  UpdateTiers tiers;
  std::string group;
  std::vector<std::string> filters;
  bool commits = false;
  // The tier is shared by processes: what it has stored is not read again.
  bool has_marks = false;
};

// Returns the readers that a configuration needs. `host` and `process` become
// part of the group names for databases that belong to one host or one process.
std::vector<UpdateReader> UpdateReadersOf(const Config& config,
                                          const std::string& host,
                                          const std::string& process);

// *is_fed: whether the source sends updates of a table (given by its tag) to a
// tier with these update_filters. InvalidArgument: a filter is invalid.
ev::Status IsFed(const UpdateSourceConfig& source,
                 const std::vector<std::string>& filters,
                 const std::string& tag, bool* is_fed);

// Name of the attribute of the last filling of a table from files: the files'
// content, a space, and a number that each filling at a start draws. The names
// of marks begin with this number, so an old process cannot store marks of an
// earlier filling as those of the new one.
constexpr char kFillAttribute[] = "fill";

class Updates {
 public:
  using Deliver =
      std::function<ev::Status(const UpdateBatch& batch, UpdateTiers tiers)>;

  // Starts reading. *updates stays null if there is no source. `deliver` and
  // `serves`, whether this process has a table, are called from several threads
  // until the object is destroyed. `shared`: the volatile tier's database, if
  // processes share it.
  static ev::Status Start(const Config& config, const Deliver& deliver,
                          const std::function<bool(const std::string&)>& serves,
                          std::shared_ptr<Database> shared,
                          std::unique_ptr<Updates>* updates);

  // Returns a JSON object per reader, separated by commas.
  std::string Json() const;

 private:
  std::vector<UpdateReader> readers_;
  std::vector<std::unique_ptr<UpdateReceiver>> receivers_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_UPDATES_H_
