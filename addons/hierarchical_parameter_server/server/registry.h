// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The single server of a process.
//
// Its configuration is the file in the environment variable HPS_PS_CONFIG_FILE
// if that is set, otherwise the path that the caller passes. Starting again
// with the same configuration is a no-op; with another one it raises an error
// that names both.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_REGISTRY_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_REGISTRY_H_

#include <cstdint>
#include <memory>
#include <string>

#include "addons/hierarchical_parameter_server/server/parameter_server.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/status.h"

namespace hps {

constexpr char kConfigVariable[] = "HPS_PS_CONFIG_FILE";

struct StartOptions {
  std::string config_file;  // "": that of the environment, or the running one
  int64_t global_batch_size = 1;
  int64_t num_replicas = 1;
};

// Starts the server unless it runs. *started: this call has started it. *epoch
// (may be null): the ServerEpoch of the running server. Errors: those of the
// configuration and the files. FailedPrecondition: the server runs with another
// configuration, or none is given. InvalidArgument: the batch size is not a
// multiple of the replicas, or exceeds a model's max_batch_size. On an error
// nothing has changed. Concurrent calls wait for the first.
ev::Status Start(const StartOptions& options, ev::Parallel* parallel,
                 bool* started, uint64_t* epoch = nullptr);

// Returns the running server, or null.
std::shared_ptr<ParameterServer> RunningServer();
// FailedPrecondition: no server runs.
ev::Status GetRunningServer(std::shared_ptr<ParameterServer>* server);

// Stops the server. Waits for a Start in progress and for the server's threads.
// Its tables are destroyed when the lookups that use them end. A server with
// another configuration may be started afterwards.
void Stop();

// Changes with every start and stop only.
uint64_t ServerEpoch();

// Changes with every start, stop and change of models: tables found earlier may
// have been replaced.
uint64_t Generation();
void NextGeneration();

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_REGISTRY_H_
