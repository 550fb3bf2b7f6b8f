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

// Copies ids and rows from GPU memory to CPU memory; the copies live as long as
// this object. Tensors that several tables share are copied once.
class IdsInCpuMemory {
 public:
  // Adds an input whose ids and rows these tensors are. All three must outlive
  // the copying.
  void Add(const tensorflow::Tensor& ids, const tensorflow::Tensor& rows,
           ev::IdsInput* in) {
    const size_t ids_at = Place(ids);
    tables_.push_back({in, ids_at, Place(rows)});
  }

  // Copies the tensors and sets the pointers of all added inputs to the copies.
  // Call it once.
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
      const tensorflow::Tensor& rows = copies_[table.rows].to;
      in->on_device = false;
      if (in->ids64 != nullptr) in->ids64 = Data<int64_t>(ids);
      if (in->ids32 != nullptr) in->ids32 = Data<int32_t>(ids);
      if (in->row_splits != nullptr) in->row_splits = Data<int64_t>(rows);
      if (in->coo_indices != nullptr) in->coo_indices = Data<int64_t>(rows);
    }
    return tensorflow::Status();
  }

 private:
  struct Table {
    ev::IdsInput* in;
    size_t ids, rows;  // in copies_
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
