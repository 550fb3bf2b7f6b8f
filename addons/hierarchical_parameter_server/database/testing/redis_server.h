// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Real Redis servers for tests: one, or a cluster of three.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_TESTING_REDIS_SERVER_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_TESTING_REDIS_SERVER_H_

#include <memory>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/redis/resp.h"
#include "addons/hierarchical_parameter_server/database/testing/child_process.h"

namespace hps {

// Why no server can be started here, or "".
std::string NoRedisReason();

class RedisServer {
 public:
  // arguments: besides the port, words as on redis-server's command line. Files
  // are in a folder of its own and stay when it is killed and started again.
  explicit RedisServer(std::vector<std::string> arguments = {});

  // Starts it and waits until it answers, if the test is to; false: it does
  // not.
  bool Start(bool waits = true);
  void Kill() { process_.Kill(); }
  ChildProcess* process() { return &process_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  int port() const { return port_; }
  std::string unix_address() const { return "unix:" + folder_.path() + "/s"; }
  const std::string& folder() const { return folder_.path(); }

  // A command over the Unix socket; the reply is of type kError when there is
  // none.
  RespReply Call(const std::vector<std::string>& words);

 private:
  const TemporaryFolder folder_;
  const std::vector<std::string> arguments_;
  int port_ = 0;
  ChildProcess process_;
};

class RedisCluster {
 public:
  // Three masters with a third of the slots each.
  bool Start();
  RedisServer* node(int i) { return nodes_[i].get(); }
  // Of the first node alone: the others are asked for.
  std::vector<std::string> addresses() const { return {nodes_[0]->address()}; }
  // Waits until every node says that the cluster is whole.
  bool WaitUntilWhole();

 private:
  std::vector<std::unique_ptr<RedisServer>> nodes_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_TESTING_REDIS_SERVER_H_
