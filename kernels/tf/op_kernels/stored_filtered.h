// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The keys of a checkpoint that a filter had counted and not admitted.

#ifndef KERNELS_TF_OP_KERNELS_STORED_FILTERED_H_
#define KERNELS_TF_OP_KERNELS_STORED_FILTERED_H_

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "kernels/engine/embedding/embedding_table.h"
#include "kernels/tf/bridge/checkpoint_reader.h"
#include "kernels/tf/bridge/status.h"

namespace embedding_variable {

class StoredFiltered {
 public:
  // `name` is what the table's tensors' names start with. A checkpoint without
  // such keys, or without their counts, is fine.
  tensorflow::Status Open(const CheckpointReader& checkpoint,
                          const std::string& name) {
    bool found;
    TF_RETURN_IF_ERROR(checkpoint.Find(name + "-keys_filtered", &found));
    if (!found) return tensorflow::Status::OK();
    TF_RETURN_IF_ERROR(checkpoint.Open(name + "-keys_filtered", &keys_));
    if (keys_->shape().dims() != 1 ||
        (keys_->dtype() != tensorflow::DT_INT64 &&
         keys_->dtype() != tensorflow::DT_INT32)) {
      return tensorflow::errors::InvalidArgument(
          "tensor ", name, "-keys_filtered of checkpoint ", checkpoint.prefix(),
          " must be a vector of int64 or int32, got ",
          tensorflow::DataTypeString(keys_->dtype()), " ",
          keys_->shape().DebugString());
    }
    TF_RETURN_IF_ERROR(
        OpenMeta(checkpoint, name + "-versions_filtered", &versions_));
    return OpenMeta(checkpoint, name + "-freqs_filtered", &frequencies_);
  }

  // Gives the table those that belong to the part; after its rows. Takes only
  // keys with takes(key).
  template <typename Takes>
  tensorflow::Status Import(int part, int num_parts, const Takes& takes,
                            ev::EmbeddingTable* table) {
    if (keys_ == nullptr) return tensorflow::Status::OK();
    const int64_t num_keys = keys_->shape().dim_size(0);
    std::vector<int64_t> keys, versions, frequencies;
    std::vector<int32_t> narrow;
    // Keys that are in memory at once.
    const int64_t piece = 1 << 18;
    for (int64_t first = 0; first < num_keys; first += piece) {
      const int64_t n = std::min(piece, num_keys - first);
      if (keys_->dtype() == tensorflow::DT_INT64) {
        TF_RETURN_IF_ERROR(ReadInto(keys_.get(), n, &keys));
      } else {
        TF_RETURN_IF_ERROR(ReadInto(keys_.get(), n, &narrow));
        keys.assign(narrow.begin(), narrow.end());
      }
      if (versions_ != nullptr) {
        TF_RETURN_IF_ERROR(ReadInto(versions_.get(), n, &versions));
      }
      if (frequencies_ != nullptr) {
        TF_RETURN_IF_ERROR(ReadInto(frequencies_.get(), n, &frequencies));
      }
      size_t kept = 0;
      for (size_t i = 0; i < keys.size(); ++i) {
        if (!takes(keys[i])) continue;
        keys[kept] = keys[i];
        if (versions_ != nullptr) versions[kept] = versions[i];
        if (frequencies_ != nullptr) frequencies[kept] = frequencies[i];
        ++kept;
      }
      keys.resize(kept);
      if (versions_ != nullptr) versions.resize(kept);
      if (frequencies_ != nullptr) frequencies.resize(kept);
      TF_RETURN_IF_ERROR(ToTf(
          table->ImportFiltered(keys, versions, frequencies, part, num_parts)));
    }
    return tensorflow::Status::OK();
  }

 private:
  template <typename T>
  static tensorflow::Status ReadInto(TensorStream* stream, int64_t count,
                                     std::vector<T>* data) {
    data->resize(count);
    return stream->Read(count * sizeof(T), data->data());
  }

  // Leaves *stream null when the checkpoint does not record it.
  tensorflow::Status OpenMeta(const CheckpointReader& checkpoint,
                              const std::string& tensor,
                              std::unique_ptr<TensorStream>* stream) const {
    bool found;
    TF_RETURN_IF_ERROR(checkpoint.Find(tensor, &found));
    if (!found) return tensorflow::Status::OK();
    TF_RETURN_IF_ERROR(checkpoint.Open(tensor, stream));
    const tensorflow::TensorShape& shape = (*stream)->shape();
    const int64_t num_keys = keys_->shape().dim_size(0);
    if ((*stream)->dtype() != tensorflow::DT_INT64 || shape.dims() != 1 ||
        (shape.dim_size(0) != 0 && shape.dim_size(0) != num_keys)) {
      return tensorflow::errors::InvalidArgument(
          "tensor ", tensor, " of checkpoint ", checkpoint.prefix(),
          " must be int64 [0] or [", num_keys, "], got ",
          tensorflow::DataTypeString((*stream)->dtype()), " ",
          shape.DebugString());
    }
    if (shape.dim_size(0) == 0) stream->reset();
    return tensorflow::Status::OK();
  }

  // Null where the checkpoint has none.
  std::unique_ptr<TensorStream> keys_, versions_, frequencies_;
};

}  // namespace embedding_variable

#endif  // KERNELS_TF_OP_KERNELS_STORED_FILTERED_H_
