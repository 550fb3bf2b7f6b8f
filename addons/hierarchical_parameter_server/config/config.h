// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The server's configuration: upstream's JSON as a struct.
//
// Every key of upstream's is known. A key that has no effect here gives a note,
// which says so. A key that is unknown, of the wrong type or out of its range
// is an error; all errors of a file are in one message, each with the key's
// path, what was expected and what came.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_CONFIG_CONFIG_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_CONFIG_CONFIG_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kernels/engine/base/status.h"

namespace hps {

struct TableConfig {
  std::string name;
  std::string folder;  // with key and emb_vector
  int width = 0;
  int64_t max_keys_per_sample = 0;
  float default_value = 0;
};

struct ModelConfig {
  std::string name;
  std::vector<TableConfig> tables;
  std::vector<int64_t> devices;
  int64_t max_batch_size = 64;  // samples of a lookup on one replica
  // What the key says; without it, whether another key describes the cache.
  bool gpucache = false;
  double gpucacheper = 0.2;
  double hit_rate_threshold = 1.0;  // exact
  int64_t worker_buffers = 2;
  double refresh_percentage = 0;
  // Seconds; an interval of 0: the cache is not read from the tiers again.
  double refresh_delay = 0, refresh_interval = 0;
  std::string cache_type = "dynamic";  // or "static", "uvm"
  std::string cache_policy = "lru";    // ours; or "lfu"
  bool preload_cache = true;           // init_ec
  bool pinned_values = false;          // enable_pagelock
  bool fuse = false;

  // Keys of one lookup of a table, at most.
  int64_t max_keys(const TableConfig& table) const {
    return max_batch_size * table.max_keys_per_sample;
  }
};

// What a database takes besides; empty strings where nothing was said.
struct RedisConfig {
  std::string address = "127.0.0.1:7000";
  std::string user_name = "default";
  // Ours: the password may stand in a file or an environment variable.
  std::string password, password_file, password_env;
  int64_t num_node_connections = 5;
  int64_t timeout_ms = 5000;  // ours: the longest that a call may take
  bool enable_tls = false;
  std::string tls_ca_certificate = "cacertbundle.crt";
  std::string tls_client_certificate = "client_cert.pem";
  std::string tls_client_key = "client_key.pem";
  std::string tls_server_name_identification = "redis.localhost";
};

// What lookups do while a tier that another process or a disk has does not
// answer (all ours): of redis_cluster, redis and rocks_db.
struct OutageConfig {
  // The longest that a lookup waits for the tier; 0: without a limit.
  int64_t lookup_timeout_ms = 0;
  // "error": the lookup is Unavailable. "skip": it goes on with the other
  // tiers.
  std::string on_unavailable = "error";
  // So many lookups in a row that end as Unavailable make lookups skip the tier
  // for breaker_pause_ms; then one tries it again. 0 ms: each one tries it.
  int64_t breaker_failures = 3;
  int64_t breaker_pause_ms = 1000;
};

struct VolatileConfig {
  // "disabled", "hash_map", "parallel_hash_map", "multi_process_hash_map",
  // "redis_cluster", "redis" (ours: one server, without a cluster).
  std::string type = "parallel_hash_map";
  int64_t num_partitions = 8;
  int64_t max_batch_size = 65536;
  int64_t overflow_margin = std::numeric_limits<int64_t>::max();
  std::string overflow_policy =
      "evict_random";  // evict_least_used, evict_oldest
  double overflow_resolution_target = 0.8;
  double initial_cache_rate = 1.0;
  bool cache_missed_embeddings = false;
  bool initialize_after_startup = true;
  std::vector<std::string> update_filters = {".+"};
  RedisConfig redis;
  OutageConfig outage;
};

struct PersistentConfig {
  // "disabled", "rocks_db", "mapped_files" (ours: the table directories).
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
  // "none", "kafka_message_queue", "directory" (ours).
  std::string type = "none";
  std::string brokers = "127.0.0.1:9092";
  std::string path;  // directory: where the files are dropped
  int64_t metadata_refresh_interval_ms = 30000;
  int64_t receive_buffer_size = 262144;
  int64_t poll_timeout_ms = 500;
  int64_t max_batch_size = 8192;
  int64_t failure_backoff_ms = 50;
  int64_t max_commit_interval = 32;
};

struct Config {
  std::string where;  // the file, for messages
  bool long_keys = true;
  std::vector<ModelConfig> models;
  VolatileConfig volatile_db;
  PersistentConfig persistent_db;
  UpdateSourceConfig update_source;
  // What the file says that has no effect, or another one than upstream's.
  std::vector<std::string> notes;
  // Each mistake of a file that is JSON; all are in the message of the status.
  std::vector<std::string> errors;
};

// A relative path of a table's folder is taken from `folder` if it is there,
// otherwise from the process's working folder. `where` begins the errors.
// InvalidArgument; of config only notes and errors are then valid.
ev::Status ParseConfig(const std::string& text, const std::string& where,
                       const std::string& folder, Config* config);

// The same of a file. NotFound: there is none. *text (may be null) is what
// stands in it.
ev::Status ReadConfig(const std::string& path, Config* config,
                      std::string* text);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_CONFIG_CONFIG_H_
