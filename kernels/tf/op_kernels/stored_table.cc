// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/tf/op_kernels/stored_table.h"

#include <algorithm>
#include <utility>

#include "kernels/engine/base/modulo.h"
#include "kernels/tf/bridge/status.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/lib/core/errors.h"
#include "tensorflow/core/lib/strings/strcat.h"

namespace embedding_variable {
namespace {

using tensorflow::Status;
using tensorflow::errors::InvalidArgument;
using tensorflow::strings::StrCat;

// Rows that are in memory at once.
constexpr int64_t kPieceBytes = 8 << 20;
constexpr int64_t kPieceKeys = 1 << 18;

template <typename T>
Status ReadInto(TensorStream* stream, int64_t count, std::vector<T>* data) {
  data->resize(count);
  return stream->Read(count * sizeof(T), data->data());
}

Status ReadKeys(TensorStream* stream, int64_t count,
                std::vector<int64_t>* keys) {
  if (stream->dtype() == tensorflow::DT_INT64) {
    return ReadInto(stream, count, keys);
  }
  std::vector<int32_t> narrow;
  TF_RETURN_IF_ERROR(ReadInto(stream, count, &narrow));
  keys->assign(narrow.begin(), narrow.end());
  return Status::OK();
}

// Rows [n, from] become rows [n, to]: cut, or with what complete(i, j) gives.
template <typename Complete>
void ChangeDim(int64_t n, int64_t from, int64_t to, const Complete& complete,
               std::vector<float>* rows) {
  if (from == to) return;
  std::vector<float> changed(n * to);
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < to; ++j) {
      changed[i * to + j] = j < from ? (*rows)[i * from + j] : complete(i, j);
    }
  }
  rows->swap(changed);
}

// Leaves the rows [width] at the places that 'kept' names, in order.
template <typename T>
void Keep(const std::vector<int64_t>& kept, int64_t width,
          std::vector<T>* rows) {
  for (size_t k = 0; k < kept.size(); ++k) {
    if (static_cast<int64_t>(k) == kept[k]) continue;
    std::copy_n(rows->begin() + kept[k] * width, width,
                rows->begin() + k * width);
  }
  rows->resize(kept.size() * width);
}

}  // namespace

bool RestoreOptions::Wants(int64_t key) const {
  if (ev::FloorMod(ev::FloorMod(key, 1000), num_parts) != part) return false;
  return placement.empty() ||
         placement[ev::FloorMod(key, placement.size())] == rank;
}

Status StoredTable::OpenKeys(const std::string& tensor, Stream* keys) const {
  TF_RETURN_IF_ERROR(checkpoint_->Open(tensor, keys));
  if ((*keys)->shape().dims() == 1 &&
      ((*keys)->dtype() == tensorflow::DT_INT64 ||
       (*keys)->dtype() == tensorflow::DT_INT32)) {
    return Status::OK();
  }
  return InvalidArgument("tensor ", tensor, " of checkpoint ",
                         checkpoint_->prefix(),
                         " must be a vector of int64 or int32, got ",
                         tensorflow::DataTypeString((*keys)->dtype()), " ",
                         (*keys)->shape().DebugString());
}

Status StoredTable::OpenRows(const std::string& tensor, int64_t num_rows,
                             Stream* stream, int64_t* dim) const {
  TF_RETURN_IF_ERROR(checkpoint_->Open(tensor, stream));
  const tensorflow::TensorShape& shape = (*stream)->shape();
  if ((*stream)->dtype() == tensorflow::DT_FLOAT && shape.dims() == 2 &&
      shape.dim_size(0) == num_rows && shape.dim_size(1) > 0 &&
      (shape.dim_size(1) == dim_ || options_.custom_dim)) {
    *dim = shape.dim_size(1);
    return Status::OK();
  }
  return InvalidArgument("tensor ", tensor, " of checkpoint ",
                         checkpoint_->prefix(), " must be float [", num_rows,
                         ",", dim_, "] (the variable's embedding_dim is ", dim_,
                         "; TF_EV_RESTORE_CUSTOM_DIM=1 takes rows of another "
                         "length), got ",
                         tensorflow::DataTypeString((*stream)->dtype()), " ",
                         shape.DebugString());
}

// Leaves *stream null when the checkpoint does not record it.
Status StoredTable::OpenMeta(const std::string& tensor, Stream* stream) const {
  bool found;
  TF_RETURN_IF_ERROR(checkpoint_->Find(tensor, &found));
  if (!found) return Status::OK();
  TF_RETURN_IF_ERROR(checkpoint_->Open(tensor, stream));
  const tensorflow::TensorShape& shape = (*stream)->shape();
  if ((*stream)->dtype() != tensorflow::DT_INT64 || shape.dims() != 1 ||
      (shape.dim_size(0) != 0 && shape.dim_size(0) != num_keys_)) {
    return InvalidArgument("tensor ", tensor, " of checkpoint ",
                           checkpoint_->prefix(), " must be int64 [0] or [",
                           num_keys_, "], got ",
                           tensorflow::DataTypeString((*stream)->dtype()), " ",
                           shape.DebugString());
  }
  if (shape.dim_size(0) == 0) stream->reset();
  return Status::OK();
}

// Whether these keys are those of the value, in the same order.
Status StoredTable::SameKeys(const std::string& tensor, bool* same) const {
  TF_RETURN_IF_ERROR(checkpoint_->SameBytes(name_ + "-keys", tensor, same));
  if (*same) return Status::OK();
  Stream mine, its;
  TF_RETURN_IF_ERROR(OpenKeys(name_ + "-keys", &mine));
  TF_RETURN_IF_ERROR(OpenKeys(tensor, &its));
  if (its->shape() != mine->shape()) return Status::OK();
  std::vector<int64_t> a, b;
  for (int64_t first = 0; first < num_keys_; first += kPieceKeys) {
    const int64_t n = std::min(kPieceKeys, num_keys_ - first);
    TF_RETURN_IF_ERROR(ReadKeys(mine.get(), n, &a));
    TF_RETURN_IF_ERROR(ReadKeys(its.get(), n, &b));
    if (a != b) return Status::OK();
  }
  *same = true;
  return Status::OK();
}

Status StoredTable::OpenSlot(const ev::SlotSpec& spec) {
  Slot slot;
  slot.spec = spec;
  slot.name = StrCat(name_, "/", spec.name);
  bool found;
  TF_RETURN_IF_ERROR(checkpoint_->Find(slot.name + "-values", &found));
  if (!found) return Status::OK();
  slot.in_step = true;
  slot.num_rows = num_keys_;
  TF_RETURN_IF_ERROR(checkpoint_->Find(slot.name + "-keys", &found));
  if (found) {
    TF_RETURN_IF_ERROR(SameKeys(slot.name + "-keys", &slot.in_step));
    Stream keys;
    TF_RETURN_IF_ERROR(OpenKeys(slot.name + "-keys", &keys));
    slot.num_rows = keys->shape().dim_size(0);
  }
  TF_RETURN_IF_ERROR(
      OpenRows(slot.name + "-values", slot.num_rows, &slot.values, &slot.dim));
  slots_.push_back(std::move(slot));
  return Status::OK();
}

Status StoredTable::Open(const CheckpointReader& checkpoint,
                         const std::string& name,
                         const std::vector<ev::SlotSpec>& slots, int64_t dim,
                         const RestoreOptions& options) {
  checkpoint_ = &checkpoint;
  name_ = name;
  dim_ = dim;
  options_ = options;
  TF_RETURN_IF_ERROR(OpenKeys(name + "-keys", &keys_));
  num_keys_ = keys_->shape().dim_size(0);
  TF_RETURN_IF_ERROR(
      OpenRows(name + "-values", num_keys_, &values_, &stored_dim_));
  TF_RETURN_IF_ERROR(OpenMeta(name + "-versions", &versions_));
  TF_RETURN_IF_ERROR(OpenMeta(name + "-freqs", &frequencies_));
  for (const ev::SlotSpec& slot : slots) TF_RETURN_IF_ERROR(OpenSlot(slot));
  return Status::OK();
}

// Reads the keys alone: of what another rank or part has saved, usually none
// belongs here, and the rows need not be read.
Status StoredTable::HasWantedKeys(bool* any) const {
  *any = num_keys_ > 0;
  if (!*any || (options_.num_parts == 1 && options_.placement.empty())) {
    return Status::OK();
  }
  *any = false;
  Stream stream;
  TF_RETURN_IF_ERROR(OpenKeys(name_ + "-keys", &stream));
  std::vector<int64_t> keys;
  for (int64_t first = 0; first < num_keys_; first += kPieceKeys) {
    TF_RETURN_IF_ERROR(
        ReadKeys(stream.get(), std::min(kPieceKeys, num_keys_ - first), &keys));
    for (const int64_t key : keys) *any = *any || options_.Wants(key);
  }
  return Status::OK();
}

Status StoredTable::Import(ev::EmbeddingTable* table) {
  bool any;
  TF_RETURN_IF_ERROR(HasWantedKeys(&any));
  if (!any) return Status::OK();
  std::vector<ev::SlotSpec> slots;
  std::vector<Slot*> in_step;
  for (Slot& slot : slots_) {
    if (!slot.in_step) continue;
    slots.push_back(slot.spec);
    in_step.push_back(&slot);
  }
  const std::vector<float> defaults =
      stored_dim_ < dim_ ? table->default_rows() : std::vector<float>();
  const int64_t num_defaults = defaults.size() / dim_;
  const int64_t row_bytes =
      (1 + slots.size()) * std::max(dim_, stored_dim_) * sizeof(float);
  const int64_t piece = std::max<int64_t>(1, kPieceBytes / row_bytes);
  std::vector<int64_t> keys, versions, frequencies, kept;
  std::vector<float> values;
  std::vector<std::vector<float>> slot_values(slots.size());
  std::vector<const float*> slot_pointers(slots.size());
  for (int64_t first = 0; first < num_keys_; first += piece) {
    const int64_t n = std::min(piece, num_keys_ - first);
    TF_RETURN_IF_ERROR(ReadKeys(keys_.get(), n, &keys));
    TF_RETURN_IF_ERROR(ReadInto(values_.get(), n * stored_dim_, &values));
    if (versions_ != nullptr) {
      TF_RETURN_IF_ERROR(ReadInto(versions_.get(), n, &versions));
    }
    if (options_.reset_version) versions.assign(n, 0);
    if (frequencies_ != nullptr) {
      TF_RETURN_IF_ERROR(ReadInto(frequencies_.get(), n, &frequencies));
    }
    for (size_t s = 0; s < slots.size(); ++s) {
      TF_RETURN_IF_ERROR(ReadInto(in_step[s]->values.get(), n * in_step[s]->dim,
                                  &slot_values[s]));
    }
    ChangeDim(
        n, stored_dim_, dim_,
        [&](int64_t i, int64_t j) {
          return defaults[ev::FloorMod(keys[i], num_defaults) * dim_ + j];
        },
        &values);
    for (size_t s = 0; s < slots.size(); ++s) {
      ChangeDim(
          n, in_step[s]->dim, dim_,
          [&](int64_t, int64_t) { return slots[s].initial_value; },
          &slot_values[s]);
    }
    kept.clear();
    for (int64_t i = 0; i < n; ++i) {
      if (options_.Wants(keys[i])) kept.push_back(i);
    }
    Keep(kept, 1, &keys);
    Keep(kept, dim_, &values);
    if (!versions.empty()) Keep(kept, 1, &versions);
    if (!frequencies.empty()) Keep(kept, 1, &frequencies);
    for (size_t s = 0; s < slots.size(); ++s) {
      Keep(kept, dim_, &slot_values[s]);
      slot_pointers[s] = slot_values[s].data();
    }
    TF_RETURN_IF_ERROR(ToTf(table->Import(keys, values.data(), slots,
                                          slot_pointers, versions, frequencies,
                                          /*part=*/0, /*num_parts=*/1)));
  }
  for (Slot& slot : slots_) {
    if (!slot.in_step) TF_RETURN_IF_ERROR(ImportSlot(&slot, table));
  }
  return Status::OK();
}

Status StoredTable::ImportSlot(Slot* slot, ev::EmbeddingTable* table) const {
  Stream stream;
  TF_RETURN_IF_ERROR(OpenKeys(slot->name + "-keys", &stream));
  const int64_t row_bytes = std::max(dim_, slot->dim) * sizeof(float);
  const int64_t piece = std::max<int64_t>(1, kPieceBytes / row_bytes);
  std::vector<int64_t> keys;
  std::vector<float> values;
  for (int64_t first = 0; first < slot->num_rows; first += piece) {
    const int64_t n = std::min(piece, slot->num_rows - first);
    TF_RETURN_IF_ERROR(ReadKeys(stream.get(), n, &keys));
    TF_RETURN_IF_ERROR(ReadInto(slot->values.get(), n * slot->dim, &values));
    ChangeDim(
        n, slot->dim, dim_,
        [&](int64_t, int64_t) { return slot->spec.initial_value; }, &values);
    TF_RETURN_IF_ERROR(
        ToTf(table->ImportSlot(keys, slot->spec, values.data())));
  }
  return Status::OK();
}

}  // namespace embedding_variable
