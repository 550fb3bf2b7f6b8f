// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Helper for tests and benchmarks: runs ranks as processes on one host. Each
// has its own carrier and, if there are enough, its own GPU.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TESTING_RANK_PROCESSES_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TESTING_RANK_PROCESSES_H_

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"

namespace sok {

// Bytes of a carrier id in the pipe; the pipe buffers one per rank.
constexpr size_t kMostIdBytes = 256;

// Runs body(carrier), which returns success, in a process per rank. Returns
// whether it succeeded on all ranks; errors go to stderr. REQUIRES that this
// process has not called CUDA.
inline bool OnRankProcesses(
    const std::string& kind, int num_ranks,
    const std::function<bool(std::unique_ptr<Carrier>)>& body) {
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return false;
  std::vector<pid_t> children;
  for (int rank = 0; rank < num_ranks; ++rank) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    setenv("HOROVOD_LOCAL_RANK", std::to_string(rank).c_str(), 1);
    CarrierOptions options;
    options.rank = rank;
    options.num_ranks = num_ranks;
    ev::Status status;
    char id_bytes[kMostIdBytes] = {0};
    if (rank == 0) {
      status = MakeCarrierId(kind, num_ranks, &options.id);
      options.id.copy(id_bytes, kMostIdBytes);
      for (int r = 1; r < num_ranks; ++r) {
        if (write(pipe_ends[1], id_bytes, kMostIdBytes) != kMostIdBytes)
          _exit(2);
      }
    } else {
      if (read(pipe_ends[0], id_bytes, kMostIdBytes) != kMostIdBytes) _exit(2);
      // NCCL ids are 128 bytes; the others are text.
      options.id =
          kind == "nccl" ? std::string(id_bytes, 128) : std::string(id_bytes);
    }
    std::unique_ptr<Carrier> carrier;
    if (status.ok()) status = MakeCarrier(kind, options, &carrier);
    if (!status.ok()) {
      std::fprintf(stderr, "rank %d: %s\n", rank, status.message().c_str());
      _exit(1);
    }
    const bool is_well = body(std::move(carrier));
    std::fflush(nullptr);
    _exit(is_well ? 0 : 1);
  }
  bool all = true;
  for (const pid_t child : children) {
    int how = 0;
    waitpid(child, &how, 0);
    all &= WIFEXITED(how) && WEXITSTATUS(how) == 0;
  }
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  return all;
}

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TESTING_RANK_PROCESSES_H_
