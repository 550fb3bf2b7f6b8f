// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/redis/redis_database.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <thread>
#include <utility>

#include "addons/hierarchical_parameter_server/database/redis/redis_table.h"

namespace hps {
namespace {

constexpr char kTables[] = "hps_tables";

// Half of the words that Redis accepts in one command, minus the command's own.
constexpr int64_t kLargestBatch = 262143;
constexpr int kMostPartitions = 4096;

// How long a table may look half created before it counts as half lost.
constexpr int kAttempts = 20;
constexpr int kPauseMs = 25;

ev::Status Check(const char* key, int64_t value, int64_t smallest,
                 int64_t largest) {
  if (value >= smallest && value <= largest) return ev::Status::OK();
  return ev::InvalidArgument("database redis_cluster: " + std::string(key) +
                             ": expected " + std::to_string(smallest) + " to " +
                             std::to_string(largest) + ", got " +
                             std::to_string(value));
}

// Describes a table: FormatText with the number of partitions after the width,
// "64 8" or "17 8 uint8 64".
std::string Description(const RowFormat& format, int partitions) {
  std::string text = FormatText(format);
  return text.insert(std::min(text.find(' '), text.size()),
                     " " + std::to_string(partitions));
}
bool ParseDescription(const RespReply& reply, RowFormat* format,
                      int* partitions) {
  int width = 0, end = 0;
  return std::sscanf(reply.text.c_str(), "%d %d%n", &width, partitions, &end) ==
             2 &&
         *partitions > 0 && *partitions <= kMostPartitions &&
         ParseFormatText(std::to_string(width) + reply.text.substr(end),
                         format);
}

// Returns the name of the hash of a table's attributes.
std::string NotesOf(const std::string& tag) { return "hps_notes{" + tag + "}"; }

}  // namespace

ev::Status RedisDatabase::Open(const RedisOptions& options,
                               std::unique_ptr<Database>* database) {
  EV_RETURN_IF_ERROR(
      Check("num_partitions", options.num_partitions, 1, kMostPartitions));
  EV_RETURN_IF_ERROR(
      Check("max_batch_size", options.max_batch_size, 1, kLargestBatch));
  EV_RETURN_IF_ERROR(
      Check("num_node_connections", options.num_node_connections, 1, 1024));
  EV_RETURN_IF_ERROR(Check("timeout_ms", options.timeout_ms, 1, 3600000));
  EV_RETURN_IF_ERROR(
      Check("fetch_timeout_ms", options.fetch_timeout_ms, 0, 3600000));
  EV_RETURN_IF_ERROR(
      Check("connect_timeout_ms", options.connect_timeout_ms, 1, 3600000));
  if (options.overflow_margin == 0 ||
      !(options.overflow_resolution_target > 0.0 &&
        options.overflow_resolution_target <= 1.0)) {
    return ev::InvalidArgument(
        "database redis_cluster: expected overflow_margin >= 1 and "
        "overflow_resolution_target in (0, 1], got " +
        std::to_string(options.overflow_margin) + " and " +
        std::to_string(options.overflow_resolution_target));
  }
  std::unique_ptr<RedisClient> client;
  const ev::Status status = RedisClient::Open(options, &client);
  if (!status.ok()) {
    return ev::Status(status.code(),
                      "database redis_cluster: " + status.message());
  }
  database->reset(new RedisDatabase(std::move(client)));
  return ev::Status::OK();
}

ev::Status RedisDatabase::Reach() {
  const ev::Status status = client_->Reach();
  if (status.ok()) return status;
  return ev::Status(status.code(),
                    "database redis_cluster: " + status.message());
}

Capabilities RedisDatabase::capabilities() const {
  const RedisOptions& options = client_->options();
  Capabilities capabilities;
  capabilities.remote = true;
  capabilities.shared = true;
  // Whether rows survive the server is its operator's choice; they do survive
  // this process.
  capabilities.persistent = true;
  capabilities.may_evict =
      options.loss == RedisLoss::kEmptiesThePartition ||
      options.overflow_margin != std::numeric_limits<uint64_t>::max();
  return capabilities;
}

ev::Status RedisDatabase::Named(const std::string& tag,
                                const ev::Status& status) const {
  if (status.ok()) return status;
  return ev::Status(status.code(), "database redis_cluster, table " + tag +
                                       ": " + status.message());
}

ev::Status RedisDatabase::OpenTable(const std::string& tag, RowFormat format,
                                    std::shared_ptr<Table>* table) {
  EV_RETURN_IF_ERROR(CheckTable(name_, tag, format));
  const int num_partitions = client_->options().num_partitions;
  auto opened = std::make_shared<RedisTable>(client_, tag, format);
  RespReply description;
  bool is_new = true;
  for (int attempts = 0; is_new; ++attempts) {
    RedisCall known({"HGET", kTables, tag});
    EV_RETURN_IF_ERROR(Named(tag, client_->Run(&known)));
    description = known.reply();
    is_new = description.is_nil();
    if (!is_new) break;
    // Creates the partitions first, so that every listed table is complete.
    const ev::Status status = opened->Open(is_new);
    if (status.ok()) break;
    // Another process may be in the middle of creating it.
    if (status.code() != ev::StatusCode::kDataLoss || attempts == kAttempts) {
      return status;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kPauseMs));
  }
  if (is_new) {
    RedisCall list(
        {"HSETNX", kTables, tag, Description(format, num_partitions)});
    RedisCall again({"HGET", kTables, tag});
    const std::vector<RedisRequest*> requests = {&list, &again};
    EV_RETURN_IF_ERROR(Named(tag, client_->Run(requests)));
    description = again.reply();
  }
  RowFormat stored;
  int stored_partitions = 0;
  if (!ParseDescription(description, &stored, &stored_partitions)) {
    return Named(
        tag, ev::Status(ev::StatusCode::kDataLoss,
                        "the field of the table in the hash " +
                            std::string(kTables) + " is '" + description.text +
                            "', expected '<width> <partitions>'"));
  }
  EV_RETURN_IF_ERROR(Named(tag, CheckFormat(stored, format)));
  if (stored_partitions != num_partitions) {
    return Named(
        tag, ev::InvalidArgument("num_partitions: the table was stored with " +
                                 std::to_string(stored_partitions) + ", got " +
                                 std::to_string(num_partitions)));
  }
  if (!is_new) EV_RETURN_IF_ERROR(opened->Open(is_new));
  *table = std::move(opened);
  return ev::Status::OK();
}

ev::Status RedisDatabase::ReadAttribute(const std::string& tag,
                                        const std::string& name,
                                        std::string* value) {
  RedisCall get({"HGET", NotesOf(tag), name});
  EV_RETURN_IF_ERROR(Named(tag, client_->Run(&get)));
  *value = get.reply().is_nil() ? "" : get.reply().text;
  return ev::Status::OK();
}

ev::Status RedisDatabase::WriteAttributes(
    const std::string& tag,
    const std::map<std::string, std::string>& attributes) {
  std::vector<std::string> words = {"HSET", NotesOf(tag)};
  for (const auto& attribute : attributes) {
    words.push_back(attribute.first);
    words.push_back(attribute.second);
  }
  RedisCall set(words);
  return attributes.empty() ? ev::Status::OK() : Named(tag, client_->Run(&set));
}

ev::Status RedisDatabase::RemoveAttributes(const std::string& tag) {
  RedisCall unlink({"UNLINK", NotesOf(tag)});
  return Named(tag, client_->Run(&unlink));
}

ev::Status RedisDatabase::DropTable(const std::string& tag) {
  EV_RETURN_IF_ERROR(RemoveAttributes(tag));
  RedisCall known({"HGET", kTables, tag});
  EV_RETURN_IF_ERROR(Named(tag, client_->Run(&known)));
  RowFormat format;
  int partitions = 0;
  if (ParseDescription(known.reply(), &format, &partitions)) {
    RedisCall unlist({"HDEL", kTables, tag});
    EV_RETURN_IF_ERROR(Named(tag, client_->Run(&unlist)));
  } else {
    // The list may be lost while other nodes still have partitions.
    partitions = client_->options().num_partitions;
  }
  std::vector<std::unique_ptr<RedisCall>> calls;
  std::vector<RedisRequest*> requests;
  for (int i = 0; i < partitions; ++i) {
    for (const char kind : {'v', 't'}) {
      calls.push_back(std::make_unique<RedisCall>(
          std::vector<std::string>{"UNLINK", PartitionHash(tag, i, kind)}));
      requests.push_back(calls.back().get());
    }
  }
  EV_RETURN_IF_ERROR(Named(tag, client_->Run(requests)));
  int64_t num_removed = known.reply().is_nil() ? 0 : 1;
  for (const auto& call : calls) num_removed += call->reply().number;
  return num_removed > 0 ? ev::Status::OK()
                         : Named(tag, ev::NotFound("there is no such table"));
}

ev::Status RedisDatabase::ListTables(std::vector<TableInfo>* tables) {
  RedisCall all({"HGETALL", kTables});
  const ev::Status status = client_->Run(&all);
  if (!status.ok()) {
    return ev::Status(status.code(),
                      "database redis_cluster: " + status.message());
  }
  tables->clear();
  const std::vector<RespReply>& pairs = all.reply().elements;
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
    TableInfo info;
    int partitions = 0;
    info.tag = pairs[i].text;
    if (ParseDescription(pairs[i + 1], &info.format, &partitions)) {
      tables->push_back(std::move(info));
    }
  }
  std::sort(
      tables->begin(), tables->end(),
      [](const TableInfo& a, const TableInfo& b) { return a.tag < b.tag; });
  return ev::Status::OK();
}

}  // namespace hps
