// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The kinds of homes of rows (row_home.h), and their options.

#ifndef KERNELS_ENGINE_ROWS_ROW_STORAGE_H_
#define KERNELS_ENGINE_ROWS_ROW_STORAGE_H_

#include <cstdint>
#include <string>

#include "kernels/engine/policy/cache_strategy.h"

namespace ev {

// The memory of rows: value and slots. kAuto: GPU memory if Initialize finds a
// usable GPU, else CPU memory.
enum class RowStorage {
  kDram,
  kHbm,
  kAuto,
  kDramSsd,  // hot rows in CPU memory, the others on an SSD
  kHbmDram,  // hot rows in GPU memory, the others in CPU memory
};

// Names in ops and in Python.
struct RowStorageEntry {
  RowStorage storage;
  const char* name;
};
constexpr RowStorageEntry kRowStorages[] = {{RowStorage::kDram, "dram"},
                                            {RowStorage::kHbm, "hbm"},
                                            {RowStorage::kAuto, "auto"},
                                            {RowStorage::kDramSsd, "dram_ssd"},
                                            {RowStorage::kHbmDram, "hbm_dram"}};

inline const char* RowStorageName(RowStorage storage) {
  for (const RowStorageEntry& entry : kRowStorages) {
    if (entry.storage == storage) return entry.name;
  }
  return "unknown";
}

// Returns false, and leaves *storage unchanged, if no storage has this name.
inline bool FindRowStorage(const std::string& name, RowStorage* storage) {
  for (const RowStorageEntry& entry : kRowStorages) {
    if (name != entry.name) continue;
    *storage = entry.storage;
    return true;
  }
  return false;
}

// For kDramSsd.
struct SsdOptions {
  std::string path;          // a directory for this table alone
  int64_t memory_bytes = 0;  // for rows in memory; at least one row
  CacheStrategy strategy = CacheStrategy::kLfu;
};
inline bool operator==(const SsdOptions& a, const SsdOptions& b) {
  return a.path == b.path && a.memory_bytes == b.memory_bytes &&
         a.strategy == b.strategy;
}

// For kHbmDram.
struct HbmDramOptions {
  int64_t device_bytes = 0;  // for rows in GPU memory
  CacheStrategy strategy = CacheStrategy::kLfu;
};
inline bool operator==(const HbmDramOptions& a, const HbmDramOptions& b) {
  return a.device_bytes == b.device_bytes && a.strategy == b.strategy;
}

// The storage of a table's rows and the options of its home.
struct RowStorageOptions {
  // kHbm, kHbmDram: FailedPrecondition without GPU code, driver or GPU;
  // InvalidArgument if device_bytes hold fewer than 64 rows. kDramSsd:
  // FailedPrecondition if the directory cannot be used.
  RowStorage storage = RowStorage::kDram;
  SsdOptions ssd;
  HbmDramOptions hbm_dram;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_ROW_STORAGE_H_
