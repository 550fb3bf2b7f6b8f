// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Options of a Redis database; keys of `volatile_db` of the same names, except
// fetch_timeout_ms, which is lookup_timeout_ms.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_REDIS_OPTIONS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_REDIS_OPTIONS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/redis/tls_stream.h"

namespace hps {

// Which rows go when a partition has more than overflow_margin.
enum class RedisOverflow {
  kEvictRandom,
  kEvictLeastUsed,  // the fewest inserts and fetches since it was stored
  kEvictOldest,     // the longest time since it was stored or fetched
};

// What to do when the server has lost rows that this process has seen: it was
// killed and came back without them or with older ones, or was emptied.
enum class RedisLoss {
  // Every call on the partition is an error until the table is dropped and
  // loaded again: for a database that must have all rows.
  kIsAnError,
  // The partition is emptied and its rows are missing: for a cache of rows that
  // a database below has.
  kEmptiesThePartition,
};

struct RedisOptions {
  // "host:port", "[IPv6 address]:port" or "unix:/path": any nodes of a cluster
  // (the others are asked for), or one server.
  std::vector<std::string> addresses = {"127.0.0.1:7000"};
  std::string user_name = "default";
  std::string password;
  // In place of password: a file whose first line is the password, or an
  // environment variable. Read again for each connection.
  std::string password_file;
  std::string password_env;
  int num_node_connections = 5;
  TlsOptions tls;

  int num_partitions = 8;
  // Keys of one command.
  int64_t max_batch_size = 65536;
  uint64_t overflow_margin = std::numeric_limits<uint64_t>::max();
  RedisOverflow overflow_policy = RedisOverflow::kEvictRandom;
  double overflow_resolution_target = 0.8;
  RedisLoss loss = RedisLoss::kIsAnError;

  // The longest that a call may take, repeated attempts included; that a Fetch
  // may take, 0: as every call; and that one connection may take.
  int64_t timeout_ms = 5000;
  int64_t fetch_timeout_ms = 0;
  int64_t connect_timeout_ms = 1000;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_REDIS_OPTIONS_H_
