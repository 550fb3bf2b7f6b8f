// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/parameter_server.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <random>
#include <utility>

#include "addons/hierarchical_parameter_server/files/table_directory.h"
#include "addons/hierarchical_parameter_server/server/leftovers.h"

namespace hps {
namespace {

// Rows per insert while a table is loaded.
constexpr int64_t kLoadAtOnce = 65536;

std::atomic<int64_t> loaded_rows{0};

KeyBits BitsOf(const Config& config) {
  return config.long_keys ? KeyBits::k64 : KeyBits::k32;
}

// The filling of a table in a database that several processes share and that an
// update source feeds; see kFillAttribute.
struct Filled {
  bool is_done = false;
  std::string content, number;
};

// Finds out whether the table has been filled from these files. If it has, its
// rows and newer updates are there, which filling it again would overwrite for
// all processes. If not, the marks of updates are removed, so that all of them
// are read again; a reload keeps them.
ev::Status BeginFilling(const TableConfig& config, const std::string& tag,
                        double rate, bool is_reload, Database* database,
                        ev::Parallel* parallel, Filled* filled) {
  std::unique_ptr<TableDirectory> files;
  EV_RETURN_IF_ERROR(
      TableDirectory::Open(config.folder, config.format(), &files));
  EV_RETURN_IF_ERROR(files->ContentId(parallel, &filled->content));
  filled->content += ":" + std::to_string(rate);
  std::shared_ptr<Table> table;
  ev::Status status = database->OpenTable(tag, config.format(), &table);
  int64_t rows = 0;
  if (status.ok()) status = table->Count(&rows);
  // A table that has lost rows is dropped, with its attributes, and filled.
  if (status.code() != ev::StatusCode::kDataLoss) EV_RETURN_IF_ERROR(status);
  std::string value;
  EV_RETURN_IF_ERROR(database->ReadAttribute(tag, kFillAttribute, &value));
  filled->number = value.substr(value.rfind(' ') + 1);
  if (is_reload && !filled->number.empty()) {
    return database->WriteAttributes(tag,
                                     {{kFillAttribute, "- " + filled->number}});
  }
  filled->is_done = status.ok() && rows > 0 && !is_reload &&
                    value == filled->content + " " + filled->number;
  if (filled->is_done) return ev::Status::OK();
  std::random_device random;
  filled->number = std::to_string(random()) + "." + std::to_string(random());
  return database->RemoveAttributes(tag);
}

}  // namespace

int64_t LoadedRows() { return loaded_rows.load(std::memory_order_relaxed); }

ev::Status ParameterServer::Make(const Config& config, ev::Parallel* parallel,
                                 std::unique_ptr<ParameterServer>* server) {
  std::unique_ptr<ParameterServer> made(new ParameterServer(config));
  try {
    if (!IsOwnOfModel(config.volatile_db.type)) {
      EV_RETURN_IF_ERROR(
          MakeDatabase(config.volatile_db.type, config, &made->shared_memory_));
    }
    if (!IsOwnOfModel(config.persistent_db.type)) {
      EV_RETURN_IF_ERROR(MakeDatabase(config.persistent_db.type, config,
                                      &made->shared_below_));
    }
    if (config.volatile_db.cache_missed_embeddings &&
        config.volatile_db.type != "disabled" &&
        config.persistent_db.type != "disabled") {
      made->elevator_ = std::make_shared<Elevator>();
    }
    for (const ModelConfig& model : config.models) {
      EV_RETURN_IF_ERROR(made->AddModel(model, parallel));
    }
    // Started last: the updates must find their tables.
    ParameterServer* const to = made.get();
    EV_RETURN_IF_ERROR(Updates::Start(
        config,
        [to](const UpdateBatch& batch, UpdateTiers tiers) {
          return to->Update(batch.tag, batch.width, batch.keys,
                            batch.rows.data(), tiers.to_volatile,
                            tiers.to_persistent);
        },
        [to](const std::string& tag) { return to->FindTag(tag) != nullptr; },
        made->shared_memory_.database, &made->updates_));
  } catch (const std::bad_alloc&) {
    return ev::ResourceExhausted(config.where + ": no memory for its tables");
  }
  *server = std::move(made);
  return ev::Status::OK();
}

void ParameterServer::Note(const std::string& note) {
  std::lock_guard<std::mutex> lock(mu_);
  // Adds a note once: a model may be reloaded every hour for months.
  if (std::find(notes_.begin(), notes_.end(), note) == notes_.end()) {
    notes_.push_back(note);
  }
}

std::vector<std::string> ParameterServer::notes() const {
  std::lock_guard<std::mutex> lock(mu_);
  return notes_;
}

ev::Status ParameterServer::Fill(const TableConfig& config,
                                 const Filling& filling, Table* table,
                                 ev::Parallel* parallel) {
  std::unique_ptr<TableDirectory> files;
  EV_RETURN_IF_ERROR(
      TableDirectory::Open(config.folder, config.format(), &files));
  // Before the first row is stored in a database that others read.
  EV_RETURN_IF_ERROR(files->CheckContent(parallel));
  const int64_t rows = static_cast<int64_t>(
      static_cast<double>(files->rows()) * filling.rate + 0.5);
  EV_RETURN_IF_ERROR(table->Reserve(rows));
  const KeyBits bits = BitsOf(config_);
  std::vector<int64_t> normal;
  std::vector<float> packed;  // if the files have float32 rows
  for (int64_t begin = 0; begin < rows; begin += kLoadAtOnce) {
    const int64_t count = std::min(kLoadAtOnce, rows - begin);
    ev::Span<const int64_t> keys = files->keys().subspan(begin, count);
    if (bits == KeyBits::k32) {
      normal.resize(count);
      for (int64_t i = 0; i < count; ++i) {
        if (!NormalKey(bits, keys[i], &normal[i])) {
          return ev::InvalidArgument(
              "'" + files->key_file().path() + "', key " +
              std::to_string(keys[i]) + " of row " + std::to_string(begin + i) +
              ": supportlonglong is false, expected a key of 32 bits");
        }
      }
      keys = normal;
    }
    const float* stored = files->row(begin);
    if (files->format() != table->format()) {
      packed.resize(count * table->width());
      const ev::Status status =
          PackRows(table->format(), keys, stored, packed.data());
      if (!status.ok()) {
        return ev::Status(status.code(), "'" + files->vector_file().path() +
                                             "', " + status.message());
      }
      stored = packed.data();
    }
    EV_RETURN_IF_ERROR(table->Insert(keys, stored, parallel));
    loaded_rows.fetch_add(count, std::memory_order_relaxed);
  }
  if (!filling.clears) return ev::Status::OK();
  return RemoveLeftovers(*files, rows, bits, filling.is_fed, table);
}

ev::Status ParameterServer::LoadTable(
    const ModelConfig& model, const TableConfig& config, const std::string& tag,
    const MadeDatabase& memory, const MadeDatabase& below,
    ServedTable* replaced, ev::Parallel* parallel,
    std::shared_ptr<ServedTable>* table) {
  const auto fill = [&](const MadeDatabase& made, const Filling& filling,
                        bool initialize) -> ev::Status {
    std::shared_ptr<Table> opened;
    ev::Status status = made.database->OpenTable(tag, config.format(), &opened);
    if (initialize && status.code() == ev::StatusCode::kDataLoss) {
      // Part of the table is lost, and all of it is reloaded from the files.
      EV_RETURN_IF_ERROR(made.database->DropTable(tag));
      status = made.database->OpenTable(tag, config.format(), &opened);
    }
    EV_RETURN_IF_ERROR(status);
    if (!initialize) return ev::Status::OK();
    if (made.files != nullptr) {
      std::string note;
      EV_RETURN_IF_ERROR(
          made.files->Attach(tag, config.folder, BitsOf(config_), &note));
      if (!note.empty()) Note(note);
      int64_t rows = 0;
      EV_RETURN_IF_ERROR(opened->Count(&rows));
      loaded_rows.fetch_add(rows, std::memory_order_relaxed);
      return ev::Status::OK();
    }
    return Fill(config, filling, opened.get(), parallel);
  };
  std::shared_ptr<Table> above_table, below_table;
  // Persistent tier first: every row in the upper tier then exists in the lower
  // one.
  if (below.database != nullptr) {
    Filling filling;
    filling.clears =
        replaced != nullptr && !IsOwnOfModel(config_.persistent_db.type);
    EV_RETURN_IF_ERROR(IsFed(config_.update_source,
                             config_.persistent_db.update_filters, tag,
                             &filling.is_fed));
    EV_RETURN_IF_ERROR(fill(below, filling,
                            config_.persistent_db.initialize_after_startup &&
                                !below.database->capabilities().read_only));
    EV_RETURN_IF_ERROR(
        below.database->OpenTable(tag, config.format(), &below_table));
  }
  if (memory.database != nullptr) {
    // Queued elevations of old rows must not overwrite new ones.
    if (replaced != nullptr) replaced->DropElevations();
    Filling filling;
    filling.rate = config_.volatile_db.initial_cache_rate;
    // Also at start, if only part of the rows is loaded: older rows of the
    // other keys would hide those of the lower tier.
    filling.clears = !IsOwnOfModel(config_.volatile_db.type) &&
                     (replaced != nullptr || filling.rate < 1.0);
    EV_RETURN_IF_ERROR(IsFed(config_.update_source,
                             config_.volatile_db.update_filters, tag,
                             &filling.is_fed));
    bool initialize = config_.volatile_db.initialize_after_startup;
    const bool has_notes =
        initialize && filling.is_fed && !IsOwnOfModel(config_.volatile_db.type);
    filling.is_fed = filling.is_fed || replaced == nullptr;
    Filled filled;
    if (has_notes) {
      EV_RETURN_IF_ERROR(
          BeginFilling(config, tag, filling.rate, replaced != nullptr,
                       memory.database.get(), parallel, &filled));
      initialize = !filled.is_done;
    }
    EV_RETURN_IF_ERROR(fill(memory, filling, initialize));
    if (has_notes && initialize) {
      EV_RETURN_IF_ERROR(memory.database->WriteAttributes(
          tag, {{kFillAttribute, filled.content + " " + filled.number}}));
    }
    EV_RETURN_IF_ERROR(
        memory.database->OpenTable(tag, config.format(), &above_table));
  }
  auto tiers = std::make_shared<Tiers>(
      config.format(), config.default_value, above_table, below_table,
      above_table ? elevator_ : nullptr, memory.breaker, below.breaker);
  *table = std::make_shared<ServedTable>(
      model, config, tag, std::move(tiers),
      model.hit_rate_threshold < 1.0 ? caches_.background() : nullptr);
  return ev::Status::OK();
}

ev::Status ParameterServer::Load(const ModelConfig& config,
                                 const Model* replaced, ev::Parallel* parallel,
                                 std::shared_ptr<Model>* model) {
  auto made = std::make_shared<Model>();
  made->config = config;
  made->memory = shared_memory_;
  made->below = shared_below_;
  if (IsOwnOfModel(config_.volatile_db.type)) {
    EV_RETURN_IF_ERROR(
        MakeDatabase(config_.volatile_db.type, config_, &made->memory));
  }
  if (IsOwnOfModel(config_.persistent_db.type)) {
    EV_RETURN_IF_ERROR(
        MakeDatabase(config_.persistent_db.type, config_, &made->below));
  }
  for (const TableConfig& table : config.tables) {
    std::string tag;
    EV_RETURN_IF_ERROR(MakeTag(config.name, table.name, &tag));
    ServedTable* const before =
        replaced == nullptr ? nullptr
                            : replaced->tables[made->tables.size()].get();
    made->tables.emplace_back();
    const ev::Status status =
        LoadTable(config, table, tag, made->memory, made->below, before,
                  parallel, &made->tables.back());
    if (!status.ok()) {
      return ev::Status(status.code(), "model '" + config.name + "', table '" +
                                           table.name +
                                           "': " + status.message());
    }
  }
  *model = std::move(made);
  return ev::Status::OK();
}

void ParameterServer::Publish(std::shared_ptr<Model> model) {
  // Waits for updates that still use the previous tables and would miss the new
  // ones' caches.
  std::lock_guard<std::shared_mutex> publishing(publishing_);
  std::lock_guard<std::mutex> lock(mu_);
  models_[model->config.name] = std::move(model);
}

void ParameterServer::FillCaches(const Model& model, ev::Parallel* parallel) {
  std::vector<std::string> notes;
  caches_.Fill(model.config, model.tables, BitsOf(config_), parallel, &notes);
  for (const std::string& note : notes) Note(note);
}

void ParameterServer::KeepUp(const Model& model) {
  if (model.config.refresh_interval <= 0 || model.tables.empty() ||
      model.tables[0]->cache() == nullptr) {
    return;
  }
  if (refresher_ == nullptr) refresher_ = std::make_unique<Refresher>();
  refresher_->Add(model.tables, model.config.refresh_delay,
                  model.config.refresh_interval);
}

ev::Status ParameterServer::AttachCaches(const Model& model) {
  std::vector<std::string> notes;
  const ev::Status status = caches_.Attach(model.config, model.tables, &notes);
  for (const std::string& note : notes) Note(note);
  if (!status.ok() || !model.config.gpucache || model.tables.empty() ||
      model.tables[0]->cache() == nullptr) {
    return status;
  }
  const auto others_change = [](const MadeDatabase& made) {
    return made.database != nullptr && made.database->capabilities().shared &&
           !IsOwnOfModel(made.database->name());
  };
  if (model.config.refresh_interval > 0) {
    if (others_change(model.below) && model.memory.database != nullptr &&
        !others_change(model.memory)) {
      Note("model '" + model.config.name +
           "', refresh_interval: rows that other processes change in " +
           model.below.database->name() + " are not visible where " +
           model.memory.database->name() +
           ", this process's own tier above it, has these rows");
    }
    return status;
  }
  for (const MadeDatabase* made : {&model.memory, &model.below}) {
    if (others_change(*made)) {
      Note("model '" + model.config.name +
           "', gpucache: rows that other processes change in " +
           made->database->name() +
           " stay stale in this process's cache until they are pushed to "
           "this process too or the model is reloaded; set refresh_interval "
           "to read them periodically");
    }
  }
  return status;
}

ev::Status ParameterServer::AddModel(const ModelConfig& config,
                                     ev::Parallel* parallel) {
  std::lock_guard<std::mutex> changing(changing_);
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (models_.count(config.name) > 0) {
      return ev::Status(
          ev::StatusCode::kAlreadyExists,
          "there is a model '" + config.name +
              "'; reload it, or remove it before another takes its name");
    }
  }
  std::shared_ptr<Model> model;
  EV_RETURN_IF_ERROR(Load(config, nullptr, parallel, &model));
  EV_RETURN_IF_ERROR(AttachCaches(*model));
  Publish(model);
  FillCaches(*model, parallel);
  KeepUp(*model);
  return ev::Status::OK();
}

ev::Status ParameterServer::ReloadModel(const std::string& name,
                                        ev::Parallel* parallel) {
  std::lock_guard<std::mutex> changing(changing_);
  std::shared_ptr<Model> replaced, model;
  {
    std::lock_guard<std::mutex> lock(mu_);
    const auto found = models_.find(name);
    if (found == models_.end()) {
      return ev::NotFound("there is no model '" + name + "'");
    }
    replaced = found->second;
  }
  EV_RETURN_IF_ERROR(Load(replaced->config, replaced.get(), parallel, &model));
  ev::Status status = AttachCaches(*model);
  if (status.code() == ev::StatusCode::kResourceExhausted) {
    // There is no room for two caches: the old model continues from the tiers.
    for (const auto& table : replaced->tables) {
      if (table->cache() != nullptr) table->cache()->Drop();
    }
    status = AttachCaches(*model);
    if (!status.ok()) {
      Note("model '" + name +
           "': it has no cache any more, since its cache was freed for a "
           "reload that failed: " +
           status.message());
    }
  }
  EV_RETURN_IF_ERROR(status);
  Publish(model);
  FillCaches(*model, parallel);
  KeepUp(*model);
  return ev::Status::OK();
}

ev::Status ParameterServer::RemoveModel(const std::string& name) {
  std::lock_guard<std::mutex> changing(changing_);
  std::shared_ptr<Model> model;  // destroyed after the lock is released
  std::lock_guard<std::mutex> lock(mu_);
  const auto found = models_.find(name);
  if (found == models_.end()) {
    return ev::NotFound("there is no model '" + name + "'");
  }
  model = std::move(found->second);
  models_.erase(found);
  return ev::Status::OK();
}

ev::Status ParameterServer::Find(const std::string& name, int64_t table_id,
                                 int64_t width,
                                 std::shared_ptr<ServedTable>* table) const {
  std::lock_guard<std::mutex> lock(mu_);
  const auto found = models_.find(name);
  if (found == models_.end()) {
    std::string names;
    for (const auto& entry : models_) {
      names += (names.empty() ? "'" : ", '") + entry.first + "'";
    }
    return ev::NotFound("model_name: the configuration " + config_.where +
                        " has the models " + names + ", got '" + name + "'");
  }
  const auto& tables = found->second->tables;
  if (table_id < 0 || table_id >= static_cast<int64_t>(tables.size())) {
    return ev::InvalidArgument("table_id: model '" + name +
                               "' has the tables 0 to " +
                               std::to_string(tables.size() - 1) + ", got " +
                               std::to_string(table_id));
  }
  if (tables[table_id]->width() != width) {
    return ev::InvalidArgument(
        "emb_vec_size: table " + std::to_string(table_id) + " ('" +
        tables[table_id]->config().name + "') of model '" + name +
        "' has rows of " + std::to_string(tables[table_id]->width()) +
        " floats, got " + std::to_string(width));
  }
  *table = tables[table_id];
  return ev::Status::OK();
}

std::shared_ptr<ServedTable> ParameterServer::FindTag(
    const std::string& tag) const {
  std::lock_guard<std::mutex> lock(mu_);
  for (const auto& entry : models_) {
    for (const auto& table : entry.second->tables) {
      if (table->tag() == tag) return table;
    }
  }
  return nullptr;
}

ev::Status ParameterServer::Update(const std::string& tag, int width,
                                   ev::Span<const int64_t> keys,
                                   const float* rows, bool to_volatile,
                                   bool to_persistent) {
  std::shared_lock<std::shared_mutex> publishing(publishing_);
  const std::shared_ptr<ServedTable> table = FindTag(tag);
  if (table == nullptr) return ev::NotFound("there is no table " + tag);
  if (table->width() != width) {
    return ev::InvalidArgument(
        "table " + tag + ": it has rows of " + std::to_string(table->width()) +
        " floats, got an update with " + std::to_string(width));
  }
  if (BitsOf(config_) == KeyBits::k64) {
    return table->Update(keys, rows, to_volatile, to_persistent);
  }
  std::vector<int64_t> normal(keys.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!NormalKey(KeyBits::k32, keys[i], &normal[i])) {
      return ev::InvalidArgument(
          "table " + tag +
          ": supportlonglong is false, expected keys of 32 bits, "
          "got an update with " +
          std::to_string(keys[i]));
    }
  }
  return table->Update(normal, rows, to_volatile, to_persistent);
}

}  // namespace hps
