// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/embedding/table_tensors.h"

#include "kernels/engine/embedding/table_impl.h"

namespace ev {
namespace {

template <typename T>
TableTensor Stored(const std::vector<int64_t>& shape, Span<const T> elements) {
  const char* const bytes = reinterpret_cast<const char*>(elements.data());
  return {shape, std::vector<char>(bytes, bytes + elements.size() * sizeof(T))};
}

template <typename T>
Span<const T> Elements(const TableTensor& tensor) {
  return Span<const T>(reinterpret_cast<const T*>(tensor.bytes.data()),
                       tensor.bytes.size() / sizeof(T));
}

}  // namespace

Span<const TableTensorSpec> TableTensorSpecs() {
  static const auto* const specs = new std::vector<TableTensorSpec>{
      {"default_rows", ElementType::kFloat,
       [](int64_t dim) {
         return std::vector<int64_t>{kAnySize, dim};
       },
       /*fixed=*/true, /*narrow=*/false,
       [](const EmbeddingTable::Impl& table) {
         return Stored({table.num_defaults, table.dim()}, table.default_rows());
       },
       [](const TableTensor* stored, EmbeddingTable* table) {
         return stored == nullptr ? table->Clear()
                                  : table->Initialize(Elements<float>(*stored),
                                                      stored->shape[0]);
       }},
      // Seed of stochastic rounding, number of updates so far.
      {"rounding", ElementType::kInt64,
       [](int64_t) { return std::vector<int64_t>{2}; },
       /*fixed=*/false, /*narrow=*/true,
       [](const EmbeddingTable::Impl& table) {
         const int64_t numbers[] = {
             static_cast<int64_t>(table.rounding_seed.load()),
             table.rounded_updates.load()};
         return Stored({2}, Span<const int64_t>(numbers, 2));
       },
       [](const TableTensor* stored, EmbeddingTable* table) {
         const Span<const int64_t> numbers = Elements<int64_t>(*stored);
         table->impl()->rounding_seed = static_cast<uint64_t>(numbers[0]);
         table->impl()->rounded_updates = numbers[1];
         return Status::OK();
       }},
  };
  return *specs;
}

std::vector<TableTensor> GetTableTensors(const EmbeddingTable::Impl& table,
                                         bool with_fixed) {
  std::vector<TableTensor> tensors;
  for (const TableTensorSpec& spec : TableTensorSpecs()) {
    if (spec.narrow && !table.is_narrow()) continue;
    tensors.push_back(spec.get(table));
    if (!spec.fixed || with_fixed) continue;
    tensors.back().shape[0] = 0;
    tensors.back().bytes.clear();
  }
  return tensors;
}

Status SetTableTensors(Span<const TableTensor> tensors, bool fixed,
                       EmbeddingTable* table) {
  const Span<const TableTensorSpec> specs = TableTensorSpecs();
  for (size_t i = 0; i < specs.size(); ++i) {
    const bool stored = i < tensors.size() && !tensors[i].bytes.empty();
    if (specs[i].fixed != fixed || (!stored && !fixed)) continue;
    EV_RETURN_IF_ERROR(specs[i].set(stored ? &tensors[i] : nullptr, table));
  }
  return Status::OK();
}

}  // namespace ev
