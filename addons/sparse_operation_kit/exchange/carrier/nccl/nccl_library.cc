// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/sparse_operation_kit/exchange/carrier/nccl/nccl_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

namespace sok {
namespace {

constexpr int kOldest = 2700;

struct Loaded {
  ev::Status status;
  NcclLibrary library;
};

template <typename F>
ev::Status Find(void* handle, const char* name, F* function) {
  *function = reinterpret_cast<F>(dlsym(handle, name));
  if (*function != nullptr) return ev::Status::OK();
  return ev::FailedPrecondition(std::string("this NCCL has no ") + name);
}

ev::Status FindAll(void* handle, NcclLibrary* n) {
  EV_RETURN_IF_ERROR(Find(handle, "ncclGetVersion", &n->get_version));
  int version = 0;
  if (n->get_version(&version) != NcclLibrary::kSuccess || version < kOldest) {
    return ev::FailedPrecondition("an exchange by NCCL needs NCCL 2.7, and " +
                                  std::to_string(version) + " was found");
  }
  EV_RETURN_IF_ERROR(Find(handle, "ncclGetErrorString", &n->get_error_string));
  EV_RETURN_IF_ERROR(Find(handle, "ncclGetUniqueId", &n->get_unique_id));
  EV_RETURN_IF_ERROR(Find(handle, "ncclCommInitRank", &n->comm_init_rank));
  EV_RETURN_IF_ERROR(Find(handle, "ncclCommAbort", &n->comm_abort));
  EV_RETURN_IF_ERROR(
      Find(handle, "ncclCommGetAsyncError", &n->comm_get_async_error));
  EV_RETURN_IF_ERROR(Find(handle, "ncclGroupStart", &n->group_start));
  EV_RETURN_IF_ERROR(Find(handle, "ncclGroupEnd", &n->group_end));
  EV_RETURN_IF_ERROR(Find(handle, "ncclSend", &n->send));
  EV_RETURN_IF_ERROR(Find(handle, "ncclRecv", &n->recv));
  return Find(handle, "ncclAllReduce", &n->all_reduce);
}

Loaded Load() {
  Loaded loaded;
  std::vector<std::string> names = {"libnccl.so.2", "libnccl.so"};
  const char* named = std::getenv("SOK_NCCL_LIBRARY");
  if (named != nullptr && *named != '\0') names = {named};
  std::string tried;
  for (const std::string& name : names) {
    void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) {
      loaded.status = FindAll(handle, &loaded.library);
      return loaded;
    }
    const char* why = dlerror();
    tried += std::string("; ") + (why == nullptr ? name : why);
  }
  loaded.status = ev::FailedPrecondition(
      "an exchange by NCCL needs its library, which was not found (put it into "
      "LD_LIBRARY_PATH, or name it in SOK_NCCL_LIBRARY)" +
      tried);
  return loaded;
}

}  // namespace

ev::Status NcclLibrary::Get(const NcclLibrary** library) {
  static const Loaded* const loaded = new Loaded(Load());
  *library = &loaded->library;
  return loaded->status;
}

ev::Status NcclLibrary::Check(int result, const char* call) const {
  if (result == kSuccess || result == kInProgress) return ev::Status::OK();
  return ev::Internal(std::string(call) +
                      " failed: " + get_error_string(result));
}

}  // namespace sok
