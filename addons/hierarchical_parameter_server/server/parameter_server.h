// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The models of a configuration with their loaded tables. Models can be added,
// replaced and removed while lookups run: a lookup finishes with the tables
// that it started with.

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

  // Finds the table of a layer. NotFound: no such model; the message lists the
  // existing ones. InvalidArgument: no table with this number, or its width
  // differs.
  ev::Status Find(const std::string& model, int64_t table_id, int64_t width,
                  std::shared_ptr<ServedTable>* table) const;
  // Finds a table by tag; null if there is none.
  std::shared_ptr<ServedTable> FindTag(const std::string& tag) const;

  // AddModel, ReloadModel and RemoveModel wait for each other, and updates wait
  // while a loaded model is added or replaces another.

  // AlreadyExists: a model has this name. After an error there is no new model,
  // but a database that outlives the model may have some of its rows.
  ev::Status AddModel(const ModelConfig& model, ev::Parallel* parallel);
  // Loads a model's tables from its files again. Afterwards the tables have
  // exactly the files' rows, whatever was stored in between. One exception: a
  // database that outlives the model and is fed by an update source keeps rows
  // of keys that are not in the files. A tier that is read-only, or whose
  // initialize_after_startup is false, is not loaded. NotFound: no such model.
  //
  // In memory, lookups use the old tables until all are loaded. A database that
  // outlives the model changes row by row: first new rows overwrite old ones,
  // then leftover rows are removed (leftovers.h). After a failure in between
  // some rows are new; reloading again repairs this. If a GPU has no memory for
  // two caches, the old one is freed first, and after a failure the model has
  // none.
  ev::Status ReloadModel(const std::string& name, ev::Parallel* parallel);
  // Lookups that have started finish. Rows in a database that outlives the
  // model stay. NotFound: no such model.
  ev::Status RemoveModel(const std::string& name);

  // Stores rows from an update source. NotFound: no such table.
  // InvalidArgument: the table has another width.
  ev::Status Update(const std::string& tag, int width,
                    ev::Span<const int64_t> keys, const float* rows,
                    bool to_volatile, bool to_persistent);

  // Returns the served counts as JSON. Waits for a database no longer than a
  // lookup does.
  std::string MetricsJson() const;
  // Returns, as JSON, for each database that the models share whether it is
  // unavailable; null if it cannot be. Accesses no database.
  std::string HealthJson() const;
  // The configuration's notes and those added while loading.
  std::vector<std::string> notes() const;

  // Null unless missed rows are cached.
  Elevator* elevator() { return elevator_.get(); }
  Caches* caches() { return &caches_; }

 private:
  struct Model {
    ModelConfig config;
    MadeDatabase memory, below;
    std::vector<std::shared_ptr<ServedTable>> tables;
  };

  explicit ParameterServer(const Config& config) : config_(config) {}
  // Loads a model. replaced: the model that it replaces; null: none.
  ev::Status Load(const ModelConfig& config, const Model* replaced,
                  ev::Parallel* parallel, std::shared_ptr<Model>* model);
  ev::Status LoadTable(const ModelConfig& model, const TableConfig& config,
                       const std::string& tag, const MadeDatabase& memory,
                       const MadeDatabase& below, ServedTable* replaced,
                       ev::Parallel* parallel,
                       std::shared_ptr<ServedTable>* table);
  struct Filling {
    double rate = 1.0;
    bool clears = false;  // remove rows that are not among these
    bool is_fed = false;  // keys that are not in the files may have rows
  };
  ev::Status Fill(const TableConfig& config, const Filling& filling,
                  Table* table, ev::Parallel* parallel);
  void Note(const std::string& note);
  ev::Status AttachCaches(const Model& model);
  void Publish(std::shared_ptr<Model> model);
  // Call after FillCaches. REQUIRES changing_.
  void KeepUp(const Model& model);
  // Call after Publish, so that the caches see the updates made meanwhile.
  void FillCaches(const Model& model, ev::Parallel* parallel);

  const Config config_;
  std::shared_ptr<Elevator> elevator_;
  Caches caches_;
  // Databases shared by all models.
  MadeDatabase shared_memory_, shared_below_;
  std::mutex changing_;  // one change at a time; acquired before publishing_
  // Shared by updates, exclusive while a model is added or replaced; acquired
  // before mu_.
  std::shared_mutex publishing_;
  mutable std::mutex mu_;
  std::map<std::string, std::shared_ptr<Model>> models_;
  std::vector<std::string> notes_;
  // Guarded by changing_; null until a model needs it. Its thread uses the
  // tables' caches.
  std::unique_ptr<Refresher> refresher_;
  // Declared last, so destroyed first: its threads use all members above. Null
  // without a source.
  std::unique_ptr<Updates> updates_;
};

// Rows loaded from files in this process so far; shows a start's progress.
int64_t LoadedRows();

// Returns rows and bytes of every table of a configuration as JSON, computed
// from the sizes of its files. Problems with files go to *problems.
std::string PlanJson(const Config& config, std::vector<std::string>* problems);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_PARAMETER_SERVER_H_
