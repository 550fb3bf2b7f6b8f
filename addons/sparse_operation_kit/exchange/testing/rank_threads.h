// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Test helper: ranks as threads that use the carrier "memory".

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TESTING_RANK_THREADS_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TESTING_RANK_THREADS_H_

#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"
#include "kernels/engine/base/status.h"

namespace sok {

using RankBody =
    std::function<void(int rank, std::unique_ptr<Carrier> carrier)>;

// Runs body for each rank in its own thread. threads_of: number of threads that
// the rank's carrier may use. Returns the error of a carrier, or Internal if
// the shared file is left over.
inline ev::Status RunOnRanks(int num_ranks, const RankBody& body,
                             const std::function<int(int rank)>& threads_of) {
  std::string id;
  EV_RETURN_IF_ERROR(MakeCarrierId("memory", num_ranks, &id));
  std::vector<ev::Status> made(num_ranks);
  std::vector<std::thread> threads;
  for (int r = 0; r < num_ranks; ++r) {
    threads.emplace_back([&, r] {
      CarrierOptions options;
      options.id = id;
      options.rank = r;
      options.num_ranks = num_ranks;
      options.num_threads = threads_of(r);
      std::unique_ptr<Carrier> carrier;
      made[r] = MakeCarrier("memory", options, &carrier);
      if (made[r].ok()) body(r, std::move(carrier));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const ev::Status& status : made) EV_RETURN_IF_ERROR(status);
  return access(id.c_str(), F_OK) == 0
             ? ev::Internal("the ranks have left " + id)
             : ev::Status::OK();
}

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_TESTING_RANK_THREADS_H_
