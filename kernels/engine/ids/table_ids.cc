// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/ids/table_ids.h"

#include "kernels/engine/base/batch_limits.h"

namespace ev {

Status CheckIds(const IdsInput& in, const std::string& table) {
  const auto bad = [&](const std::string& what) {
    return InvalidArgument(what + ", table '" + table + "'");
  };
  if (!IsBatchSize(in.batch_size)) {
    return bad("the batch size: expected a number in [0, 2^31 - 1), got " +
               std::to_string(in.batch_size));
  }
  if (!IsBatchSize(in.num_ids)) {
    return bad("the number of ids: expected a number in [0, 2^31 - 1), got " +
               std::to_string(in.num_ids));
  }
  if (in.num_ids > 0 && (in.ids64 != nullptr) == (in.ids32 != nullptr)) {
    return bad("ids: expected either int64 or int32");
  }
  if (in.row_splits != nullptr && in.coo_indices != nullptr) {
    return bad("samples: expected either row splits or indices");
  }
  if (in.num_ids > 0 && in.row_splits == nullptr && in.coo_indices == nullptr) {
    return bad("ids came without row splits and without indices");
  }
  return Status::OK();
}

Status NamedAfter(const std::string& table, const Status& status) {
  if (status.ok()) return status;
  return Status(status.code(), status.message() + ", table '" + table + "'");
}

void TableIds::Begin(const IdsInput& in, const std::string& table) {
  name = table;
  batch_size = in.batch_size;
  num_ids = in.num_ids;
  num_unique = 0;
  has_weights = in.weights != nullptr && in.num_ids > 0;
  has_factors = false;
  is_sharded = false;
  is_fetched = false;
  has_offsets = true;
}

TableIds::Layout TableIds::AddTo(ArrayLayout* layout, int64_t num_ids) const {
  const size_t n = num_ids, b = batch_size;
  Layout at;
  at.offsets = layout->Add<int32_t>(b + 1);
  at.inverse = layout->Add<int32_t>(n);
  at.end_of_inverse = layout->bytes();
  at.factors = layout->Add<float>(b);
  at.weights = layout->Add<float>(has_weights ? n : 0);
  at.unique = layout->Add<int64_t>(n);
  at.counts = layout->Add<int32_t>(n);
  return at;
}

void TableIds::PointInto(char* block, const Layout& layout) {
  offsets = reinterpret_cast<int32_t*>(block + layout.offsets);
  inverse = reinterpret_cast<int32_t*>(block + layout.inverse);
  factors = reinterpret_cast<float*>(block + layout.factors);
  weights = reinterpret_cast<float*>(block + layout.weights);
  unique = reinterpret_cast<int64_t*>(block + layout.unique);
  counts = reinterpret_cast<int32_t*>(block + layout.counts);
}

}  // namespace ev
