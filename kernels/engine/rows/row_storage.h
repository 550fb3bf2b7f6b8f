// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Which homes of rows (row_home.h) there are, and what some are told.

#ifndef KERNELS_ENGINE_ROWS_ROW_STORAGE_H_
#define KERNELS_ENGINE_ROWS_ROW_STORAGE_H_

#include <cstdint>
#include <string>

#include "kernels/engine/policy/cache_strategy.h"

namespace ev {

// Where the rows are: value and slots. kAuto: in a GPU's memory if Initialize
// finds one that it can use, else in CPU memory.
enum class RowStorage {
  kDram,
  kHbm,
  kAuto,
  kDramSsd,  // the hot ones in CPU memory, all that do not fit there on an SSD
  kHbmDram,  // the hot ones in a GPU's memory, the others in CPU memory
};

// What ops and Python call them.
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

// False, and *storage is as it was: none has this name.
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
  std::string path;          // a directory, of this table alone
  int64_t memory_bytes = 0;  // of rows in memory; one row at least
  CacheStrategy strategy = CacheStrategy::kLfu;
};
inline bool operator==(const SsdOptions& a, const SsdOptions& b) {
  return a.path == b.path && a.memory_bytes == b.memory_bytes &&
         a.strategy == b.strategy;
}

// For kHbmDram.
struct HbmDramOptions {
  int64_t device_bytes = 0;  // of rows in the GPU's memory
  CacheStrategy strategy = CacheStrategy::kLfu;
};
inline bool operator==(const HbmDramOptions& a, const HbmDramOptions& b) {
  return a.device_bytes == b.device_bytes && a.strategy == b.strategy;
}

// Where the rows of a table are to be, and what its home is told.
struct RowStorageOptions {
  // kHbm, kHbmDram: FailedPrecondition without GPU code, driver or GPU, and
  // InvalidArgument when device_bytes are fewer than 64 rows take. kDramSsd:
  // FailedPrecondition when the directory cannot be used.
  RowStorage storage = RowStorage::kDram;
  SsdOptions ssd;
  HbmDramOptions hbm_dram;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_ROW_STORAGE_H_
