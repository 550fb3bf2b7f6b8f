// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/op_kernels/stored_delta.h"

#include <algorithm>
#include <memory>

#include "kernels/tf/bridge/status.h"
#include "tensorflow/core/framework/types.h"

namespace embedding_variable {
namespace {

using tensorflow::DataType;
using tensorflow::Status;
using tensorflow::TensorShape;

Status Misfit(const CheckpointReader& checkpoint, const std::string& tensor,
              const std::string& expected, const TensorStream& got) {
  return tensorflow::errors::InvalidArgument(
      "tensor ", tensor, " of checkpoint ", checkpoint.prefix(), " must be ",
      expected, ", got ", tensorflow::DataTypeString(got.dtype()), " ",
      got.shape().DebugString());
}

template <typename T>
Status ReadAll(TensorStream* stream, std::vector<T>* values) {
  values->resize(stream->shape().num_elements());
  return stream->Read(values->size() * sizeof(T), values->data());
}

// A vector of integers: int64 [N], or [0] where that is allowed too. Keys may
// be int32. n: -1: any.
Status ReadIntegers(const CheckpointReader& checkpoint,
                    const std::string& tensor, int64_t n, bool may_be_int32,
                    bool may_be_empty, std::vector<int64_t>* values) {
  std::unique_ptr<TensorStream> stream;
  TF_RETURN_IF_ERROR(checkpoint.Open(tensor, &stream));
  const TensorShape& shape = stream->shape();
  const bool is_int32 = stream->dtype() == tensorflow::DT_INT32;
  if ((stream->dtype() != tensorflow::DT_INT64 &&
       !(is_int32 && may_be_int32)) ||
      shape.dims() != 1 ||
      (n >= 0 && shape.dim_size(0) != n &&
       !(may_be_empty && shape.dim_size(0) == 0))) {
    return Misfit(checkpoint, tensor,
                  n < 0 ? "a vector of integers"
                        : tensorflow::strings::StrCat("int64 [", n, "]"),
                  *stream);
  }
  if (!is_int32) return ReadAll(stream.get(), values);
  std::vector<int32_t> narrow;
  TF_RETURN_IF_ERROR(ReadAll(stream.get(), &narrow));
  values->assign(narrow.begin(), narrow.end());
  return Status::OK();
}

// float [n, dim]; n: -1: any.
Status ReadRows(const CheckpointReader& checkpoint, const std::string& tensor,
                int64_t n, int64_t dim, std::vector<float>* values) {
  std::unique_ptr<TensorStream> stream;
  TF_RETURN_IF_ERROR(checkpoint.Open(tensor, &stream));
  const TensorShape& shape = stream->shape();
  if (stream->dtype() != tensorflow::DT_FLOAT || shape.dims() != 2 ||
      (n >= 0 && shape.dim_size(0) != n) || shape.dim_size(1) != dim) {
    return Misfit(checkpoint, tensor,
                  tensorflow::strings::StrCat(
                      "float [", n < 0 ? "R" : std::to_string(n), ",", dim,
                      "] (the variable's embedding_dim is ", dim, ")"),
                  *stream);
  }
  return ReadAll(stream.get(), values);
}

std::vector<size_t> Places(const std::vector<int64_t>& keys,
                           const std::function<bool(int64_t)>& wants) {
  std::vector<size_t> kept;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (wants(keys[i])) kept.push_back(i);
  }
  return kept;
}

// Leaves the rows [width] at these places; what is not recorded stays empty.
template <typename T>
void KeepRows(const std::vector<size_t>& kept, int64_t width,
              std::vector<T>* rows) {
  if (rows->empty() || rows->size() == kept.size() * width) return;
  std::vector<T> left(kept.size() * width);
  for (size_t k = 0; k < kept.size(); ++k) {
    std::copy_n(rows->begin() + kept[k] * width, width,
                left.begin() + k * width);
  }
  rows->swap(left);
}

}  // namespace

Status StoredDelta::Read(const CheckpointReader& checkpoint,
                         const std::string& name,
                         const std::vector<ev::SlotSpec>& slots, int64_t dim) {
  const std::string prefix = name + "-sparse_incr_";
  const auto integers = [&](const char* what, int64_t n, bool may_be_empty,
                            std::vector<int64_t>* values) {
    return ReadIntegers(checkpoint, prefix + what, n, n < 0, may_be_empty,
                        values);
  };
  TF_RETURN_IF_ERROR(integers("keys", -1, false, &keys_));
  const int64_t n = keys_.size();
  TF_RETURN_IF_ERROR(ReadRows(checkpoint, prefix + "values", n, dim, &values_));
  bool found;
  // A checkpoint of DeepRec's has no more than the following two.
  TF_RETURN_IF_ERROR(checkpoint.Find(prefix + "versions", &found));
  if (found) TF_RETURN_IF_ERROR(integers("versions", n, true, &versions_));
  TF_RETURN_IF_ERROR(checkpoint.Find(prefix + "freqs", &found));
  if (found) TF_RETURN_IF_ERROR(integers("freqs", n, true, &frequencies_));
  TF_RETURN_IF_ERROR(checkpoint.Find(prefix + "erased_keys", &found));
  if (found) {
    std::vector<int64_t> replaces;
    TF_RETURN_IF_ERROR(integers("erased_keys", -1, false, &erased_));
    TF_RETURN_IF_ERROR(integers("replaces", 1, false, &replaces));
    replaces_ = replaces[0] != 0;
    TF_RETURN_IF_ERROR(
        ReadRows(checkpoint, prefix + "default_rows", -1, dim, &default_rows_));
    TF_RETURN_IF_ERROR(integers("keys_filtered", -1, false, &filtered_keys_));
    const int64_t m = filtered_keys_.size();
    TF_RETURN_IF_ERROR(
        integers("versions_filtered", m, true, &filtered_versions_));
    TF_RETURN_IF_ERROR(
        integers("freqs_filtered", m, true, &filtered_frequencies_));
  }
  for (const ev::SlotSpec& slot : slots) {
    const std::string tensor = tensorflow::strings::StrCat(
        name, "/", slot.name, "-sparse_incr_values");
    TF_RETURN_IF_ERROR(checkpoint.Find(tensor, &found));
    if (!found) continue;
    slots_.push_back(slot);
    slot_values_.emplace_back();
    TF_RETURN_IF_ERROR(
        ReadRows(checkpoint, tensor, n, dim, &slot_values_.back()));
  }
  return Status::OK();
}

void StoredDelta::Keep(const std::function<bool(int64_t)>& wants) {
  KeepRows(Places(erased_, wants), 1, &erased_);
  const std::vector<size_t> kept = Places(keys_, wants);
  const int64_t dim = keys_.empty() ? 0 : values_.size() / keys_.size();
  KeepRows(kept, dim, &values_);
  for (std::vector<float>& values : slot_values_) KeepRows(kept, dim, &values);
  KeepRows(kept, 1, &versions_);
  KeepRows(kept, 1, &frequencies_);
  KeepRows(kept, 1, &keys_);
  const std::vector<size_t> counted = Places(filtered_keys_, wants);
  KeepRows(counted, 1, &filtered_versions_);
  KeepRows(counted, 1, &filtered_frequencies_);
  KeepRows(counted, 1, &filtered_keys_);
}

Status StoredDelta::Apply(ev::EmbeddingTable* table) const {
  table->Erase(erased_);
  // They have no row where they come from; here a lower threshold may have
  // given them one.
  table->Erase(filtered_keys_);
  std::vector<const float*> slot_values;
  for (const std::vector<float>& values : slot_values_) {
    slot_values.push_back(values.data());
  }
  TF_RETURN_IF_ERROR(
      ToTf(table->Import(keys_, values_.data(), slots_, slot_values, versions_,
                         frequencies_, /*part=*/0, /*num_parts=*/1)));
  return ToTf(table->ImportFiltered(filtered_keys_, filtered_versions_,
                                    filtered_frequencies_, /*part=*/0,
                                    /*num_parts=*/1));
}

Status ReadPlacement(const CheckpointReader& checkpoint,
                     const std::string& name, int64_t num_parts,
                     std::vector<int64_t>* placement) {
  const std::string tensor = name + "-sparse_incr_placement";
  bool found;
  TF_RETURN_IF_ERROR(checkpoint.Find(tensor, &found));
  if (!found) return Status::OK();
  TF_RETURN_IF_ERROR(
      ReadIntegers(checkpoint, tensor, -1, false, false, placement));
  for (const int64_t part : *placement) {
    if (part >= 0 && part < num_parts) continue;
    return tensorflow::errors::InvalidArgument(
        "tensor ", tensor, " of checkpoint ", checkpoint.prefix(),
        " must have entries in [0, ", num_parts, "), got ", part);
  }
  return Status::OK();
}

}  // namespace embedding_variable
