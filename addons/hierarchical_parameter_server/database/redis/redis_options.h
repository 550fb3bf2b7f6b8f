// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Options of a Redis database. They are keys of `volatile_db` with the same
// names, except that fetch_timeout_ms is called lookup_timeout_ms there.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_REDIS_OPTIONS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_REDIS_OPTIONS_H_

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/redis/tls_stream.h"

namespace hps {

// Selects the rows to evict when a partition has more than overflow_margin.
enum class RedisOverflow {
  kEvictRandom,
  kEvictLeastUsed,  // fewest inserts and fetches since it was stored
  kEvictOldest,     // longest time since it was stored or fetched
};

// Reaction to rows that this process has seen and the server has lost: it was
// killed and restarted without them or with older ones, or it was emptied.
enum class RedisLoss {
  // Every call on the partition fails until the table is dropped and loaded
  // again. For a database that must have all rows.
  kIsAnError,
  // The partition is emptied, and its rows are missing. For a cache of rows
  // that a lower tier has.
  kEmptiesThePartition,
};

struct RedisOptions {
  // "host:port", "[IPv6 address]:port" or "unix:/path": one server, or any
  // nodes of a cluster (the client finds the others).
  std::vector<std::string> addresses = {"127.0.0.1:7000"};
  std::string user_name = "default";
  std::string password;
  // Instead of `password`: a file whose first line is the password, or an
  // environment variable. Read for each new connection.
  std::string password_file;
  std::string password_env;
  int num_node_connections = 5;
  TlsOptions tls;

  int num_partitions = 8;
  // Most keys in one command.
  int64_t max_batch_size = 65536;
  uint64_t overflow_margin = std::numeric_limits<uint64_t>::max();
  RedisOverflow overflow_policy = RedisOverflow::kEvictRandom;
  double overflow_resolution_target = 0.8;
  RedisLoss loss = RedisLoss::kIsAnError;

  // Limits of one round of commands including its retries (Insert, Remove and
  // ForEach make several), of a Fetch (0: like other rounds), and of opening
  // one connection.
  int64_t timeout_ms = 5000;
  int64_t fetch_timeout_ms = 0;
  int64_t connect_timeout_ms = 1000;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_REDIS_OPTIONS_H_
