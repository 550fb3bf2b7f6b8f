// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// NCCL's functions, from a library that is loaded on first use, so that neither
// the build nor the program depends on NCCL. The declarations follow NCCL's
// documentation; the interface is unchanged since version 2.7.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_NCCL_NCCL_LIBRARY_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_NCCL_NCCL_LIBRARY_H_

#include <cstddef>
#include <string>

#include "kernels/engine/base/status.h"

// Declared as in <cuda_runtime_api.h>.
struct CUstream_st;

namespace sok {

struct NcclLibrary {
  struct Communicator;
  struct Id {
    char bytes[128];
  };
  enum Result { kSuccess = 0, kInProgress = 7 };
  enum Type { kInt8 = 0, kFloat16 = 6, kFloat32 = 7, kFloat64 = 8 };
  enum Operation { kSum = 0 };

  int (*get_version)(int* version);
  const char* (*get_error_string)(int result);
  int (*get_unique_id)(Id* id);
  int (*comm_init_rank)(Communicator** communicator, int num_ranks, Id id,
                        int rank);
  int (*comm_abort)(Communicator* communicator);
  int (*comm_get_async_error)(Communicator* communicator, int* result);
  int (*group_start)();
  int (*group_end)();
  int (*send)(const void* from, size_t count, int type, int peer,
              Communicator* communicator, CUstream_st* stream);
  int (*recv)(void* to, size_t count, int type, int peer,
              Communicator* communicator, CUstream_st* stream);
  int (*all_reduce)(const void* from, void* to, size_t count, int type,
                    int operation, Communicator* communicator,
                    CUstream_st* stream);

  // Loads the library named by SOK_NCCL_LIBRARY or, if that is not set,
  // libnccl.so.2, else libnccl.so; once per process. FailedPrecondition: none
  // is found (the message lists the attempts), it is older than 2.7, or it
  // lacks a function.
  static ev::Status Get(const NcclLibrary** library);

  // OK, or Internal with NCCL's error text.
  ev::Status Check(int result, const char* call) const;
};

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_NCCL_NCCL_LIBRARY_H_
