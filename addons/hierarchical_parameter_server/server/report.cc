// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The server's reports: metrics, health and plan.

#include <algorithm>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/cache_size.h"
#include "addons/hierarchical_parameter_server/config/json.h"
#include "addons/hierarchical_parameter_server/files/table_directory.h"
#include "addons/hierarchical_parameter_server/server/databases.h"
#include "addons/hierarchical_parameter_server/server/parameter_server.h"

namespace hps {
namespace {

std::string Field(const char* name, int64_t value) {
  return "\"" + std::string(name) + "\": " + std::to_string(value);
}
std::string Field(const char* name, const std::string& value) {
  return "\"" + std::string(name) + "\": " + Quoted(value);
}

std::string FlagField(const char* name, bool value) {
  return "\"" + std::string(name) + "\": " + (value ? "true" : "false");
}

// Counts of a tier that may be unavailable, shared by all tables.
std::string OutageJson(const Breaker& breaker, const BreakerCounts& counts) {
  return "{" + Field("type", breaker.type()) + ", " +
         FlagField("away", counts.is_away) + ", " +
         FlagField("skips", breaker.skips()) + ", " +
         Field("failures", counts.failures) + ", " +
         Field("skipped", counts.skipped) + ", " +
         Field("last_error", counts.last_error) + "}";
}

std::string TierJson(const std::shared_ptr<Table>& table,
                     const Breaker* breaker) {
  if (table == nullptr) return "null";
  // A report must not wait for a tier that is unavailable.
  const BreakerCounts counts =
      breaker == nullptr ? BreakerCounts() : breaker->Counts();
  if (counts.is_away) return "{" + Field("error", counts.last_error) + "}";
  TableStatistics statistics;
  const ev::Status status = table->Statistics(&statistics);
  if (!status.ok()) return "{" + Field("error", status.message()) + "}";
  return "{" + Field("rows", statistics.rows) + ", " +
         Field("host_bytes", statistics.host_bytes) + ", " +
         Field("inserted", statistics.inserted) + ", " +
         Field("evicted", statistics.evicted) + "}";
}

// Returns the name of a cache's eviction policy.
std::string PolicyName(bool evicts, bool lfu) {
  return !evicts ? "none" : lfu ? "lfu" : "lru";
}

std::string CacheJson(const std::shared_ptr<CacheTable>& cache) {
  if (cache == nullptr || cache->options().capacity == 0) return "null";
  CacheStatistics statistics;
  const ev::Status status = cache->Statistics(&statistics);
  if (!status.ok()) return "{" + Field("error", status.message()) + "}";
  return "{" + Field("rows", statistics.rows) + ", " +
         Field("capacity", cache->options().capacity) + ", " +
         Field("policy",
               PolicyName(cache->options().evicts,
                          cache->options().policy == CachePolicy::kLfu)) +
         ", " + Field("device_bytes", statistics.device_bytes) + ", " +
         Field("hits", statistics.hits) + ", " +
         Field("misses", statistics.misses) + ", " +
         Field("inserted", statistics.inserted) + ", " +
         Field("evicted", statistics.evicted) + ", " +
         Field("refreshed", statistics.refreshed) + "}";
}

// null if nothing is refreshed.
std::string RefreshJson(const ServedTable& table, double interval) {
  if (interval <= 0 || table.cache() == nullptr) return "null";
  const Refreshed refreshed = table.refreshed();
  return "{" + Field("walks", refreshed.walks) + ", " +
         Field("rows", refreshed.rows) + ", " +
         Field("last_walk_nanoseconds", refreshed.last_walk_nanoseconds) +
         ", " + Field("failures", refreshed.failures) + ", " +
         Field("last_failure", refreshed.last_failure) + "}";
}

std::string TableJson(const ServedTable& table, double refresh_interval) {
  const Served served = table.served();
  std::string json =
      "{" + Field("table", table.config().name) + ", " +
      Field("tag", table.tag()) + ", " + Field("width", table.width()) + ", " +
      Field("row_type", RowTypeName(table.config().row_type)) + ", " +
      Field("max_keys", table.max_keys()) + ", " +
      Field("lookups", served.lookups) + ", " + Field("keys", served.keys) +
      ", " + Field("from_cache", served.from_cache) + ", " +
      Field("from_volatile", served.from_volatile) + ", " +
      Field("from_persistent", served.from_persistent) + ", " +
      Field("defaults", served.defaults) + ", " +
      Field("unavailable", served.unavailable) + ", " +
      Field("late", served.late) + ", " + Field("failed", served.failed) +
      ", " + Field("nanoseconds", served.nanoseconds) + ", \"latency\": [";
  for (int bin = 0; bin < Served::kLatencies; ++bin) {
    json += (bin == 0 ? "" : ", ") + std::to_string(served.latency[bin]);
  }
  return json + "], \"cache\": " + CacheJson(table.cache()) +
         ", \"refresh\": " + RefreshJson(table, refresh_interval) +
         ", \"volatile\": " +
         TierJson(table.above(), table.tiers()->above_breaker()) +
         ", \"persistent\": " +
         TierJson(table.below(), table.tiers()->below_breaker()) + "}";
}

}  // namespace

std::string ParameterServer::HealthJson() const {
  const auto tier = [](const MadeDatabase& made) {
    return made.breaker == nullptr
               ? std::string("null")
               : OutageJson(*made.breaker, made.breaker->Counts());
  };
  return "{\"volatile\": " + tier(shared_memory_) +
         ", \"persistent\": " + tier(shared_below_) + "}";
}

std::string ParameterServer::MetricsJson() const {
  std::vector<std::shared_ptr<Model>> models;
  {
    std::lock_guard<std::mutex> lock(mu_);
    for (const auto& entry : models_) models.push_back(entry.second);
  }
  std::string json = "{" + Field("config", config_.where) + ", \"models\": [";
  for (size_t m = 0; m < models.size(); ++m) {
    json += (m == 0 ? "{" : ", {") + Field("model", models[m]->config.name) +
            ", \"tables\": [";
    for (size_t t = 0; t < models[m]->tables.size(); ++t) {
      json +=
          (t == 0 ? "" : ", ") +
          TableJson(*models[m]->tables[t], models[m]->config.refresh_interval);
    }
    json += "]}";
  }
  json += "], \"tiers\": " + HealthJson() + ", \"updates\": [";
  if (updates_ != nullptr) json += updates_->Json();
  return json + "]}";
}

std::string PlanJson(const Config& config, std::vector<std::string>* problems) {
  std::string json = std::string("{\"long_keys\": ") +
                     (config.long_keys ? "true" : "false") + ", \"tables\": [";
  int64_t total = 0, device_total = 0;
  bool first = true;
  const std::string& type = config.volatile_db.type;
  const bool mapped = type == "multi_process_hash_map";
  for (const ModelConfig& model : config.models) {
    for (const TableConfig& table : model.tables) {
      std::unique_ptr<TableDirectory> files;
      ev::Status status =
          TableDirectory::Open(table.folder, table.format(), &files);
      // Mapped files are served as they are.
      if (status.ok() &&
          (mapped || config.persistent_db.type == "mapped_files")) {
        status = CheckFormat(files->format(), table.format());
        if (!status.ok()) {
          status = ev::Status(status.code(),
                              "'" + table.folder + "': " + status.message());
        }
      }
      if (!status.ok()) {
        problems->push_back("model '" + model.name + "', table '" + table.name +
                            "': " + status.message());
      }
      const int64_t rows = status.ok() ? files->rows() : 0;
      const int64_t file_row_bytes =
          status.ok() ? 4 * int64_t{files->format().width()} : 0;
      const int64_t row_bytes = 4 * int64_t{table.format().width()};
      int64_t kept = rows, host = 0;
      if (!mapped) {
        kept =
            static_cast<int64_t>(rows * config.volatile_db.initial_cache_rate);
        const int64_t partitions = config.volatile_db.num_partitions;
        if (config.volatile_db.overflow_margin < kept / partitions) {
          kept = config.volatile_db.overflow_margin * partitions;
        }
        // Slots at 92 % load, plus a little for segments of different length.
        host = static_cast<int64_t>(kept * (8 + row_bytes) / 0.92 * 1.02);
      } else {
        // 4.25 keys per cache line
        host = rows * row_bytes + rows / 17 * 4 * 64;
      }
      if (!IsOwnOfModel(type)) host = 0;
      total += host;
      const CacheSize cache =
          CacheSizeFor(rows, model.gpucacheper, model.cache_type == "static");
      const int64_t device =
          model.gpucache
              ? CacheBytes(cache.capacity, cache.evicts, table.format().width(),
                           model.max_keys(table))
              : 0;
      device_total += device;
      json +=
          std::string(first ? "" : ", ") + "{" + Field("model", model.name) +
          ", " + Field("table", table.name) + ", " +
          Field("folder", table.folder) + ", " + Field("width", table.width) +
          ", " + Field("row_type", RowTypeName(table.row_type)) + ", " +
          Field("rows", rows) + ", " +
          Field("file_bytes", rows * (8 + file_row_bytes)) + ", " +
          Field("host_bytes", host) + ", " + Field("device_bytes", device) +
          ", " + Field("cached_rows", model.gpucache ? cache.capacity : 0) +
          ", " +
          (model.gpucache
               ? Field("cache_policy",
                       PolicyName(cache.evicts, model.cache_policy == "lfu"))
               : std::string("\"cache_policy\": null")) +
          ", " + Field("max_keys", model.max_keys(table)) + ", " +
          Field("lookup_bytes",
                model.max_keys(table) *
                    (4 * int64_t{table.width} +
                     (table.format().is_packed() ? row_bytes : 0) + 16)) +
          "}";
      first = false;
    }
  }
  return json + "], " + Field("host_bytes", total) + ", " +
         Field("device_bytes", device_total) + "}";
}

}  // namespace hps
