// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The models of a configuration, with their tables loaded. Models come, are
// replaced and go while lookups run: a lookup that has begun ends with the
// tables that it began with.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_PARAMETER_SERVER_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_PARAMETER_SERVER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/config/config.h"
#include "addons/hierarchical_parameter_server/server/caches.h"
#include "addons/hierarchical_parameter_server/server/databases.h"
#include "addons/hierarchical_parameter_server/server/elevator.h"
#include "addons/hierarchical_parameter_server/server/refresher.h"
#include "addons/hierarchical_parameter_server/server/served_table.h"
#include "addons/hierarchical_parameter_server/server/updates.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Thread-safe.
class ParameterServer {
 public:
  // Opens the databases and loads every table. Errors name table and file.
  static ev::Status Make(const Config& config, ev::Parallel* parallel,
                         std::unique_ptr<ParameterServer>* server);

  const Config& config() const { return config_; }

  // The table that a layer names. NotFound: no such model; the message lists
  // those that there are. InvalidArgument: no such number, or the table's width
  // is another one.
  ev::Status Find(const std::string& model, int64_t table_id, int64_t width,
                  std::shared_ptr<ServedTable>* table) const;
  // By tag; null: there is none.
  std::shared_ptr<ServedTable> FindTag(const std::string& tag) const;

  // AlreadyExists: there is a model of that name. On an error nothing has
  // changed.
  ev::Status AddModel(const ModelConfig& model, ev::Parallel* parallel);
  // Loads a model's tables from its files again. Afterwards the tables have the
  // files' rows and no others, whatever had been stored since; but rows of keys
  // that are not in the files stay in a database that outlives the model and is
  // fed by an update source.
  //
  // In memory lookups have the old tables until all is loaded. A database that
  // outlives the model changes row by row under them: new rows are stored over
  // old ones first, then what is left over is removed (leftovers.h). If it
  // fails there, some of the rows are new, and loading again mends it.
  ev::Status ReloadModel(const std::string& name, ev::Parallel* parallel);
  ev::Status RemoveModel(const std::string& name);

  // Rows from an update source. NotFound: no such table. InvalidArgument: the
  // width is another one.
  ev::Status Update(const std::string& tag, int width,
                    ev::Span<const int64_t> keys, const float* rows,
                    bool to_volatile, bool to_persistent);

  // What is served, as JSON. Waits for a database no longer than a lookup does.
  std::string MetricsJson() const;
  // Whether each tier that may be away is, as JSON. Asks no database.
  std::string HealthJson() const;
  // What loading found worth telling, after the configuration's own notes.
  std::vector<std::string> notes() const;

  Elevator* elevator() { return elevator_.get(); }
  Caches* caches() { return &caches_; }

 private:
  struct Model {
    ModelConfig config;
    MadeDatabase memory, below;
    std::vector<std::shared_ptr<ServedTable>> tables;
  };

  explicit ParameterServer(const Config& config) : config_(config) {}
  // Whether a row that the volatile tier loses is found in the persistent one.
  bool all_rows_are_below() const {
    return config_.persistent_db.type != "disabled";
  }
  // replaced: the model that goes when this one is there; null: none.
  ev::Status Load(const ModelConfig& config, const Model* replaced,
                  ev::Parallel* parallel, std::shared_ptr<Model>* model);
  ev::Status LoadTable(const ModelConfig& model, const TableConfig& config,
                       const std::string& tag, const MadeDatabase& memory,
                       const MadeDatabase& below, ServedTable* replaced,
                       ev::Parallel* parallel,
                       std::shared_ptr<ServedTable>* table);
  struct Filling {
    double rate = 1.0;
    bool clears = false;  // rows that are not of these go
    bool is_fed = false;  // keys that are not in the files may have rows
  };
  ev::Status Fill(const TableConfig& config, const Filling& filling,
                  Table* table, ev::Parallel* parallel);
  void Note(const std::string& note);
  ev::Status AttachCaches(const Model& model);
  void Publish(std::shared_ptr<Model> model);
  // After FillCaches. REQUIRES changing_.
  void KeepUp(const Model& model);
  // After Publish, so that updates meanwhile count.
  void FillCaches(const Model& model, ev::Parallel* parallel);

  const Config config_;
  std::shared_ptr<Elevator> elevator_;
  Caches caches_;
  // Databases that all models share.
  MadeDatabase shared_memory_, shared_below_;
  std::mutex changing_;  // one change at a time; before publishing_
  // Shared by updates, alone for a change of models_; before mu_.
  std::shared_mutex publishing_;
  mutable std::mutex mu_;
  std::map<std::string, std::shared_ptr<Model>> models_;
  std::vector<std::string> notes_;
  // Guarded by changing_; null until a model asks for it. Its thread uses the
  // tables' caches.
  std::unique_ptr<Refresher> refresher_;
  // Goes first: its threads use all that is above. Null without a source.
  std::unique_ptr<Updates> updates_;
};

// Rows that were loaded from files in this process so far: how far a start is.
int64_t LoadedRows();

// Rows and bytes of every table of a configuration, from the sizes of its
// files, as JSON; problems of the files go to *problems.
std::string PlanJson(const Config& config, std::vector<std::string>* problems);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_PARAMETER_SERVER_H_
