// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The one server of a process.
//
// Which configuration: the environment variable HPS_PS_CONFIG_FILE if it is
// set, otherwise the path that the caller gives. A second start with the same
// configuration does nothing; with another it is an error, which names both.

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

// Starts the server unless it runs. *started: whether this call has. *epoch
// (may be null): the ServerEpoch of the server that runs. Errors: those of the
// configuration and of the files; FailedPrecondition: another configuration
// runs, or there is none; InvalidArgument: the batch is not a multiple of the
// replicas, or larger than a model's max_batch_size. On an error nothing has
// changed. Calls at the same time wait for the first.
ev::Status Start(const StartOptions& options, ev::Parallel* parallel,
                 bool* started, uint64_t* epoch = nullptr);

// The server that runs, or null.
std::shared_ptr<ParameterServer> RunningServer();
// FailedPrecondition: none runs.
ev::Status GetRunningServer(std::shared_ptr<ParameterServer>* server);

// Ends it: its tables go when the lookups that use them have ended. Another
// configuration may start afterwards.
void Stop();

// Changes with every start and stop, and with nothing else.
uint64_t ServerEpoch();

// Changes with every start, stop and change of models: what was found before
// may be another one now.
uint64_t Generation();
void NextGeneration();

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_REGISTRY_H_
