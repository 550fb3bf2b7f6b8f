// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/rows/ssd/open_tiered_rows.h"

#include <cctype>
#include <cstdlib>
#include <string>

namespace ev {
namespace {

std::string Lower(const char* text) {
  std::string lower = text == nullptr ? "" : text;
  for (char& c : lower) c = static_cast<char>(std::tolower(c));
  return lower;
}

bool CompactsInThread() {
  const std::string value = Lower(std::getenv("TF_SSDHASH_ASYNC_COMPACTION"));
  return value != "0" && value != "false" && value != "no" && value != "off";
}

// Returns this process's subdirectory of the directory given to all ranks.
std::string OfRank(const std::string& path) {
  for (const char* name : {"HOROVOD_RANK", "OMPI_COMM_WORLD_RANK"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) {
      return path + "/rank_" + std::to_string(std::atoi(value));
    }
  }
  return path;
}

}  // namespace

Status OpenTieredRows(const RowHomeOptions& options, int64_t memory_bytes,
                      const std::shared_ptr<UseRanks>& ranks,
                      std::unique_ptr<TieredRows>* rows) {
  constexpr size_t kMaxDefaultRows = size_t{1} << 30;
  if (options.default_rows.size() / options.dim >= kMaxDefaultRows) {
    return InvalidArgument(
        "rows on an SSD need fewer than 2^30 default rows, got " +
        std::to_string(options.default_rows.size() / options.dim));
  }
  TieredRowsOptions tiers;
  EV_RETURN_IF_ERROR(
      RowDirectory::Open(OfRank(options.path), options.name, &tiers.directory));
  tiers.dim = options.dim;
  tiers.default_rows = options.default_rows;
  tiers.memory_bytes = memory_bytes;
  tiers.strategy = options.tier_strategy;
  tiers.ranks = ranks;
  tiers.direct = Lower(std::getenv("TF_SSDHASH_IO_SCHEME")) == "directio";
  tiers.compacts_in_thread = CompactsInThread();
  return TieredRows::Create(tiers, rows);
}

TierStats StatsOf(const TieredRows& rows) {
  const TieredRowsStats from = rows.stats();
  TierStats stats;
  stats.memory_rows = from.memory_rows;
  stats.stored_rows = from.file_rows;
  stats.stored_bytes = from.file_bytes;
  stats.hits = from.hits;
  stats.misses = from.misses;
  stats.written_bytes = from.written_bytes;
  return stats;
}

}  // namespace ev
