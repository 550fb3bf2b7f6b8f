// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The server's configuration: upstream's JSON, parsed into a struct.
//
// All of upstream's keys are accepted. A key that this server does not use
// produces a note. A key that is unknown, has the wrong type or is out of range
// raises an error. One message holds all errors of a file, each with the key's
// path, the expected value and the value found.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CONFIG_CONFIG_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CONFIG_CONFIG_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/rows/row_format.h"
#include "kernels/engine/base/status.h"

namespace hps {

struct Config;
struct MadeDatabase;

// A type of database (server/databases.h).
struct DatabaseType {
  enum class Tier { kVolatile, kPersistent };
  Tier tier;
  std::vector<std::string> names;  // the type, then its other spellings
  ev::Status (*make)(const Config& config, MadeDatabase* made);
  // Tries to reach the store, without changing it. *where: its address or path.
  // Null: each model has a database of its own, in this process's memory or in
  // its table files, which is destroyed with the model. Databases of the other
  // types are shared by all models, whose tags keep them apart, and may be
  // unavailable.
  ev::Status (*reach)(const Config& config, std::string* where);

  bool is_shared() const { return reach != nullptr; }
};

struct TableConfig {
  std::string name;
  std::string folder;  // folder with the files key and emb_vector
  int width = 0;       // floats of a row of a lookup's output
  RowType row_type = RowType::kFloat32;  // of stored rows; not in upstream
  int64_t max_keys_per_sample = 0;
  float default_value = 0;

  RowFormat format() const { return RowFormat(width, row_type); }
};

struct ModelConfig {
  std::string name;
  std::vector<TableConfig> tables;
  std::vector<int64_t> devices;
  int64_t max_batch_size = 64;  // samples of one lookup on one replica
  // The key's value; if absent, true if another key describes the cache.
  bool gpucache = false;
  double gpucacheper = 0.2;
  double hit_rate_threshold = 1.0;  // 1.0: always exact
  int64_t worker_buffers = 2;
  double refresh_percentage = 0;
  // Seconds. With an interval of 0 the cache is never re-read from the tiers.
  double refresh_delay = 0, refresh_interval = 0;
  std::string cache_type = "dynamic";  // or "static", "uvm"
  std::string cache_policy = "lru";    // not in upstream; or "lfu"
  bool preload_cache = true;           // key init_ec
  bool pinned_values = false;          // key enable_pagelock
  bool fuse = false;

  // Most keys in one lookup of a table.
  int64_t max_keys(const TableConfig& table) const {
    return max_batch_size * table.max_keys_per_sample;
  }
};

// Redis settings. An empty string means that the key is absent.
struct RedisConfig {
  std::string address = "127.0.0.1:7000";
  std::string user_name = "default";
  // The password may also come from a file or an environment variable (not in
  // upstream).
  std::string password, password_file, password_env;
  int64_t num_node_connections = 5;
  int64_t timeout_ms = 5000;  // not in upstream; longest duration of a call
  bool enable_tls = false;
  std::string tls_ca_certificate = "cacertbundle.crt";
  std::string tls_client_certificate = "client_cert.pem";
  std::string tls_client_key = "client_key.pem";
  std::string tls_server_name_identification = "redis.localhost";
};

// Behavior of lookups while a tier does not answer. Applies to databases that
// models share. None of these keys is in upstream.
struct OutageConfig {
  // Longest time that a lookup waits for the tier; 0: no limit.
  int64_t lookup_timeout_ms = 0;
  // "error": the lookup returns Unavailable. "skip": it continues with the
  // other tiers.
  std::string on_unavailable = "error";
  // After this many consecutive Unavailable lookups, lookups skip the tier for
  // breaker_pause_ms; then one lookup tries it again. With 0 ms every lookup
  // tries it.
  int64_t breaker_failures = 3;
  int64_t breaker_pause_ms = 1000;
};

struct VolatileConfig {
  // "disabled" or a type of this tier (server/databases.cc).
  std::string type = "parallel_hash_map";
  int64_t num_partitions = 8;
  int64_t max_batch_size = 65536;
  int64_t overflow_margin = std::numeric_limits<int64_t>::max();
  std::string overflow_policy =
      "evict_random";  // or evict_least_used, evict_oldest
  double overflow_resolution_target = 0.8;
  double initial_cache_rate = 1.0;
  bool cache_missed_embeddings = false;
  bool initialize_after_startup = true;
  std::vector<std::string> update_filters = {".+"};
  RedisConfig redis;
  OutageConfig outage;
};

struct PersistentConfig {
  // "disabled" or a type of this tier (server/databases.cc).
  std::string type = "disabled";
  std::string path;
  int64_t num_threads = 16;
  bool read_only = false;
  int64_t max_batch_size = 65536;
  bool initialize_after_startup = true;
  std::vector<std::string> update_filters = {".+"};
  OutageConfig outage;
};

struct UpdateSourceConfig {
  // "none", "kafka_message_queue" or "directory" (not in upstream).
  std::string type = "none";
  std::string brokers = "127.0.0.1:9092";
  // for "directory": the folder that receives the update files
  std::string path;
  int64_t metadata_refresh_interval_ms = 30000;
  int64_t receive_buffer_size = 262144;
  int64_t poll_timeout_ms = 500;
  int64_t max_batch_size = 8192;
  int64_t failure_backoff_ms = 50;
  int64_t max_commit_interval = 32;
};

struct Config {
  std::string where;  // the file's path, for messages
  bool long_keys = true;
  std::vector<ModelConfig> models;
  VolatileConfig volatile_db;
  PersistentConfig persistent_db;
  UpdateSourceConfig update_source;
  // Keys without effect, or with an effect that differs from upstream's.
  std::vector<std::string> notes;
  // All mistakes of a file that is valid JSON; the status message lists them.
  std::vector<std::string> errors;
};

// Parses a configuration. A table's relative path is resolved in `folder` if it
// exists there, otherwise in the process's working folder. `types`: the types
// that exist besides "disabled"; errors list them in this order. Errors start
// with `where`. InvalidArgument: only config->notes and config->errors are
// valid then.
ev::Status ParseConfig(const std::string& text, const std::string& where,
                       const std::string& folder,
                       const std::vector<DatabaseType>& types, Config* config);

// Reads and parses a file. NotFound: the file does not exist. *text: the file's
// content; may be null.
ev::Status ReadConfig(const std::string& path,
                      const std::vector<DatabaseType>& types, Config* config,
                      std::string* text);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CONFIG_CONFIG_H_
