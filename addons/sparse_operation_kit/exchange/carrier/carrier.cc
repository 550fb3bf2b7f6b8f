// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"

#include <map>
#include <mutex>

#include "kernels/engine/base/gpu_library.h"

namespace sok {
namespace {

struct Kinds {
  std::mutex mu;
  std::map<std::string, CarrierKind> by_name;
};

Kinds* TheKinds() {
  static Kinds* const kinds = new Kinds;
  return kinds;
}

ev::Status Find(const std::string& kind, CarrierKind* how) {
  if (RegisteredCarrier(kind, how)) return ev::Status::OK();
  if (kind == "nccl") {
    EV_RETURN_IF_ERROR(ev::LoadGpuLibrary(
        "an exchange by NCCL needs a library with GPU code: this one was built "
        "without nvcc"));
    if (RegisteredCarrier(kind, how)) return ev::Status::OK();
  }
  return ev::InvalidArgument("there is no exchange of kind '" + kind + "'");
}

}  // namespace

bool RegisterCarrier(const std::string& kind, const CarrierKind& how) {
  Kinds* const kinds = TheKinds();
  std::lock_guard<std::mutex> lock(kinds->mu);
  kinds->by_name[kind] = how;
  return true;
}

bool RegisteredCarrier(const std::string& kind, CarrierKind* how) {
  Kinds* const kinds = TheKinds();
  std::lock_guard<std::mutex> lock(kinds->mu);
  const auto found = kinds->by_name.find(kind);
  if (found == kinds->by_name.end()) return false;
  *how = found->second;
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
