// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/testing/redis_server.h"

#include <chrono>
#include <thread>
#include <utility>

namespace hps {
namespace {

constexpr int64_t kStartMs = 20000;

void Breathe() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

}  // namespace

std::string NoRedisReason() {
  return HasProgram("redis-server")
             ? ""
             : "there is no redis-server (package redis-server)";
}

RedisServer::RedisServer(std::vector<std::string> arguments)
    : arguments_(std::move(arguments)) {}

bool RedisServer::Start(bool waits) {
  // Another process may take the port first.
  for (int attempts = 0; attempts < 5; ++attempts) {
    if (port_ == 0) port_ = FreePort();
    std::vector<std::string> words = {"redis-server",
                                      "--port",
                                      std::to_string(port_),
                                      "--bind",
                                      "127.0.0.1",
                                      "--unixsocket",
                                      folder_.path() + "/s",
                                      "--dir",
                                      folder_.path(),
                                      "--save",
                                      "",
                                      "--daemonize",
                                      "no"};
    words.insert(words.end(), arguments_.begin(), arguments_.end());
    if (!process_.Start(words, folder_.path() + "/log")) return false;
    if (!waits) return true;
    const Deadline deadline = Deadline::InMs(kStartMs);
    while (process_.IsRunning() && !deadline.HasCome()) {
      const RespReply reply = Call({"PING"});
      if (reply.text == "PONG" || reply.text.compare(0, 6, "NOAUTH") == 0) {
        return true;
      }
      Breathe();
    }
    process_.Kill();
    port_ = 0;
  }
  return false;
}

RespReply RedisServer::Call(const std::vector<std::string>& words) {
  RespReply reply;
  reply.type = RespHead::kError;
  const Deadline deadline = Deadline::InMs(kStartMs);
  std::unique_ptr<ByteStream> stream;
  if (!OpenSocket(unix_address(), deadline, &stream).ok()) return reply;
  const std::string command = RespCommand(words);
  if (!stream->Write(command.data(), command.size(), deadline).ok()) {
    return reply;
  }
  RespReader reader(stream.get());
  reader.set_deadline(deadline);
  RespReply came;
  if (reader.Reply(&came).ok()) reply = came;
  return reply;
}

bool RedisCluster::Start() {
  for (int i = 0; i < 3; ++i) {
    nodes_.push_back(std::make_unique<RedisServer>(std::vector<std::string>{
        "--cluster-enabled", "yes", "--cluster-node-timeout", "2000"}));
    if (!nodes_[i]->Start()) return false;
    std::vector<std::string> words = {"CLUSTER", "ADDSLOTS"};
    for (int slot = i * 16384 / 3; slot < (i + 1) * 16384 / 3; ++slot) {
      words.push_back(std::to_string(slot));
    }
    if (nodes_[i]->Call(words).text != "OK") return false;
    nodes_[i]->Call({"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    if (i > 0) {
      nodes_[i]->Call(
          {"CLUSTER", "MEET", "127.0.0.1", std::to_string(nodes_[0]->port())});
    }
  }
  return WaitUntilWhole();
}

bool RedisCluster::WaitUntilWhole() {
  const Deadline deadline = Deadline::InMs(kStartMs);
  for (auto& node : nodes_) {
    for (;;) {
      const std::string info = node->Call({"CLUSTER", "INFO"}).text;
      if (info.find("cluster_state:ok") != std::string::npos &&
          info.find("cluster_known_nodes:3") != std::string::npos &&
          node->Call({"CLUSTER", "SLOTS"}).elements.size() >= 3) {
        break;
      }
      if (deadline.HasCome()) return false;
      Breathe();
    }
  }
  return true;
}

}  // namespace hps
