// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Commands to one Redis server or to a cluster: each goes to the node that has
// its slot, commands of one call are sent without waiting for the replies of
// those before, and what fails on the way is tried again until the call's time
// is over.

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

// One command. It may be sent several times: when a connection breaks, nothing
// tells whether the server has done it.
class RedisRequest {
 public:
  explicit RedisRequest(int slot) : slot_(slot) {}
  virtual ~RedisRequest() {}
  int slot() const { return slot_; }
  virtual void Encode(RespWriter* writer) const = 0;
  // Takes the whole reply, of which the head was read and is no error. An error
  // that is returned is of the connection, which is dropped. Called once more
  // when that happens.
  virtual ev::Status Take(const RespHead& head, RespReader* reader) = 0;

  // The connection by which the reply came; 0: none has come.
  int64_t connection() const { return connection_; }
  void CameBy(int64_t connection) { connection_ = connection; }
  // For RunOnKnown; null: any connection does.
  const KnownConnections* known() const { return known_; }
  void WantKnown(const KnownConnections* known) { known_ = known; }

 private:
  const int slot_;
  int64_t connection_ = 0;
  const KnownConnections* known_ = nullptr;
};

// A command of few words and a small reply.
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

// Any thread.
class RedisClient {
 public:
  // Connects to one of the addresses and finds out whether it is a cluster.
  static ev::Status Open(const RedisOptions& options,
                         std::unique_ptr<RedisClient>* client);
  RedisClient(const RedisClient&) = delete;

  // Does all requests; those of one slot in their order. On an error some may
  // have been done. Unavailable: a server was not reached, or not ready, in
  // time; the message names it and what came of the last attempt. Internal: its
  // replies break Redis's protocol. FailedPrecondition: a server refuses the
  // user, the certificate or the command. ResourceExhausted: it is out of
  // memory.
  ev::Status Run(ev::Span<RedisRequest* const> requests);
  // The same with another end than timeout_ms from now.
  ev::Status Run(ev::Span<RedisRequest* const> requests,
                 const Deadline& deadline);
  // Does them only if each one's connection is among those that the request
  // knows, and tries once: what is sent goes to a server that has not been
  // started anew since. *is_done: whether all were done; if not, some may have
  // been. Errors as of Run.
  ev::Status RunOnKnown(ev::Span<RedisRequest* const> requests, bool* is_done);
  ev::Status Run(RedisRequest* request) {
    return Run(ev::Span<RedisRequest* const>(&request, 1));
  }

  // Whether every node that has rows answers. Errors as of Run; tries once.
  ev::Status Reach();

  // Whether the server is a cluster.
  bool is_cluster();
  const RedisOptions& options() const { return options_; }

 private:
  struct Work;
  struct Attempt;
  using Pool = std::shared_ptr<ConnectionPool>;

  explicit RedisClient(const RedisOptions& options) : options_(options) {}
  Pool PoolOf(const std::string& address);
  // Learns the topology unless it is newer than `seen`.
  ev::Status Refresh(int64_t seen, const Deadline& deadline);
  ev::Status Learn(const std::string& address, const Deadline& deadline,
                   Topology* topology, bool* is_cluster);
  std::shared_ptr<const Topology> CurrentTopology(int64_t* number);
  // Sends the pending work and takes the replies; what is to be done again
  // stays in pending.
  ev::Status TryOnce(const Topology& topology, const Deadline& deadline,
                     bool only_known, std::vector<Work>* pending,
                     Attempt* attempt);
  static ev::Status OutOfTime(const Attempt& attempt, int attempts,
                              const Deadline& deadline);
  ev::Status OnError(const std::string& error, const std::string& address,
                     Work* work, Attempt* attempt);

  const RedisOptions options_;
  std::shared_ptr<TlsContext> tls_;
  // Held while the servers are asked for the topology.
  std::mutex refresh_mutex_;
  std::mutex mutex_;  // What follows.
  std::shared_ptr<const Topology> topology_;
  int64_t topology_number_ = 0;
  bool is_cluster_ = false;
  std::map<std::string, Pool> pools_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_REDIS_CLIENT_H_
