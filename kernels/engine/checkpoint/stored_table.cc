// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/checkpoint/stored_table.h"

#include <algorithm>
#include <utility>

#include "kernels/engine/checkpoint/stored_columns.h"
#include "kernels/engine/checkpoint/tensor_names.h"

namespace ev {
namespace {

namespace names = tensor_names;

// Limits of the rows in memory at once.
constexpr int64_t kPieceBytes = 8 << 20;
constexpr int64_t kPieceKeys = 1 << 18;

// Changes rows [n, from] to rows [n, to]: cuts them, or completes them with
// complete(i, j).
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

}  // namespace

// Rows being moved into the table.
struct StoredTable::Piece {
  std::vector<int64_t> keys;
  std::vector<float> values;
  PerRowNumber<std::vector<int64_t>> numbers;
  std::vector<std::vector<float>> slots;  // slots with in_step only

  void Keep(const std::vector<int64_t>& kept, int64_t dim,
            const std::vector<Slot*>& in_step) {
    KeepRows(kept, 1, &keys);
    KeepRows(kept, dim, &values);
    for (std::vector<int64_t>& column : numbers) {
      if (!column.empty()) KeepRows(kept, 1, &column);
    }
    for (size_t s = 0; s < slots.size(); ++s) {
      KeepRows(kept, in_step[s]->width, &slots[s]);
    }
  }
};

Status StoredTable::OpenRows(const std::string& tensor, int64_t num_rows,
                             int64_t width, Stream* stream,
                             int64_t* stored_width) const {
  EV_RETURN_IF_ERROR(OpenRowTensor(checkpoint_, tensor, stream));
  const std::vector<int64_t>& shape = (*stream)->shape();
  if ((*stream)->type() == ElementType::kFloat && shape.size() == 2 &&
      shape[0] == num_rows && shape[1] > 0 &&
      (shape[1] == width || (options_.custom_dim && width == dim_))) {
    *stored_width = shape[1];
    return Status::OK();
  }
  return Misfit(
      *checkpoint_, tensor,
      "float [" + std::to_string(num_rows) + "," + std::to_string(width) +
          "] (the variable's embedding_dim is " + std::to_string(dim_) +
          "; TF_EV_RESTORE_CUSTOM_DIM=1 takes rows of another "
          "length)",
      **stream);
}

// Sets *same: whether these keys equal those of the value, in the same order.
Status StoredTable::SameKeys(const std::string& tensor, bool* same) const {
  const std::string own = name_ + names::kKeys;
  EV_RETURN_IF_ERROR(checkpoint_->SameBytes(own, tensor, same));
  if (*same) return Status::OK();
  Stream mine, its;
  EV_RETURN_IF_ERROR(OpenKeys(checkpoint_, own, &mine));
  EV_RETURN_IF_ERROR(OpenKeys(checkpoint_, tensor, &its));
  if (its->shape() != mine->shape()) return Status::OK();
  std::vector<int64_t> a, b;
  for (int64_t first = 0; first < num_keys_; first += kPieceKeys) {
    const int64_t n = std::min(kPieceKeys, num_keys_ - first);
    EV_RETURN_IF_ERROR(ReadKeys(mine.get(), n, &a));
    EV_RETURN_IF_ERROR(ReadKeys(its.get(), n, &b));
    if (a != b) return Status::OK();
  }
  *same = true;
  return Status::OK();
}

Status StoredTable::OpenSlot(const SlotSpec& spec) {
  Slot slot;
  slot.spec = spec;
  slot.name = names::SlotOf(name_, spec.name);
  bool found;
  EV_RETURN_IF_ERROR(checkpoint_->Find(slot.name + names::kValues, &found));
  if (!found) return Status::OK();
  slot.in_step = true;
  slot.num_rows = num_keys_;
  const std::string its_keys = slot.name + names::kKeys;
  EV_RETURN_IF_ERROR(checkpoint_->Find(its_keys, &found));
  if (found) {
    EV_RETURN_IF_ERROR(SameKeys(its_keys, &slot.in_step));
    Stream keys;
    EV_RETURN_IF_ERROR(OpenKeys(checkpoint_, its_keys, &keys));
    slot.num_rows = keys->shape()[0];
  }
  slot.width = spec.WidthIn(dim_);
  EV_RETURN_IF_ERROR(OpenRows(slot.name + names::kValues, slot.num_rows,
                              slot.width, &slot.values, &slot.stored_width));
  slots_.push_back(std::move(slot));
  return Status::OK();
}

Status StoredTable::Open(TensorReader* checkpoint, const std::string& name,
                         const std::vector<SlotSpec>& slots, int64_t dim,
                         const RestoreOptions& options) {
  checkpoint_ = checkpoint;
  name_ = name;
  dim_ = dim;
  options_ = options;
  EV_RETURN_IF_ERROR(OpenKeys(checkpoint, name + names::kKeys, &keys_));
  num_keys_ = keys_->shape()[0];
  EV_RETURN_IF_ERROR(
      OpenRows(name + names::kValues, num_keys_, dim_, &values_, &stored_dim_));
  for (int i = 0; i < kNumRowNumbers; ++i) {
    EV_RETURN_IF_ERROR(OpenNumbers(checkpoint, name + names::Of(i).rows,
                                   num_keys_, &numbers_[i]));
  }
  for (const SlotSpec& slot : slots) EV_RETURN_IF_ERROR(OpenSlot(slot));
  return Status::OK();
}

// Reads only the keys. Usually none of the keys that another rank or part saved
// belong to this table, and then the rows need not be read.
Status StoredTable::HasWantedKeys(bool* any) const {
  *any = num_keys_ > 0;
  if (!*any || options_.keys.TakesAll()) return Status::OK();
  *any = false;
  Stream stream;
  EV_RETURN_IF_ERROR(OpenKeys(checkpoint_, name_ + names::kKeys, &stream));
  std::vector<int64_t> keys;
  for (int64_t first = 0; first < num_keys_; first += kPieceKeys) {
    EV_RETURN_IF_ERROR(
        ReadKeys(stream.get(), std::min(kPieceKeys, num_keys_ - first), &keys));
    for (const int64_t key : keys) *any = *any || options_.keys.Takes(key);
  }
  return Status::OK();
}

// Reads the next n rows in their stored length.
Status StoredTable::ReadPiece(int64_t n, const std::vector<Slot*>& in_step,
                              Piece* piece) {
  EV_RETURN_IF_ERROR(ReadKeys(keys_.get(), n, &piece->keys));
  EV_RETURN_IF_ERROR(ReadInto(values_.get(), n * stored_dim_, &piece->values));
  for (int i = 0; i < kNumRowNumbers; ++i) {
    if (numbers_[i] == nullptr) continue;
    EV_RETURN_IF_ERROR(ReadInto(numbers_[i].get(), n, &piece->numbers[i]));
  }
  if (options_.reset_version) piece->numbers[kVersion].assign(n, 0);
  for (size_t s = 0; s < in_step.size(); ++s) {
    EV_RETURN_IF_ERROR(ReadInto(in_step[s]->values.get(),
                                n * in_step[s]->stored_width,
                                &piece->slots[s]));
  }
  return Status::OK();
}

Status StoredTable::Import(EmbeddingTable* table) {
  bool any;
  EV_RETURN_IF_ERROR(HasWantedKeys(&any));
  if (!any) return Status::OK();
  std::vector<SlotSpec> slots;
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
  const int64_t most = std::max<int64_t>(1, kPieceBytes / row_bytes);
  Piece piece;
  piece.slots.resize(slots.size());
  std::vector<const float*> slot_values(slots.size());
  std::vector<int64_t> kept;
  for (int64_t first = 0; first < num_keys_; first += most) {
    const int64_t n = std::min(most, num_keys_ - first);
    EV_RETURN_IF_ERROR(ReadPiece(n, in_step, &piece));
    ChangeDim(
        n, stored_dim_, dim_,
        [&](int64_t i, int64_t j) {
          return defaults[FloorMod(piece.keys[i], num_defaults) * dim_ + j];
        },
        &piece.values);
    for (size_t s = 0; s < slots.size(); ++s) {
      ChangeDim(
          n, in_step[s]->stored_width, in_step[s]->width,
          [&](int64_t, int64_t) { return slots[s].initial_value; },
          &piece.slots[s]);
    }
    kept.clear();
    for (int64_t i = 0; i < n; ++i) {
      if (options_.keys.Takes(piece.keys[i])) kept.push_back(i);
    }
    piece.Keep(kept, dim_, in_step);
    for (size_t s = 0; s < slots.size(); ++s) {
      slot_values[s] = piece.slots[s].data();
    }
    EV_RETURN_IF_ERROR(table->Import(piece.keys, piece.values.data(), slots,
                                     slot_values,
                                     ImportedNumbers(piece.numbers),
                                     /*part=*/0, /*num_parts=*/1));
  }
  for (Slot& slot : slots_) {
    if (!slot.in_step) EV_RETURN_IF_ERROR(ImportSlot(&slot, table));
  }
  return Status::OK();
}

Status StoredTable::ImportSlot(Slot* slot, EmbeddingTable* table) const {
  Stream stream;
  EV_RETURN_IF_ERROR(OpenKeys(checkpoint_, slot->name + names::kKeys, &stream));
  const int64_t row_bytes =
      std::max(slot->width, slot->stored_width) * sizeof(float);
  const int64_t piece = std::max<int64_t>(1, kPieceBytes / row_bytes);
  std::vector<int64_t> keys;
  std::vector<float> values;
  for (int64_t first = 0; first < slot->num_rows; first += piece) {
    const int64_t n = std::min(piece, slot->num_rows - first);
    EV_RETURN_IF_ERROR(ReadKeys(stream.get(), n, &keys));
    EV_RETURN_IF_ERROR(
        ReadInto(slot->values.get(), n * slot->stored_width, &values));
    ChangeDim(
        n, slot->stored_width, slot->width,
        [&](int64_t, int64_t) { return slot->spec.initial_value; }, &values);
    EV_RETURN_IF_ERROR(table->ImportSlot(keys, slot->spec, values.data()));
  }
  return Status::OK();
}

}  // namespace ev
