// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/api.h"

#include <chrono>
#include <utility>

#include "addons/hierarchical_parameter_server/config/json.h"
#include "addons/hierarchical_parameter_server/server/databases.h"
#include "addons/hierarchical_parameter_server/server/registry.h"
#include "addons/hierarchical_parameter_server/server/warnings.h"

namespace hps {
namespace {

std::string ListJson(const std::vector<std::string>& texts) {
  std::string json = "[";
  for (size_t i = 0; i < texts.size(); ++i) {
    json += (i == 0 ? "" : ", ") + Quoted(texts[i]);
  }
  return json + "]";
}

std::vector<std::string> AllNotes(const ParameterServer& server) {
  std::vector<std::string> notes = server.config().notes;
  for (const std::string& note : server.notes()) notes.push_back(note);
  return notes;
}

ev::Status AddModels(const std::string& path, ev::Parallel* parallel) {
  std::shared_ptr<ParameterServer> server;
  EV_RETURN_IF_ERROR(GetRunningServer(&server));
  Config config;
  EV_RETURN_IF_ERROR(ReadConfig(path, DatabaseTypes(), &config, nullptr));
  if (config.long_keys != server->config().long_keys) {
    return ev::InvalidArgument(
        path + ": supportlonglong: the running server has " +
        (server->config().long_keys ? "true, got false" : "false, got true"));
  }
  ev::Status status;
  size_t added = 0;
  for (; added < config.models.size(); ++added) {
    status = server->AddModel(config.models[added], parallel);
    if (!status.ok()) break;
  }
  if (!status.ok()) {
    while (added > 0) server->RemoveModel(config.models[--added].name);
  }
  return status;
}

std::string CheckJson(const std::string& path) {
  Config config;
  std::vector<std::string> problems;
  const ev::Status status = ReadConfig(path, DatabaseTypes(), &config, nullptr);
  std::string plan = "null";
  if (status.ok()) {
    plan = PlanJson(config, &problems);
  } else if (config.errors.empty()) {
    problems.push_back(status.message());
  }
  for (const std::string& error : config.errors) {
    problems.push_back(config.where + ": " + error);
  }
  return "{\"errors\": " + ListJson(problems) +
         ", \"notes\": " + ListJson(config.notes) + ", \"plan\": " + plan + "}";
}

ev::Status ConnectJson(const std::string& path, std::string* json) {
  Config config;
  EV_RETURN_IF_ERROR(ReadConfig(path, DatabaseTypes(), &config, nullptr));
  *json = "[";
  const auto tried = [&](const char* tier, const auto& reach) {
    using Clock = std::chrono::steady_clock;
    const Clock::time_point begin = Clock::now();
    std::string what;
    const ev::Status status = reach(&what);
    if (what.empty()) return;
    const int64_t milliseconds =
        std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() -
                                                              begin)
            .count();
    *json += std::string(json->size() == 1 ? "" : ", ") +
             "{\"tier\": " + Quoted(tier) + ", \"what\": " + Quoted(what) +
             ", \"milliseconds\": " + std::to_string(milliseconds) +
             ", \"error\": " + Quoted(status.message()) + "}";
  };
  tried("volatile_db", [&](std::string* what) {
    return ReachDatabase(config.volatile_db.type, config, what);
  });
  tried("persistent_db", [&](std::string* what) {
    return ReachDatabase(config.persistent_db.type, config, what);
  });
  *json += "]";
  return ev::Status::OK();
}

}  // namespace

std::vector<std::string> TakeLogLines() { return TakeWarnings(); }

struct Starter::Accepted {
  uint64_t epoch;
  std::string config_file;
  int64_t global_batch_size, num_replicas;
};

Starter::Starter() = default;
Starter::~Starter() = default;

ev::Status Starter::Start(const std::string& config_file,
                          int64_t global_batch_size, int64_t num_replicas,
                          ev::Parallel* parallel,
                          std::vector<std::string>* notes) {
  notes->clear();
  const std::shared_ptr<Accepted> before = std::atomic_load(&accepted_);
  if (before != nullptr && before->epoch == ServerEpoch() &&
      before->global_batch_size == global_batch_size &&
      before->num_replicas == num_replicas &&
      before->config_file == config_file) {
    return ev::Status::OK();
  }
  StartOptions options;
  options.config_file = config_file;
  options.global_batch_size = global_batch_size;
  options.num_replicas = num_replicas;
  bool started = false;
  uint64_t epoch = 0;
  EV_RETURN_IF_ERROR(hps::Start(options, parallel, &started, &epoch));
  const std::shared_ptr<ParameterServer> server = RunningServer();
  if (started && server != nullptr) *notes = AllNotes(*server);
  auto accepted = std::make_shared<Accepted>();
  accepted->epoch = epoch;
  accepted->config_file = config_file;
  accepted->global_batch_size = global_batch_size;
  accepted->num_replicas = num_replicas;
  std::atomic_store(&accepted_, std::move(accepted));
  return ev::Status::OK();
}

struct LayerTable::Found {
  uint64_t generation;
  bool long_keys;
  std::string where;
  // Weak: a layer that is no longer used must not keep the table alive.
  std::weak_ptr<ServedTable> table;
};

LayerTable::LayerTable(const std::string& model, int64_t table_id,
                       int64_t width)
    : model_(model), table_id_(table_id), width_(width) {}

LayerTable::~LayerTable() = default;

ev::Status LayerTable::Get(std::shared_ptr<Found>* found) {
  *found = std::atomic_load(&found_);
  const uint64_t generation = Generation();
  if (*found != nullptr && (*found)->generation == generation) {
    return ev::Status::OK();
  }
  std::shared_ptr<ParameterServer> server;
  EV_RETURN_IF_ERROR(GetRunningServer(&server));
  std::shared_ptr<ServedTable> table;
  EV_RETURN_IF_ERROR(server->Find(model_, table_id_, width_, &table));
  auto fresh = std::make_shared<Found>();
  fresh->generation = generation;
  fresh->long_keys = server->config().long_keys;
  fresh->where = server->config().where;
  fresh->table = table;
  std::atomic_store(&found_, fresh);
  *found = std::move(fresh);
  return ev::Status::OK();
}

ev::Status LayerTable::Check(int64_t num_keys, bool long_keys) {
  std::shared_ptr<Found> found;
  EV_RETURN_IF_ERROR(Get(&found));
  if (found->long_keys != long_keys) {
    return ev::InvalidArgument(
        "ids: supportlonglong of " + found->where + " is " +
        (found->long_keys ? "true, expected int64 ids, got int32"
                          : "false, expected int32 ids, got int64"));
  }
  const std::shared_ptr<ServedTable> table = found->table.lock();
  if (table == nullptr || num_keys <= table->max_keys()) {
    return ev::Status::OK();
  }
  // This lookup fails with the right message and counts the failure.
  ev::Serial serial;
  return table->Lookup(
      ev::Span<const int64_t>(nullptr, static_cast<size_t>(num_keys)), nullptr,
      &serial);
}

ev::Status LayerTable::GetTable(std::shared_ptr<ServedTable>* table) {
  std::shared_ptr<Found> found;
  for (;;) {
    EV_RETURN_IF_ERROR(Get(&found));
    *table = found->table.lock();
    if (*table != nullptr) return ev::Status::OK();
    // The model was replaced or removed: finds it again, also if the models'
    // generation has not changed yet.
    std::atomic_store(&found_, std::shared_ptr<Found>());
  }
}

ev::Status LayerTable::Lookup(ev::Span<const int64_t> keys, float* rows,
                              ev::Parallel* parallel) {
  std::shared_ptr<ServedTable> table;
  EV_RETURN_IF_ERROR(GetTable(&table));
  return table->Lookup(keys, rows, parallel);
}

ev::Status LayerTable::Lookup(ev::Span<const int32_t> keys, float* rows,
                              ev::Parallel* parallel) {
  std::shared_ptr<ServedTable> table;
  EV_RETURN_IF_ERROR(GetTable(&table));
  return table->Lookup(keys, rows, parallel);
}

ev::Status LayerTable::LookupOnDevice(const CacheBatch& batch,
                                      ev::Parallel* parallel) {
  std::shared_ptr<ServedTable> table;
  EV_RETURN_IF_ERROR(GetTable(&table));
  return table->LookupOnDevice(batch, parallel);
}

namespace {

struct NextGenerationAtEnd {
  ~NextGenerationAtEnd() { NextGeneration(); }
};

}  // namespace

ev::Status RunCommand(const std::string& command, const std::string& argument,
                      ev::Parallel* parallel, std::string* answer) {
  answer->clear();
  if (command == "check") {
    *answer = CheckJson(argument);
    return ev::Status::OK();
  }
  if (command == "connect") return ConnectJson(argument, answer);
  if (command == "loaded_rows") {
    *answer = std::to_string(LoadedRows());
    return ev::Status::OK();
  }
  if (command == "stop") {
    Stop();
    return ev::Status::OK();
  }
  if (command == "add_models") {
    // Also after an error, which may have removed models again.
    const NextGenerationAtEnd next;
    return AddModels(argument, parallel);
  }
  std::shared_ptr<ParameterServer> server;
  EV_RETURN_IF_ERROR(GetRunningServer(&server));
  if (command == "metrics") {
    *answer = server->MetricsJson();
  } else if (command == "health") {
    *answer = server->HealthJson();
  } else if (command == "notes") {
    *answer = ListJson(AllNotes(*server));
  } else if (command == "reload_model") {
    const NextGenerationAtEnd next;
    return server->ReloadModel(argument, parallel);
  } else if (command == "remove_model") {
    const NextGenerationAtEnd next;
    return server->RemoveModel(argument);
  } else {
    return ev::InvalidArgument("unknown command '" + command + "'");
  }
  return ev::Status::OK();
}

ev::Status PushRows(const std::string& tag, int64_t width,
                    ev::Span<const int64_t> keys, const float* rows) {
  std::shared_ptr<ParameterServer> server;
  EV_RETURN_IF_ERROR(GetRunningServer(&server));
  return server->Update(tag, static_cast<int>(width), keys, rows, true, true);
}

}  // namespace hps
