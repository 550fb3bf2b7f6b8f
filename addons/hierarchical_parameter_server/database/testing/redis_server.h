// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Real Redis servers for tests: a single one, or a cluster of three.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_TESTING_REDIS_SERVER_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_TESTING_REDIS_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/redis/resp.h"
#include "addons/hierarchical_parameter_server/database/testing/child_process.h"

namespace hps {

// Returns why no server can be started on this machine, or "".
std::string NoRedisReason();

class RedisServer {
 public:
  // arguments: words for redis-server's command line in addition to the port.
  // Its files are in a folder of its own and survive Kill and Start.
  explicit RedisServer(std::vector<std::string> arguments = {});

  // Starts the server; if `waits`, waits until it responds. Returns false if it
  // does not.
  bool Start(bool waits = true);
  void Kill() { process_.Kill(); }
  ChildProcess* process() { return &process_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }
  std::string unix_address() const { return "unix:" + folder_.path() + "/s"; }
  const std::string& folder() const { return folder_.path(); }

  // Sends a command over the Unix socket. The reply has type kError if none
  // comes.
  RespReply Call(const std::vector<std::string>& words);

 private:
  const TemporaryFolder folder_;
  const std::vector<std::string> arguments_;
  int port_ = 0;
  ChildProcess process_;
};

class RedisCluster {
 public:
  // Starts three masters with a third of the slots each.
  bool Start();
  RedisServer* node(int i) { return nodes_[i].get(); }
  // Returns only the first node: the client must find the others.
  std::vector<std::string> addresses() const { return {nodes_[0]->address()}; }
  // Waits until every node reports that the cluster is complete.
  bool WaitUntilWhole();

 private:
  std::vector<std::unique_ptr<RedisServer>> nodes_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_TESTING_REDIS_SERVER_H_
