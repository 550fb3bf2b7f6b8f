// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef KERNELS_TF_OP_KERNELS_IDS_IN_CPU_MEMORY_H_
#define KERNELS_TF_OP_KERNELS_IDS_IN_CPU_MEMORY_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "kernels/engine/ids/table_ids.h"
#include "kernels/tf/bridge/gpu_tensors.h"
#include "kernels/tf/bridge/register_kernel.h"
#include "kernels/tf/bridge/tensor_span.h"
#include "tensorflow/core/framework/op_kernel.h"

namespace embedding_variable {

// Copies ids and their samples (row splits or COO indices) from GPU memory to
// CPU memory; the copies live as long as this object. Tensors that several
// tables share are copied once.
class IdsInCpuMemory {
 public:
  // ids, samples: the tensors to whose data the pointers of *in are set. The
  // tensors and *in must live until CopyAll has returned.
  void Add(const tensorflow::Tensor& ids, const tensorflow::Tensor& samples,
           ev::IdsInput* in) {
    const size_t ids_at = Place(ids);
    tables_.push_back({in, ids_at, Place(samples)});
  }

  // Copies the tensors, waits for the copies, and sets the pointers of all
  // added inputs to them. After an error the inputs are unchanged. Call it
  // once.
  tensorflow::Status CopyAll(tensorflow::OpKernelContext* context) {
    if (tables_.empty()) return tensorflow::Status();
    std::vector<std::pair<const tensorflow::Tensor*, tensorflow::Tensor*>>
        copies;
    for (Copy& copy : copies_) {
      tensorflow::AllocatorAttributes pinned = InCpuMemory();
      pinned.set_gpu_compatible(true);
      TF_RETURN_IF_ERROR(context->allocate_temp(
          copy.from->dtype(), copy.from->shape(), &copy.to, pinned));
      copies.emplace_back(copy.from, &copy.to);
    }
    TF_RETURN_IF_ERROR(CopyFromGpu(context, copies));
    for (const Table& table : tables_) {
      ev::IdsInput* const in = table.in;
      const tensorflow::Tensor& ids = copies_[table.ids].to;
      const tensorflow::Tensor& samples = copies_[table.samples].to;
      in->on_device = false;
      if (in->ids64 != nullptr) in->ids64 = Data<int64_t>(ids);
      if (in->ids32 != nullptr) in->ids32 = Data<int32_t>(ids);
      if (in->row_splits != nullptr) in->row_splits = Data<int64_t>(samples);
      if (in->coo_indices != nullptr) in->coo_indices = Data<int64_t>(samples);
    }
    return tensorflow::Status();
  }

 private:
  struct Table {
    ev::IdsInput* in;
    size_t ids, samples;  // in copies_
  };
  struct Copy {
    const tensorflow::Tensor* from;
    tensorflow::Tensor to;
  };

  size_t Place(const tensorflow::Tensor& from) {
    for (size_t i = 0; i < copies_.size(); ++i) {
      const tensorflow::Tensor& known = *copies_[i].from;
      if (known.tensor_data().data() == from.tensor_data().data() &&
          known.dtype() == from.dtype() && known.shape() == from.shape()) {
        return i;
      }
    }
    copies_.push_back({&from, tensorflow::Tensor()});
    return copies_.size() - 1;
  }

  std::vector<Table> tables_;
  std::vector<Copy> copies_;
};

}  // namespace embedding_variable

#endif  // KERNELS_TF_OP_KERNELS_IDS_IN_CPU_MEMORY_H_
