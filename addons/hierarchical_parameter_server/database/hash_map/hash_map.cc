// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/hash_map/hash_map.h"

#include <new>
#include <utility>

#include "addons/hierarchical_parameter_server/database/hash_map/hash_map_table.h"

namespace hps {

ev::Status HashMap::Make(const HashMapOptions& options,
                         std::unique_ptr<Database>* database) {
  const auto refuse = [&](const char* what, const std::string& got) {
    return ev::InvalidArgument("database " + options.name + ": " + what +
                               ", got " + got);
  };
  if (options.num_partitions < 1 || options.num_partitions > 1024) {
    return refuse("expected num_partitions from 1 to 1024",
                  std::to_string(options.num_partitions));
  }
  if (options.overflow_margin < 1) {
    return refuse("expected overflow_margin of at least 1 row",
                  std::to_string(options.overflow_margin));
  }
  if (!(options.overflow_resolution_target > 0 &&
        options.overflow_resolution_target <= 1)) {
    return refuse("expected overflow_resolution_target above 0 and at most 1",
                  std::to_string(options.overflow_resolution_target));
  }
  database->reset(new HashMap(options));
  return ev::Status::OK();
}

Capabilities HashMap::capabilities() const {
  Capabilities capabilities;
  capabilities.may_evict =
      options_.overflow_margin != std::numeric_limits<int64_t>::max();
  return capabilities;
}

ev::Status HashMap::OpenTable(const std::string& tag, RowFormat format,
                              std::shared_ptr<Table>* table) {
  EV_RETURN_IF_ERROR(CheckTable(name(), tag, format));
  std::lock_guard<std::mutex> lock(mu_);
  auto found = tables_.find(tag);
  if (found == tables_.end()) {
    try {
      auto made = std::make_shared<HashMapTable>(tag, format, options_);
      found = tables_.emplace(tag, std::move(made)).first;
    } catch (const std::bad_alloc&) {
      return ev::ResourceExhausted("database " + name() + ", table " + tag +
                                   ": no memory for an empty table");
    }
  }
  const ev::Status status = CheckFormat(found->second->format(), format);
  if (!status.ok()) {
    return ev::Status(status.code(), "database " + name() + ", table " + tag +
                                         ": " + status.message());
  }
  *table = found->second;
  return ev::Status::OK();
}

ev::Status HashMap::DropTable(const std::string& tag) {
  std::shared_ptr<Table> dropped;  // destroyed after the lock is released
  std::lock_guard<std::mutex> lock(mu_);
  const auto found = tables_.find(tag);
  if (found == tables_.end()) {
    return ev::NotFound("database " + name() + ": there is no table " + tag);
  }
  dropped = std::move(found->second);
  tables_.erase(found);
  return ev::Status::OK();
}

ev::Status HashMap::ListTables(std::vector<TableInfo>* tables) {
  tables->clear();
  std::lock_guard<std::mutex> lock(mu_);
  for (const auto& entry : tables_) {
    tables->push_back({entry.first, entry.second->format()});
  }
  return ev::Status::OK();
}

}  // namespace hps
