// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/databases.h"

#include <utility>

#include "addons/hierarchical_parameter_server/database/hash_map/hash_map.h"

namespace hps {
namespace {

ev::Status NotThere(const char* tier, const std::string& type) {
  return ev::Unimplemented(std::string(tier) + ".type: \"" + type +
                           "\" is not built into this library");
}

void MakeMapped(const std::string& type, bool persistent, MadeDatabase* made) {
  auto files = std::make_shared<MappedFiles>(type, persistent);
  made->files = files.get();
  made->database = std::move(files);
}

}  // namespace

bool IsOwnOfModel(const std::string& type) {
  return type == "hash_map" || type == "parallel_hash_map" ||
         type == "multi_process_hash_map" || type == "mapped_files";
}

ev::Status MakeVolatile(const VolatileConfig& config, MadeDatabase* made) {
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
  return NotThere("volatile_db", config.type);
}

ev::Status MakePersistent(const PersistentConfig& config, MadeDatabase* made) {
  *made = MadeDatabase();
  if (config.type == "disabled") return ev::Status::OK();
  if (config.type == "mapped_files") {
    MakeMapped(config.type, true, made);
    return ev::Status::OK();
  }
  return NotThere("persistent_db", config.type);
}

}  // namespace hps
