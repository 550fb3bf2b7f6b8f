// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/carrier/control_carrier.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace sok {
namespace {

// Bytes of a carrier id, which is a file path.
constexpr int64_t kIdBytes = 256;
// Control messages are urgent, so a waiting rank polls more often than for
// megabytes.
constexpr int kLongestNapUs = 20;

}  // namespace

ev::Status MakeControlCarrier(Carrier* carrier, bool is_wanted,
                              std::unique_ptr<Carrier>* control) {
  const int n = carrier->num_ranks(), rank = carrier->rank();
  std::string id;
  if (rank == 0 && is_wanted && MakeCarrierId("memory", n, &id).ok() &&
      id.size() >= static_cast<size_t>(kIdBytes)) {
    unlink(id.c_str());
    id.clear();
  }
  // An empty id means that rank 0 has none.
  std::string ids(n * kIdBytes, '\0'), received_id(kIdBytes, '\0');
  for (int r = 0; r < n; ++r) {
    std::copy(id.begin(), id.end(), ids.begin() + r * kIdBytes);
  }
  std::vector<int64_t> to(n, rank == 0 ? kIdBytes : 0), from(n, 0);
  from[0] = kIdBytes;
  ev::Status status = carrier->AllToAll(ids.data(), to, &received_id[0], from);
  CarrierOptions options;
  options.id = received_id.c_str();
  options.rank = rank;
  options.num_ranks = n;
  options.longest_nap_us = kLongestNapUs;
  std::unique_ptr<Carrier> made;
  if (status.ok() && is_wanted && !options.id.empty() &&
      !MakeCarrier("memory", options, &made).ok()) {
    made.reset();
  }
  const std::string mine(n, made != nullptr ? 1 : 0);
  std::string all(n, 0);
  const std::vector<int64_t> one(n, 1);
  if (status.ok()) status = carrier->AllToAll(mine.data(), one, &all[0], one);
  const bool all_have = std::find(all.begin(), all.end(), 0) == all.end();
  if (!status.ok() || !all_have) {
    // The file still has its name, since not all ranks opened it.
    if (!id.empty()) unlink(id.c_str());
    return status;
  }
  *control = std::move(made);
  return ev::Status::OK();
}

}  // namespace sok
