// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/databases.h"

#include <unistd.h>

#include <limits>
#include <utility>

#include "addons/hierarchical_parameter_server/database/hash_map/hash_map.h"
#include "addons/hierarchical_parameter_server/database/redis/redis_database.h"
#include "addons/hierarchical_parameter_server/database/rocksdb/rocksdb_database.h"
#include "addons/hierarchical_parameter_server/database/rocksdb/rocksdb_store.h"

namespace hps {
namespace {

ev::Status NotBuiltIn(const char* tier, const std::string& type) {
  return ev::Unimplemented(std::string(tier) + ".type: \"" + type +
                           "\" is not built into this library");
}

void MakeMapped(const std::string& type, bool persistent, MadeDatabase* made) {
  auto files = std::make_shared<MappedFiles>(type, persistent);
  made->files = files.get();
  made->database = std::move(files);
}

// Splits "a:1,b:2" or "a:1;b:2".
std::vector<std::string> AddressesOf(const std::string& list) {
  std::vector<std::string> addresses(1);
  for (const char c : list) {
    if (c == ',' || c == ';') {
      addresses.emplace_back();
    } else if (c != ' ') {
      addresses.back() += c;
    }
  }
  return addresses;
}

bool FileExists(const std::string& path) {
  return access(path.c_str(), F_OK) == 0;
}

ev::Status MakeRedis(const VolatileConfig& config, bool all_rows_are_below,
                     MadeDatabase* made) {
  const RedisConfig& redis = config.redis;
  RedisOptions options;
  options.addresses = AddressesOf(redis.address);
  options.user_name = redis.user_name;
  options.password = redis.password;
  options.password_file = redis.password_file;
  options.password_env = redis.password_env;
  options.num_node_connections = static_cast<int>(redis.num_node_connections);
  options.timeout_ms = redis.timeout_ms;
  options.fetch_timeout_ms = config.outage.lookup_timeout_ms;
  options.tls.enabled = redis.enable_tls;
  options.tls.ca_certificate = redis.tls_ca_certificate;
  options.tls.server_name = redis.tls_server_name_identification;
  options.tls.client_certificate = redis.tls_client_certificate;
  options.tls.client_key = redis.tls_client_key;
  const RedisConfig defaults;
  if (redis.tls_client_certificate == defaults.tls_client_certificate &&
      redis.tls_client_key == defaults.tls_client_key &&
      !FileExists(redis.tls_client_certificate)) {
    // The default certificate files do not exist, so no client certificate is
    // used.
    options.tls.client_certificate.clear();
    options.tls.client_key.clear();
  }
  options.num_partitions = static_cast<int>(config.num_partitions);
  options.max_batch_size = config.max_batch_size;
  if (config.overflow_margin != std::numeric_limits<int64_t>::max()) {
    options.overflow_margin = static_cast<uint64_t>(config.overflow_margin);
  }
  options.overflow_policy = config.overflow_policy == "evict_oldest"
                                ? RedisOverflow::kEvictOldest
                            : config.overflow_policy == "evict_least_used"
                                ? RedisOverflow::kEvictLeastUsed
                                : RedisOverflow::kEvictRandom;
  options.overflow_resolution_target = config.overflow_resolution_target;
  options.loss = all_rows_are_below ? RedisLoss::kEmptiesThePartition
                                    : RedisLoss::kIsAnError;
  std::unique_ptr<Database> database;
  EV_RETURN_IF_ERROR(RedisDatabase::Open(options, &database));
  made->database = std::move(database);
  made->breaker = std::make_shared<Breaker>("volatile_db " + config.type,
                                            config.type, config.outage);
  return ev::Status::OK();
}

bool IsRedis(const VolatileConfig& config) {
  return config.type == "redis_cluster" || config.type == "redis";
}

}  // namespace

bool IsOwnOfModel(const std::string& type) {
  return type == "hash_map" || type == "parallel_hash_map" ||
         type == "multi_process_hash_map" || type == "mapped_files";
}

ev::Status MakeVolatile(const VolatileConfig& config, bool all_rows_are_below,
                        MadeDatabase* made) {
  *made = MadeDatabase();
  if (config.type == "disabled") return ev::Status::OK();
  if (config.type == "multi_process_hash_map") {
    MakeMapped(config.type, false, made);
    return ev::Status::OK();
  }
  if (config.type == "hash_map" || config.type == "parallel_hash_map") {
    HashMapOptions options;
    options.name = config.type;
    options.num_partitions = static_cast<int>(config.num_partitions);
    options.overflow_margin = config.overflow_margin;
    options.overflow_resolution_target = config.overflow_resolution_target;
    options.overflow_policy = config.overflow_policy == "evict_oldest"
                                  ? EvictionPolicy::kOldest
                              : config.overflow_policy == "evict_least_used"
                                  ? EvictionPolicy::kLeastUsed
                                  : EvictionPolicy::kRandom;
    std::unique_ptr<Database> database;
    EV_RETURN_IF_ERROR(HashMap::Make(options, &database));
    made->database = std::move(database);
    return ev::Status::OK();
  }
  if (IsRedis(config)) return MakeRedis(config, all_rows_are_below, made);
  return NotBuiltIn("volatile_db", config.type);
}

ev::Status MakePersistent(const PersistentConfig& config, MadeDatabase* made) {
  *made = MadeDatabase();
  if (config.type == "disabled") return ev::Status::OK();
  if (config.type == "mapped_files") {
    MakeMapped(config.type, true, made);
    return ev::Status::OK();
  }
  if (config.type == "rocks_db") {
    RocksDbOptions options;
    options.path = config.path;
    options.num_threads = static_cast<int>(config.num_threads);
    options.read_only = config.read_only;
    options.max_batch_size = config.max_batch_size;
    options.fetch_timeout_ms = config.outage.lookup_timeout_ms;
    std::unique_ptr<Database> database;
    EV_RETURN_IF_ERROR(RocksDbDatabase::Open(options, &database));
    made->database = std::move(database);
    made->breaker = std::make_shared<Breaker>("persistent_db rocks_db",
                                              config.type, config.outage);
    return ev::Status::OK();
  }
  return NotBuiltIn("persistent_db", config.type);
}

ev::Status ReachVolatile(const VolatileConfig& config, std::string* what) {
  what->clear();
  if (!IsRedis(config)) return ev::Status::OK();
  *what = config.type + " " + config.redis.address;
  MadeDatabase made;
  EV_RETURN_IF_ERROR(MakeRedis(config, false, &made));
  return made.database->Reach();
}

ev::Status ReachPersistent(const PersistentConfig& config, std::string* what) {
  what->clear();
  if (config.type != "rocks_db") return ev::Status::OK();
  *what = config.type + " " + config.path;
  return RocksDbStore::Reach(config.path, config.read_only);
}

}  // namespace hps
