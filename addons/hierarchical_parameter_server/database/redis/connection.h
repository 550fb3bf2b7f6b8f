// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Connections to one Redis server, and a pool of them.

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

// For use by one thread at a time.
class Connection {
 public:
  // Connects and authenticates. After Unavailable, or Internal (the reply
  // breaks Redis's protocol), another attempt may succeed; after other errors
  // it would not.
  static ev::Status Open(const std::string& address,
                         const RedisOptions& options, TlsContext* tls,
                         const Deadline& deadline,
                         std::unique_ptr<Connection>* connection);

  // Unique among the connections of this process; > 0.
  int64_t id() const { return id_; }
  ByteStream* stream() { return stream_.get(); }
  RespReader* reader() { return &reader_; }

  // Sends one command and reads its reply. An error reply of the server is
  // stored in *reply; the status is OK then.
  ev::Status Call(const std::vector<std::string>& words,
                  const Deadline& deadline, RespReply* reply);

 private:
  explicit Connection(std::unique_ptr<ByteStream> stream);

  const int64_t id_;
  const std::unique_ptr<ByteStream> stream_;
  RespReader reader_;
};

// Thread-safe.
class ConnectionPool {
 public:
  ConnectionPool(std::string address, const RedisOptions* options,
                 std::shared_ptr<TlsContext> tls);

  const std::string& address() const { return address_; }

  // Takes a connection; waits for one to be returned if all are taken.
  ev::Status Take(const Deadline& deadline,
                  std::unique_ptr<Connection>* connection);
  void GiveBack(std::unique_ptr<Connection> connection);
  // Call when a taken connection has failed: closes the idle ones, which are
  // probably broken too.
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

// Holds a connection of a pool. It returns to the pool with Done(), otherwise
// it is closed.
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
