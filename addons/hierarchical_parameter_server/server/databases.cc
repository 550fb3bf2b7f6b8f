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

template <bool kPersistent>
ev::Status MakeMapped(const Config& config, MadeDatabase* made) {
  auto files = std::make_shared<MappedFiles>(
      kPersistent ? config.persistent_db.type : config.volatile_db.type,
      kPersistent);
  made->files = files.get();
  made->database = std::move(files);
  return ev::Status::OK();
}

ev::Status MakeHashMap(const Config& all, MadeDatabase* made) {
  const VolatileConfig& config = all.volatile_db;
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

ev::Status MakeRedis(const Config& all, MadeDatabase* made) {
  const VolatileConfig& config = all.volatile_db;
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
  // With a persistent tier, Redis may continue without rows that it has lost.
  options.loss = all.persistent_db.type != "disabled"
                     ? RedisLoss::kEmptiesThePartition
                     : RedisLoss::kIsAnError;
  std::unique_ptr<Database> database;
  EV_RETURN_IF_ERROR(RedisDatabase::Open(options, &database));
  made->database = std::move(database);
  made->breaker = std::make_shared<Breaker>("volatile_db " + config.type,
                                            config.type, config.outage);
  return ev::Status::OK();
}

ev::Status ReachRedis(const Config& config, std::string* where) {
  *where = config.volatile_db.redis.address;
  // Redis as the only tier: lost rows raise an error and change nothing.
  Config alone;
  alone.volatile_db = config.volatile_db;
  MadeDatabase made;
  EV_RETURN_IF_ERROR(MakeRedis(alone, &made));
  return made.database->Reach();
}

ev::Status MakeRocksDb(const Config& all, MadeDatabase* made) {
  const PersistentConfig& config = all.persistent_db;
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

ev::Status ReachRocksDb(const Config& config, std::string* where) {
  *where = config.persistent_db.path;
  return RocksDbStore::Reach(*where, config.persistent_db.read_only);
}

const DatabaseType* Find(const std::string& type) {
  for (const DatabaseType& one : DatabaseTypes()) {
    if (one.names[0] == type) return &one;
  }
  return nullptr;
}

}  // namespace

// multi_process_hash_map and mapped_files serve the table files. redis (a
// single server) and mapped_files are not in upstream.
const std::vector<DatabaseType>& DatabaseTypes() {
  constexpr auto kVolatile = DatabaseType::Tier::kVolatile;
  constexpr auto kPersistent = DatabaseType::Tier::kPersistent;
  static const auto* const types = new std::vector<DatabaseType>{
      {kVolatile,
       {"parallel_hash_map", "parallel_hashmap", "parallel_hash",
        "parallel_map"},
       MakeHashMap,
       nullptr},
      {kVolatile, {"hash_map", "hashmap", "hash", "map"}, MakeHashMap, nullptr},
      {kVolatile,
       {"multi_process_hash_map", "multi_process_hashmap", "multi_process_hash",
        "multi_process_map"},
       MakeMapped<false>,
       nullptr},
      {kVolatile, {"redis_cluster"}, MakeRedis, ReachRedis},
      {kVolatile, {"redis"}, MakeRedis, ReachRedis},
      {kPersistent,
       {"rocks_db", "rocksdb", "rocks"},
       MakeRocksDb,
       ReachRocksDb},
      {kPersistent, {"mapped_files"}, MakeMapped<true>, nullptr},
  };
  return *types;
}

bool IsOwnOfModel(const std::string& type) {
  const DatabaseType* const found = Find(type);
  return found != nullptr && !found->is_shared();
}

ev::Status MakeDatabase(const std::string& type, const Config& config,
                        MadeDatabase* made) {
  *made = MadeDatabase();
  const DatabaseType* const found = Find(type);
  return found == nullptr ? ev::Status::OK() : found->make(config, made);
}

ev::Status ReachDatabase(const std::string& type, const Config& config,
                         std::string* what) {
  what->clear();
  const DatabaseType* const found = Find(type);
  if (found == nullptr || !found->is_shared()) return ev::Status::OK();
  std::string where;
  const ev::Status status = found->reach(config, &where);
  *what = type + " " + where;
  return status;
}

}  // namespace hps
