// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/checkpoint/apply_delta.h"

#include <functional>
#include <memory>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/checkpoint/stored_columns.h"
#include "kernels/engine/checkpoint/stored_delta.h"
#include "kernels/engine/checkpoint/tensor_names.h"
#include "kernels/engine/embedding/table_reader.h"
#include "kernels/engine/embedding/table_tensors.h"

namespace ev {
namespace {

using PartOfKey = std::function<int64_t(int64_t key)>;

// Visits the keys with a row and the filtered keys.
Status ForEachKey(const EmbeddingTable& table,
                  const std::function<void(int64_t)>& visit) {
  std::unique_ptr<TableReader> reader;
  EV_RETURN_IF_ERROR(
      TableReader::Open(table, std::vector<std::string>(), &reader));
  const auto piece = [&](Span<const int64_t> keys) {
    for (const int64_t key : keys) visit(key);
    return Status::OK();
  };
  EV_RETURN_IF_ERROR(reader->Keys(piece));
  if (reader->num_filtered() == 0) return Status::OK();
  return reader->FilteredKeys(piece);
}

// Removes the table's rows that belong to stored parts that replace a whole
// part.
Status RemoveReplaced(const std::vector<StoredDelta>& stored,
                      const PartOfKey& part_of, const KeyFilter& wanted,
                      EmbeddingTable* table) {
  bool any = false, all = true;
  for (const StoredDelta& part : stored) any |= part.replaces();
  if (!any) return Status::OK();
  if (stored.size() > 1) {
    std::vector<int64_t> keys;
    EV_RETURN_IF_ERROR(ForEachKey(*table, [&](int64_t key) {
      const bool gone = stored[part_of(key)].replaces();
      if (gone) keys.push_back(key);
      all &= gone;
    }));
    if (!all) {
      return table->Erase(keys);
    }
  }
  // No row remains, so new keys can start with the stored default rows.
  return SetTableTensors(stored[wanted.place() % stored.size()].tensors(),
                         /*fixed=*/true, table);
}

}  // namespace

Status ApplyDelta(TensorReader* checkpoint, const std::string& name,
                  const std::vector<SlotSpec>& slots, const KeyFilter& wanted,
                  EmbeddingTable* table) {
  std::vector<std::string> parts;
  EV_RETURN_IF_ERROR(FindParts(checkpoint, name, tensor_names::kDeltaKeys,
                               "incremental checkpoint", &parts));
  const int64_t num_parts = parts.size();
  std::vector<int64_t> placement;
  EV_RETURN_IF_ERROR(ReadPlacement(checkpoint, name, num_parts, &placement));
  const PartOfKey part_of = [&](int64_t key) {
    return placement.empty() ? KeyPartition(key) % num_parts
                             : placement[FloorMod(key, placement.size())];
  };
  std::vector<StoredDelta> stored(parts.size());
  for (int64_t i = 0; i < num_parts; ++i) {
    // With as many parts as are stored, each finds its keys in its own part.
    if (placement.empty() && num_parts == wanted.num_parts &&
        i != wanted.part) {
      continue;
    }
    EV_RETURN_IF_ERROR(
        stored[i].Read(checkpoint, parts[i], slots, table->options().dim));
    stored[i].Keep([&](int64_t key) {
      // A rank may have saved rows that lookups do not find on it.
      return wanted.Takes(key) && (placement.empty() || part_of(key) == i);
    });
    EV_RETURN_IF_ERROR(stored[i].CheckKeys(*table));
  }
  const Status status = CatchBadAlloc([&] {
    EV_RETURN_IF_ERROR(RemoveReplaced(stored, part_of, wanted, table));
    for (const StoredDelta& part : stored) {
      EV_RETURN_IF_ERROR(part.Apply(table));
    }
    return SetTableTensors(stored[wanted.place() % stored.size()].tensors(),
                           /*fixed=*/false, table);
  });
  if (status.ok()) return status;
  // A table with half a delta must not be used.
  table->Uninitialize();
  return Status(status.code(),
                status.message() + "; table '" + table->options().name +
                    "' is uninitialized now, since it may have a part of the "
                    "changes: restore a full checkpoint");
}

}  // namespace ev
