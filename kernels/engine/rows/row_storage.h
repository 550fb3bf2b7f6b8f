// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The kinds of homes of rows (row_home.h), and their options.

#ifndef KERNELS_ENGINE_ROWS_ROW_STORAGE_H_
#define KERNELS_ENGINE_ROWS_ROW_STORAGE_H_

#include <cstdint>
#include <string>

#include "kernels/engine/base/float_type.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/policy/cache_strategy.h"

namespace ev {

// The memory of rows: value and slots. kAuto: GPU memory if Initialize finds a
// usable GPU, else CPU memory.
enum class RowStorage {
  kDram,
  kHbm,
  kAuto,
  kDramSsd,     // hot rows in CPU memory, the others on an SSD
  kHbmDram,     // hot rows in GPU memory, the others in CPU memory
  kHbmDramSsd,  // hot rows in GPU memory, the others like kDramSsd
};

// Names in ops and in Python (storages.py).
struct RowStorageEntry {
  RowStorage storage;
  const char* name;
};
constexpr RowStorageEntry kRowStorages[] = {
    {RowStorage::kDram, "dram"},
    {RowStorage::kHbm, "hbm"},
    {RowStorage::kAuto, "auto"},
    {RowStorage::kDramSsd, "dram_ssd"},
    {RowStorage::kHbmDram, "hbm_dram"},
    {RowStorage::kHbmDramSsd, "hbm_dram_ssd"}};

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

// Returns the op attribute "storage: {'dram', 'hbm', ...} = 'dram'".
inline std::string RowStorageAttr() {
  std::string names;
  for (const RowStorageEntry& entry : kRowStorages) {
    names += (names.empty() ? "'" : ", '") + std::string(entry.name) + "'";
  }
  return "storage: {" + names + "} = 'dram'";
}

inline const char* FloatTypeName(FloatType type) {
  return type == FloatType::kFloat32   ? "float32"
         : type == FloatType::kFloat16 ? "float16"
                                       : "bfloat16";
}

// The storage of a table's rows, and the options of all storages; a storage
// ignores those that it does not need.
struct RowStorageOptions {
  RowStorage storage = RowStorage::kDram;
  // kDramSsd, kHbmDramSsd: a directory for this table alone. With several ranks
  // (HOROVOD_RANK or OMPI_COMM_WORLD_RANK is set) each uses the subdirectory
  // rank_<k>.
  std::string path;
  // Bytes for the rows in the fastest memory. kDramSsd: at least one row.
  // kHbmDram, kHbmDramSsd: at least 64 rows without slots; with slots the
  // device still holds at least 64 rows.
  int64_t memory_bytes = 0;
  // kHbmDramSsd: bytes for the rows in CPU memory; at least one row.
  int64_t second_memory_bytes = 0;
  // Type of the numbers of the values; slots are float32.
  FloatType value_type = FloatType::kFloat32;
  // Decides which rows are in the faster of two memories.
  CacheStrategy tier_strategy = CacheStrategy::kLfu;
};

// Arguments of the function that creates a home of rows.
struct RowHomeOptions : RowStorageOptions {
  std::string name;  // of the table; distinguishes its files on an SSD
  int64_t dim = 0;   // >= 1
  // [R, dim]; may include rows that no key uses. Must outlive the home.
  Span<const float> default_rows;
  bool with_meta = false;  // whether each handle has a RowMeta
  // For kHbm and kHbmDram: whether to keep pending counters (gpu_compute.h).
  // Ignored by other homes.
  bool keeps_counters = false;
};

}  // namespace ev

#endif  // KERNELS_ENGINE_ROWS_ROW_STORAGE_H_
