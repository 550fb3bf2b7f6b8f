// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/registry.h"

#include <limits.h>
#include <stdlib.h>

#include <atomic>
#include <mutex>
#include <utility>

namespace hps {
namespace {

struct State {
  std::mutex starting;  // one start at a time; acquired before mu
  std::mutex mu;
  std::shared_ptr<ParameterServer> server;  // guarded by mu
  std::string path, text;                   // guarded by mu; those of server
  std::atomic<uint64_t> generation{1}, epoch{1};
};

// Never destroyed: threads may still look up while the process exits.
State* TheState() {
  static State* const state = new State;
  return state;
}

// Resolves links and "..", so that a file has only one name.
std::string RealPath(const std::string& path) {
  char buffer[PATH_MAX];
  return realpath(path.c_str(), buffer) == nullptr ? path : buffer;
}

ev::Status CheckBatch(const Config& config, const StartOptions& options) {
  if (options.num_replicas < 1) {
    return ev::InvalidArgument("num_replicas: expected at least 1, got " +
                               std::to_string(options.num_replicas));
  }
  if (options.global_batch_size < 1) {
    return ev::InvalidArgument("global_batch_size: expected at least 1, got " +
                               std::to_string(options.global_batch_size));
  }
  if (options.global_batch_size % options.num_replicas != 0) {
    return ev::InvalidArgument(
        "global_batch_size: expected a multiple of the " +
        std::to_string(options.num_replicas) + " replicas, got " +
        std::to_string(options.global_batch_size));
  }
  const int64_t local = options.global_batch_size / options.num_replicas;
  for (size_t m = 0; m < config.models.size(); ++m) {
    if (local > config.models[m].max_batch_size) {
      return ev::InvalidArgument(
          "global_batch_size " + std::to_string(options.global_batch_size) +
          " is " + std::to_string(local) + " samples on each of " +
          std::to_string(options.num_replicas) + " replicas; models[" +
          std::to_string(m) + "].max_batch_size ('" + config.models[m].name +
          "' of " + config.where + ") is " +
          std::to_string(config.models[m].max_batch_size));
    }
  }
  return ev::Status::OK();
}

}  // namespace

ev::Status Start(const StartOptions& options, ev::Parallel* parallel,
                 bool* started, uint64_t* epoch) {
  *started = false;
  State* const state = TheState();
  std::lock_guard<std::mutex> starting(state->starting);
  // Stable, since only starts and stops change it, and they need this lock.
  if (epoch != nullptr) *epoch = ServerEpoch();
  const char* const variable = getenv(kConfigVariable);
  const bool given = variable != nullptr && variable[0] != '\0';
  const std::string path = given ? variable : options.config_file;
  std::shared_ptr<ParameterServer> running;
  std::string running_path, running_text;
  {
    std::lock_guard<std::mutex> lock(state->mu);
    running = state->server;
    running_path = state->path;
    running_text = state->text;
  }
  if (path.empty()) {
    if (running != nullptr) return CheckBatch(running->config(), options);
    return ev::FailedPrecondition(
        std::string("no configuration: give ps_config_file, or the environment "
                    "variable ") +
        kConfigVariable);
  }
  Config config;
  std::string text;
  const ev::Status read = ReadConfig(path, DatabaseTypes(), &config, &text);
  if (!read.ok()) {
    return ev::Status(
        read.code(),
        (given ? std::string("environment variable ") + kConfigVariable + ": "
               : "") +
            read.message());
  }
  if (running != nullptr) {
    if (RealPath(path) == running_path && text == running_text) {
      return CheckBatch(running->config(), options);
    }
    return ev::FailedPrecondition(
        "the parameter server of this process runs with the configuration '" +
        running_path + "', got " +
        (RealPath(path) == running_path ? "the same file with different content"
                                        : "'" + RealPath(path) + "'") +
        "; put the models into one file, add them while the server runs, or "
        "stop it first");
  }
  EV_RETURN_IF_ERROR(CheckBatch(config, options));
  std::unique_ptr<ParameterServer> server;
  EV_RETURN_IF_ERROR(ParameterServer::Make(config, parallel, &server));
  {
    std::lock_guard<std::mutex> lock(state->mu);
    state->server = std::move(server);
    state->path = RealPath(path);
    state->text = text;
  }
  state->epoch.fetch_add(1, std::memory_order_acq_rel);
  if (epoch != nullptr) *epoch = ServerEpoch();
  NextGeneration();
  *started = true;
  return ev::Status::OK();
}

std::shared_ptr<ParameterServer> RunningServer() {
  State* const state = TheState();
  std::lock_guard<std::mutex> lock(state->mu);
  return state->server;
}

ev::Status GetRunningServer(std::shared_ptr<ParameterServer>* server) {
  *server = RunningServer();
  if (*server != nullptr) return ev::Status::OK();
  return ev::FailedPrecondition(
      "no parameter server runs in this process; run hps.Init first");
}

void Stop() {
  State* const state = TheState();
  std::lock_guard<std::mutex> starting(state->starting);
  // destroyed after the lock is released
  std::shared_ptr<ParameterServer> server;
  {
    std::lock_guard<std::mutex> lock(state->mu);
    server.swap(state->server);
    state->path.clear();
    state->text.clear();
  }
  state->epoch.fetch_add(1, std::memory_order_acq_rel);
  NextGeneration();
}

uint64_t ServerEpoch() {
  return TheState()->epoch.load(std::memory_order_acquire);
}

uint64_t Generation() {
  return TheState()->generation.load(std::memory_order_acquire);
}

void NextGeneration() {
  TheState()->generation.fetch_add(1, std::memory_order_acq_rel);
}

}  // namespace hps
