// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Connections to one Redis server, and the pool that lends them to calls.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_CONNECTION_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_CONNECTION_H_

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/redis/byte_stream.h"
#include "addons/hierarchical_parameter_server/database/redis/redis_options.h"
#include "addons/hierarchical_parameter_server/database/redis/resp.h"
#include "addons/hierarchical_parameter_server/database/redis/tls_stream.h"

namespace hps {

// One thread at a time.
class Connection {
 public:
  // Connects and says user and password. Unavailable, and Internal where the
  // reply breaks Redis's protocol: another attempt may succeed; every other
  // code: it would not.
  static ev::Status Open(const std::string& address,
                         const RedisOptions& options, TlsContext* tls,
                         const Deadline& deadline,
                         std::unique_ptr<Connection>* connection);

  // Tells it from every other connection of this process; > 0.
  int64_t id() const { return id_; }
  ByteStream* stream() { return stream_.get(); }
  RespReader* reader() { return &reader_; }

  // One command and its reply, errors of the server included in the reply.
  ev::Status Call(const std::vector<std::string>& words,
                  const Deadline& deadline, RespReply* reply);

 private:
  explicit Connection(std::unique_ptr<ByteStream> stream);

  const int64_t id_;
  const std::unique_ptr<ByteStream> stream_;
  RespReader reader_;
};

// Any thread.
class ConnectionPool {
 public:
  ConnectionPool(std::string address, const RedisOptions* options,
                 std::shared_ptr<TlsContext> tls);

  const std::string& address() const { return address_; }

  // Lends a connection, waiting for one to come back when all are lent.
  ev::Status Take(const Deadline& deadline,
                  std::unique_ptr<Connection>* connection);
  void GiveBack(std::unique_ptr<Connection> connection);
  // A lent connection has failed: the others are probably no better.
  void GiveUp();

 private:
  const std::string address_;
  const RedisOptions* const options_;
  const std::shared_ptr<TlsContext> tls_;
  std::mutex mutex_;
  std::condition_variable came_back_;
  std::vector<std::unique_ptr<Connection>> idle_;
  int num_lent_ = 0;
};

// A connection that goes back to its pool, or is dropped if Done() is not
// called.
class Lease {
 public:
  Lease() {}
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  ~Lease() { Drop(); }
  ev::Status Take(const std::shared_ptr<ConnectionPool>& pool,
                  const Deadline& deadline) {
    EV_RETURN_IF_ERROR(pool->Take(deadline, &connection_));
    pool_ = pool;
    return ev::Status::OK();
  }
  Connection* operator->() const { return connection_.get(); }
  // REQUIRES: every reply was read.
  void Done() { pool_->GiveBack(std::move(connection_)); }
  void Drop() {
    if (connection_ == nullptr) return;
    connection_.reset();
    pool_->GiveUp();
  }

 private:
  std::shared_ptr<ConnectionPool> pool_;
  std::unique_ptr<Connection> connection_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_CONNECTION_H_
