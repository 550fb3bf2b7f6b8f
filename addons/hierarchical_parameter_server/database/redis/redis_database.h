// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Tables in a Redis server or cluster: memory of other machines, shared by
// processes. redis_table.h describes the layout.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_REDIS_DATABASE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_REDIS_DATABASE_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/database.h"
#include "addons/hierarchical_parameter_server/database/redis/redis_client.h"
#include "addons/hierarchical_parameter_server/database/redis/redis_options.h"

namespace hps {

class RedisDatabase : public Database {
 public:
  // Connects. InvalidArgument: an option is out of range, or a TLS file or the
  // password cannot be read; otherwise the errors of RedisClient::Run.
  static ev::Status Open(const RedisOptions& options,
                         std::unique_ptr<Database>* database);

  const std::string& name() const override { return name_; }
  Capabilities capabilities() const override;
  // Checks each node of a cluster that has rows. Errors as for
  // RedisClient::Run.
  ev::Status Reach() override;
  // Additional errors. InvalidArgument: the table was stored with another
  // number of partitions. DataLoss: the server has lost part of it.
  ev::Status OpenTable(const std::string& tag, RowFormat format,
                       std::shared_ptr<Table>* table) override;
  ev::Status ReadAttribute(const std::string& tag, const std::string& name,
                           std::string* value) override;
  ev::Status WriteAttributes(
      const std::string& tag,
      const std::map<std::string, std::string>& attributes) override;
  ev::Status RemoveAttributes(const std::string& tag) override;
  ev::Status DropTable(const std::string& tag) override;
  ev::Status ListTables(std::vector<TableInfo>* tables) override;

 private:
  explicit RedisDatabase(std::shared_ptr<RedisClient> client)
      : client_(std::move(client)) {}
  ev::Status Named(const std::string& tag, const ev::Status& status) const;

  const std::string name_ = "redis_cluster";
  const std::shared_ptr<RedisClient> client_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_REDIS_DATABASE_H_
