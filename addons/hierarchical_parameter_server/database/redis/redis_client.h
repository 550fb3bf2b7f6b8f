// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Sends commands to one Redis server or a cluster. Each command goes to the
// node that has its slot. Commands of one call are pipelined: they do not wait
// for earlier replies. Commands that fail on the way are retried until the
// call's deadline.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_REDIS_CLIENT_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_REDIS_CLIENT_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/redis/cluster_slots.h"
#include "addons/hierarchical_parameter_server/database/redis/connection.h"
#include "addons/hierarchical_parameter_server/database/redis/known_connections.h"
#include "addons/hierarchical_parameter_server/database/redis/redis_options.h"
#include "addons/hierarchical_parameter_server/database/redis/resp.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace hps {

// One command. It may be sent more than once: when a connection breaks, it is
// unknown whether the server executed it.
class RedisRequest {
 public:
  explicit RedisRequest(int slot) : slot_(slot) {}
  virtual ~RedisRequest() {}
  int slot() const { return slot_; }
  virtual void Encode(RespWriter* writer) const = 0;
  // Reads the rest of the reply, whose head is not an error. A returned error
  // means that the connection is broken; it is closed, and Take is called again
  // for the next attempt's reply.
  virtual ev::Status Take(const RespHead& head, RespReader* reader) = 0;

  // Id of the connection that delivered the reply; 0: no reply yet.
  int64_t connection() const { return connection_; }
  void CameBy(int64_t connection) { connection_ = connection; }
  // For RunOnKnown; null: any connection will do.
  const KnownConnections* known() const { return known_; }
  void WantKnown(const KnownConnections* known) { known_ = known; }

 private:
  const int slot_;
  int64_t connection_ = 0;
  const KnownConnections* known_ = nullptr;
};

// A command of few words with a small reply.
class RedisCall : public RedisRequest {
 public:
  // words[1] is the key.
  explicit RedisCall(std::vector<std::string> words)
      : RedisRequest(SlotOf(words.size() > 1 ? words[1] : "")),
        words_(std::move(words)) {}
  void Encode(RespWriter* writer) const override {
    writer->Begin(static_cast<int64_t>(words_.size()));
    for (const std::string& word : words_) writer->Word(word);
  }
  ev::Status Take(const RespHead& head, RespReader* reader) override {
    return reader->Rest(head, &reply_);
  }
  const RespReply& reply() const { return reply_; }

 private:
  const std::vector<std::string> words_;
  RespReply reply_;
};

// Thread-safe.
class RedisClient {
 public:
  // Connects to one of the addresses and detects whether it is a cluster.
  static ev::Status Open(const RedisOptions& options,
                         std::unique_ptr<RedisClient>* client);
  RedisClient(const RedisClient&) = delete;

  // Executes all requests; those of one slot in order, but one that is retried
  // may follow later ones. On an error some may have been executed.
  // Unavailable: a server was not reached or not ready in time; the message
  // names it and the error of the last attempt. Internal: its replies break
  // Redis's protocol. FailedPrecondition: it rejects the user, the certificate
  // or the command. ResourceExhausted: it is out of memory.
  ev::Status Run(ev::Span<RedisRequest* const> requests);
  // The same with a deadline other than timeout_ms from now.
  ev::Status Run(ev::Span<RedisRequest* const> requests,
                 const Deadline& deadline);
  // Tries once, and sends a request only over a connection in its known() set:
  // it then reaches a server process that has not restarted since. *is_done:
  // all were executed; if false, some may have been. Errors as for Run.
  ev::Status RunOnKnown(ev::Span<RedisRequest* const> requests, bool* is_done);
  ev::Status Run(RedisRequest* request) {
    return Run(ev::Span<RedisRequest* const>(&request, 1));
  }

  // Checks that every node with rows replies. Errors as for Run; tries once.
  ev::Status Reach();

  // Returns whether the server is a cluster.
  bool is_cluster();
  const RedisOptions& options() const { return options_; }

 private:
  struct Work;
  struct NodeWork;
  struct Attempt;
  using Pool = std::shared_ptr<ConnectionPool>;

  explicit RedisClient(const RedisOptions& options) : options_(options) {}
  Pool PoolOf(const std::string& address);
  // Fetches the topology unless it is newer than number `seen`.
  ev::Status Refresh(int64_t seen, const Deadline& deadline);
  ev::Status Learn(const std::string& address, const Deadline& deadline,
                   Topology* topology, bool* is_cluster);
  std::shared_ptr<const Topology> CurrentTopology(int64_t* number);
  // Sends the pending work and reads the replies; work that must be retried
  // stays in *pending.
  ev::Status TryOnce(const Topology& topology, const Deadline& deadline,
                     bool only_known, std::vector<Work>* pending,
                     Attempt* attempt);
  static ev::Status OutOfTime(const Attempt& attempt, int attempts,
                              const Deadline& deadline);
  ev::Status OnError(const std::string& error, const std::string& address,
                     Work* work, Attempt* attempt);

  const RedisOptions options_;
  std::shared_ptr<TlsContext> tls_;
  // Held while a server is queried for the topology.
  std::mutex refresh_mutex_;
  std::mutex mutex_;  // guards the members below
  std::shared_ptr<const Topology> topology_;
  int64_t topology_number_ = 0;
  bool is_cluster_ = false;
  std::map<std::string, Pool> pools_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_REDIS_CLIENT_H_
