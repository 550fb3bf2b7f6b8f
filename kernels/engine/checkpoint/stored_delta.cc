// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/checkpoint/stored_delta.h"

#include <algorithm>
#include <memory>

#include "kernels/engine/checkpoint/stored_columns.h"
#include "kernels/engine/checkpoint/tensor_names.h"

namespace ev {
namespace {

namespace names = tensor_names;

constexpr int64_t kAnyLength = -1;

// Reads a vector of integers: int64 [n], or [0] if may_be_empty. With
// kAnyLength the vector holds keys, which may be int32.
Status ReadIntegers(TensorReader* checkpoint, const std::string& tensor,
                    int64_t n, bool may_be_int32, bool may_be_empty,
                    std::vector<int64_t>* values) {
  std::unique_ptr<StoredTensor> stream;
  EV_RETURN_IF_ERROR(checkpoint->Open(tensor, &stream));
  const std::vector<int64_t>& shape = stream->shape();
  const bool has_type = stream->type() == ElementType::kInt64 ||
                        (stream->type() == ElementType::kInt32 && may_be_int32);
  if (!has_type || shape.size() != 1 ||
      (n != kAnyLength && shape[0] != n && !(may_be_empty && shape[0] == 0))) {
    return Misfit(*checkpoint, tensor,
                  n == kAnyLength ? "a vector of integers"
                                  : "int64 [" + std::to_string(n) + "]",
                  *stream);
  }
  return ReadKeys(stream.get(), shape[0], values);
}

Status ReadKeyVector(TensorReader* checkpoint, const std::string& tensor,
                     std::vector<int64_t>* keys) {
  return ReadIntegers(checkpoint, tensor, kAnyLength, /*may_be_int32=*/true,
                      /*may_be_empty=*/false, keys);
}

Status ReadNumbers(TensorReader* checkpoint, const std::string& tensor,
                   int64_t n, std::vector<int64_t>* numbers) {
  return ReadIntegers(checkpoint, tensor, n, /*may_be_int32=*/false,
                      /*may_be_empty=*/true, numbers);
}

// Reads float [n, width].
Status ReadRows(TensorReader* checkpoint, const std::string& tensor, int64_t n,
                int64_t width, int64_t dim, std::vector<float>* values) {
  std::unique_ptr<StoredTensor> stream;
  EV_RETURN_IF_ERROR(OpenRowTensor(checkpoint, tensor, &stream));
  const std::vector<int64_t>& shape = stream->shape();
  if (stream->type() != ElementType::kFloat || shape.size() != 2 ||
      shape[0] != n || shape[1] != width) {
    return Misfit(*checkpoint, tensor,
                  "float [" + std::to_string(n) + "," + std::to_string(width) +
                      "] (the variable's embedding_dim is " +
                      std::to_string(dim) + ")",
                  *stream);
  }
  return ReadInto(stream.get(), stream->num_elements(), values);
}

std::vector<int64_t> Places(const std::vector<int64_t>& keys,
                            const std::function<bool(int64_t)>& wants) {
  std::vector<int64_t> kept;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (wants(keys[i])) kept.push_back(i);
  }
  return kept;
}

// Keeps only the rows [width] at these positions, and frees memory. A column
// that is not recorded stays empty.
template <typename T>
void ShrinkTo(const std::vector<int64_t>& kept, int64_t width,
              std::vector<T>* rows) {
  if (rows->empty() || rows->size() == kept.size() * width) return;
  KeepRows(kept, width, rows);
  rows->shrink_to_fit();
}

}  // namespace

Status StoredDelta::Read(TensorReader* checkpoint, const std::string& name,
                         const std::vector<SlotSpec>& slots, int64_t dim) {
  EV_RETURN_IF_ERROR(
      ReadKeyVector(checkpoint, name + names::kDeltaKeys, &keys_));
  const int64_t n = keys_.size();
  EV_RETURN_IF_ERROR(
      ReadRows(checkpoint, name + names::kDeltaValues, n, dim, dim, &values_));
  bool found;
  // DeepRec's checkpoints have only keys and values.
  for (int i = 0; i < kNumRowNumbers; ++i) {
    const std::string tensor = name + names::Of(i).delta_rows;
    EV_RETURN_IF_ERROR(checkpoint->Find(tensor, &found));
    if (!found) continue;
    EV_RETURN_IF_ERROR(ReadNumbers(checkpoint, tensor, n, &numbers_[i]));
  }
  EV_RETURN_IF_ERROR(checkpoint->Find(name + names::kDeltaErasedKeys, &found));
  if (found) EV_RETURN_IF_ERROR(ReadOwn(checkpoint, name, dim));
  for (const SlotSpec& slot : slots) {
    const std::string tensor =
        names::SlotOf(name, slot.name) + names::kDeltaValues;
    EV_RETURN_IF_ERROR(checkpoint->Find(tensor, &found));
    if (!found) continue;
    slots_.push_back(slot);
    slot_values_.emplace_back();
    EV_RETURN_IF_ERROR(ReadRows(checkpoint, tensor, n, slot.WidthIn(dim), dim,
                                &slot_values_.back()));
  }
  return Status::OK();
}

// Reads the tensors that DeepRec's incremental checkpoints do not have.
Status StoredDelta::ReadOwn(TensorReader* checkpoint, const std::string& name,
                            int64_t dim) {
  std::vector<int64_t> replaces;
  EV_RETURN_IF_ERROR(
      ReadKeyVector(checkpoint, name + names::kDeltaErasedKeys, &erased_));
  EV_RETURN_IF_ERROR(ReadIntegers(checkpoint, name + names::kDeltaReplaces, 1,
                                  /*may_be_int32=*/false,
                                  /*may_be_empty=*/false, &replaces));
  replaces_ = replaces[0] != 0;
  EV_RETURN_IF_ERROR(ReadTableTensors(checkpoint, name, dim, /*is_delta=*/true,
                                      /*custom_dim=*/false, &tensors_));
  EV_RETURN_IF_ERROR(ReadKeyVector(checkpoint, name + names::kDeltaFilteredKeys,
                                   &filtered_keys_));
  for (int i = 0; i < kNumRowNumbers; ++i) {
    EV_RETURN_IF_ERROR(
        ReadNumbers(checkpoint, name + names::Of(i).delta_filtered,
                    filtered_keys_.size(), &filtered_numbers_[i]));
  }
  return Status::OK();
}

void StoredDelta::Keep(const std::function<bool(int64_t)>& wants) {
  ShrinkTo(Places(erased_, wants), 1, &erased_);
  const std::vector<int64_t> kept = Places(keys_, wants);
  const int64_t dim = keys_.empty() ? 0 : values_.size() / keys_.size();
  ShrinkTo(kept, dim, &values_);
  for (size_t s = 0; s < slots_.size(); ++s) {
    ShrinkTo(kept, slots_[s].WidthIn(dim), &slot_values_[s]);
  }
  for (std::vector<int64_t>& column : numbers_) ShrinkTo(kept, 1, &column);
  ShrinkTo(kept, 1, &keys_);
  const std::vector<int64_t> counted = Places(filtered_keys_, wants);
  for (std::vector<int64_t>& column : filtered_numbers_) {
    ShrinkTo(counted, 1, &column);
  }
  ShrinkTo(counted, 1, &filtered_keys_);
}

Status StoredDelta::CheckKeys(const EmbeddingTable& table) const {
  EV_RETURN_IF_ERROR(table.CheckKeys(keys_));
  return table.CheckKeys(filtered_keys_);
}

Status StoredDelta::Apply(EmbeddingTable* table) const {
  EV_RETURN_IF_ERROR(table->Erase(erased_));
  // Filtered keys have no row in the saved table, but a lower threshold may
  // have given them one in this table.
  EV_RETURN_IF_ERROR(table->Erase(filtered_keys_));
  std::vector<const float*> slot_values;
  for (const std::vector<float>& values : slot_values_) {
    slot_values.push_back(values.data());
  }
  EV_RETURN_IF_ERROR(table->Import(keys_, values_.data(), slots_, slot_values,
                                   ImportedNumbers(numbers_),
                                   /*part=*/0,
                                   /*num_parts=*/1));
  return table->ImportFiltered(filtered_keys_, filtered_numbers_[kVersion],
                               filtered_numbers_[kFrequency], /*part=*/0,
                               /*num_parts=*/1);
}

Status ReadPlacement(TensorReader* checkpoint, const std::string& name,
                     int64_t num_parts, std::vector<int64_t>* placement) {
  const std::string tensor = name + names::kDeltaPlacement;
  bool found;
  EV_RETURN_IF_ERROR(checkpoint->Find(tensor, &found));
  if (!found) return Status::OK();
  EV_RETURN_IF_ERROR(ReadIntegers(checkpoint, tensor, kAnyLength,
                                  /*may_be_int32=*/false,
                                  /*may_be_empty=*/false, placement));
  for (const int64_t part : *placement) {
    if (part >= 0 && part < num_parts) continue;
    return InvalidArgument("tensor " + tensor + " of checkpoint " +
                           checkpoint->prefix() + ": expected entries in [0, " +
                           std::to_string(num_parts) + "), got " +
                           std::to_string(part));
  }
  return Status::OK();
}

}  // namespace ev
