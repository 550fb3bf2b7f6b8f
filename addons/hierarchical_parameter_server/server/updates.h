// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The update source of a configuration: which tiers take its rows, and in whose
// name it is read.
//
// Where both tiers take the same models' rows, one reader gives them to both,
// the persistent one first; otherwise each has a reader of its own.
//
// A tier that is filled from the table's files when the server starts has lost
// what updates had stored. So it reads the source from its beginning at every
// start, and commits nothing; the source has to keep its updates since the
// files were written. A tier that is not filled (initialize_after_startup
// false) goes on behind what it has committed.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_UPDATES_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_UPDATES_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/config/config.h"
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
};

// The readers that a configuration asks for. `host` and `process` make the
// names of groups that are one host's or one process's.
std::vector<UpdateReader> UpdateReadersOf(const Config& config,
                                          const std::string& host,
                                          const std::string& process);

// Whether updates of a table (by its tag) come from the source to a tier that
// has these update_filters. InvalidArgument: a filter is none.
ev::Status IsFed(const UpdateSourceConfig& source,
                 const std::vector<std::string>& filters,
                 const std::string& tag, bool* is_fed);

class Updates {
 public:
  using Deliver =
      std::function<ev::Status(const UpdateBatch& batch, UpdateTiers tiers)>;

  // Starts reading. *updates stays null where there is no source. `deliver` is
  // called by several threads, until the object is gone.
  static ev::Status Start(const Config& config, const Deliver& deliver,
                          std::unique_ptr<Updates>* updates);

  // An object for each reader, with commas between.
  std::string Json() const;

 private:
  std::vector<UpdateReader> readers_;
  std::vector<std::unique_ptr<UpdateReceiver>> receivers_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_UPDATES_H_
