// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/checkpoint/stored_columns.h"

#include <utility>

#include "kernels/engine/base/row_format.h"
#include "kernels/engine/checkpoint/tensor_names.h"
#include "kernels/engine/embedding/table_tensors.h"

namespace ev {
namespace {

// Rows in fewer bytes, read as float32.
class UnpackedRows : public StoredTensor {
 public:
  UnpackedRows(std::unique_ptr<StoredTensor> packed, const RowFormat& format)
      : packed_(std::move(packed)),
        format_(format),
        shape_{packed_->shape()[0], format.dim} {}

  ElementType type() const override { return ElementType::kFloat; }
  const std::vector<int64_t>& shape() const override { return shape_; }
  std::string Description() const override { return packed_->Description(); }
  // REQUIRES: num_bytes are those of whole rows.
  Status Read(size_t num_bytes, void* data) override {
    const int64_t num_rows = num_bytes / sizeof(float) / format_.dim;
    bytes_.resize(num_rows * FileRowBytes(format_));
    EV_RETURN_IF_ERROR(packed_->Read(bytes_.size(), bytes_.data()));
    UnpackFileRows(format_, num_rows, bytes_.data(), static_cast<float*>(data));
    return Status::OK();
  }

 private:
  const std::unique_ptr<StoredTensor> packed_;
  const RowFormat format_;
  const std::vector<int64_t> shape_;
  std::vector<char> bytes_;
};

}  // namespace

Status FindParts(TensorReader* checkpoint, const std::string& table,
                 const char* keys, const char* kind,
                 std::vector<std::string>* names) {
  bool found;
  EV_RETURN_IF_ERROR(checkpoint->Find(table + keys, &found));
  if (found) {
    names->push_back(table);
    return Status::OK();
  }
  for (int64_t i = 0;; ++i) {
    const std::string name = tensor_names::PartOf(table, i);
    EV_RETURN_IF_ERROR(checkpoint->Find(name + keys, &found));
    if (!found) break;
    names->push_back(name);
  }
  if (!names->empty()) return Status::OK();
  return NotFound(kind + (" " + checkpoint->prefix()) + " has neither tensor " +
                  table + keys + " nor " + tensor_names::PartOf(table, 0) +
                  keys);
}

Status Misfit(const TensorReader& checkpoint, const std::string& tensor,
              const std::string& expected, const StoredTensor& got) {
  return InvalidArgument("tensor " + tensor + " of checkpoint " +
                         checkpoint.prefix() + ": expected " + expected +
                         ", got " + got.Description());
}

Status OpenKeys(TensorReader* checkpoint, const std::string& tensor,
                std::unique_ptr<StoredTensor>* keys) {
  EV_RETURN_IF_ERROR(checkpoint->Open(tensor, keys));
  if ((*keys)->shape().size() == 1 &&
      ((*keys)->type() == ElementType::kInt64 ||
       (*keys)->type() == ElementType::kInt32)) {
    return Status::OK();
  }
  return Misfit(*checkpoint, tensor, "a vector of int64 or int32", **keys);
}

Status OpenRowTensor(TensorReader* checkpoint, const std::string& tensor,
                     std::unique_ptr<StoredTensor>* rows) {
  EV_RETURN_IF_ERROR(checkpoint->Open(tensor, rows));
  if ((*rows)->shape().size() != 2) return Status::OK();
  RowFormat format(static_cast<int>((*rows)->shape()[1]));
  if ((*rows)->type() == ElementType::kFloat16) {
    format.type = RowType::kFloat16;
  } else if ((*rows)->type() == ElementType::kUint8 && format.dim > 4) {
    format = RowFormat(format.dim - 4, RowType::kUint8);
  }
  if (format.is_packed()) {
    rows->reset(new UnpackedRows(std::move(*rows), format));
  }
  return Status::OK();
}

Status OpenNumbers(TensorReader* checkpoint, const std::string& tensor,
                   int64_t n, std::unique_ptr<StoredTensor>* numbers) {
  bool found;
  EV_RETURN_IF_ERROR(checkpoint->Find(tensor, &found));
  if (!found) return Status::OK();
  EV_RETURN_IF_ERROR(checkpoint->Open(tensor, numbers));
  const std::vector<int64_t>& shape = (*numbers)->shape();
  if ((*numbers)->type() != ElementType::kInt64 || shape.size() != 1 ||
      (shape[0] != 0 && shape[0] != n)) {
    return Misfit(*checkpoint, tensor,
                  "int64 [0] or [" + std::to_string(n) + "]", **numbers);
  }
  if (shape[0] == 0) numbers->reset();
  return Status::OK();
}

Status ReadTableTensors(TensorReader* checkpoint, const std::string& table,
                        int64_t dim, bool is_delta, bool custom_dim,
                        std::vector<TableTensor>* tensors) {
  for (const TableTensorSpec& spec : TableTensorSpecs()) {
    tensors->emplace_back();
    const std::string tensor =
        is_delta ? tensor_names::DeltaTensorOf(table, spec.name)
                 : tensor_names::TensorOf(table, spec.name);
    bool found;
    EV_RETURN_IF_ERROR(checkpoint->Find(tensor, &found));
    if (!found) continue;
    std::unique_ptr<StoredTensor> stream;
    EV_RETURN_IF_ERROR(checkpoint->Open(tensor, &stream));
    const std::vector<int64_t>& shape = stream->shape();
    const std::vector<int64_t> wanted = spec.shape(dim);
    bool fits = shape.size() == wanted.size();
    if (custom_dim && fits && shape.back() != wanted.back()) continue;
    const bool is_float = spec.type == ElementType::kFloat;
    std::string expected = is_float ? "float [" : "int64 [";
    fits = fits && stream->type() == spec.type;
    for (size_t d = 0; d < wanted.size(); ++d) {
      const bool any = wanted[d] == kAnySize;
      expected += (d == 0 ? "" : ",") + (any ? "R" : std::to_string(wanted[d]));
      if (!fits || (is_delta && spec.fixed && d == 0 && shape[0] == 0))
        continue;
      fits = any ? shape[d] > 0 : shape[d] == wanted[d];
    }
    expected += is_delta ? "] (the variable's embedding_dim is " +
                               std::to_string(dim) + ")"
                         : "]";
    if (!fits) return Misfit(*checkpoint, tensor, expected, *stream);
    tensors->back().shape = shape;
    EV_RETURN_IF_ERROR(ReadInto(
        stream.get(),
        stream->num_elements() * (is_float ? sizeof(float) : sizeof(int64_t)),
        &tensors->back().bytes));
  }
  return Status::OK();
}

Status ReadKeys(StoredTensor* tensor, int64_t count,
                std::vector<int64_t>* keys) {
  if (tensor->type() == ElementType::kInt64) {
    return ReadInto(tensor, count, keys);
  }
  std::vector<int32_t> narrow;
  EV_RETURN_IF_ERROR(ReadInto(tensor, count, &narrow));
  keys->assign(narrow.begin(), narrow.end());
  return Status::OK();
}

}  // namespace ev
