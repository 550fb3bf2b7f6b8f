// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/tf/kept_outputs.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "kernels/engine/base/transfer_memory.h"
#include "kernels/tf/bridge/transfer_tensor.h"

namespace hps {
namespace {

// The C library already reuses smaller blocks.
constexpr tensorflow::int64 kKeptBytes = 64 << 10;
constexpr size_t kHugePage = size_t{2} << 20;

void* AllocateBlock(size_t bytes) {
  void* block = nullptr;
  const size_t alignment = bytes >= kHugePage ? kHugePage : 4096;
  if (posix_memalign(&block, alignment, bytes) != 0) return nullptr;
  if (bytes >= kHugePage) madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

void FreeBlock(void* block) { free(block); }

bool RegisterBlocks() {
  ev::TransferMemorySource source;
  source.allocate = &AllocateBlock;
  source.free = &FreeBlock;
  source.is_pinned = false;
  ev::RegisterTransferMemory(source);
  return true;
}

}  // namespace

tensorflow::Status AllocateKeptOutput(tensorflow::OpKernelContext* context,
                                      int output,
                                      const tensorflow::TensorShape& shape,
                                      float** data) {
  if (shape.num_elements() * tensorflow::int64{sizeof(float)} >= kKeptBytes) {
    static const bool registered = RegisterBlocks();
    (void)registered;
    return embedding_variable::AllocateTransferOutput(context, output, shape,
                                                      data);
  }
  tensorflow::Tensor* tensor = nullptr;
  TF_RETURN_IF_ERROR(context->allocate_output(output, shape, &tensor));
  *data = tensor->flat<float>().data();
  return tensorflow::Status();
}

}  // namespace hps
