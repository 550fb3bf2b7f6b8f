// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"

#include <map>

namespace sok {
namespace {

// Filled by static initializers.
std::map<std::string, CarrierKind>& Kinds() {
  static auto* const kinds = new std::map<std::string, CarrierKind>;
  return *kinds;
}

ev::Status Find(const std::string& kind, CarrierKind* how) {
  const auto found = Kinds().find(kind);
  if (found != Kinds().end()) {
    *how = found->second;
    return ev::Status::OK();
  }
  if (kind == "nccl") {
    return ev::FailedPrecondition(
        "an exchange by NCCL needs a library with GPU code in it, and this one "
        "was built without nvcc");
  }
  return ev::InvalidArgument("there is no exchange of kind '" + kind + "'");
}

}  // namespace

bool RegisterCarrier(const std::string& kind, const CarrierKind& how) {
  Kinds()[kind] = how;
  return true;
}

ev::Status CheckCarrier(const std::string& kind) {
  CarrierKind how;
  EV_RETURN_IF_ERROR(Find(kind, &how));
  return how.check();
}

ev::Status MakeCarrierId(const std::string& kind, int num_ranks,
                         std::string* id) {
  CarrierKind how;
  EV_RETURN_IF_ERROR(Find(kind, &how));
  return how.make_id(num_ranks, id);
}

ev::Status MakeCarrier(const std::string& kind, const CarrierOptions& options,
                       std::unique_ptr<Carrier>* carrier) {
  CarrierKind how;
  EV_RETURN_IF_ERROR(Find(kind, &how));
  if (options.num_ranks < 1 || options.rank < 0 ||
      options.rank >= options.num_ranks) {
    return ev::InvalidArgument("there is no rank " +
                               std::to_string(options.rank) + " of " +
                               std::to_string(options.num_ranks));
  }
  return how.make(options, carrier);
}

}  // namespace sok
