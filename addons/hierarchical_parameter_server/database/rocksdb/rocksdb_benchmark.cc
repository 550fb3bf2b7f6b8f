// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares a RocksDB table with the library's multi-get and write in a tight
// loop: same store, same keys. The library is timed without copying the rows;
// both flush the log after a write.
//
//   rocksdb_benchmark FOLDER [ROWS] [WIDTH] [SECONDS]

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "addons/hierarchical_parameter_server/database/rocksdb/rocksdb_store.h"
#include "addons/hierarchical_parameter_server/database/testing/side_by_side.h"

namespace hps {
namespace {

void Check(const ev::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}

int Run(const char* folder, int64_t num_rows, int width, double seconds) {
  RocksDbOptions options;
  options.path = folder;
  std::shared_ptr<RocksDbStore> store;
  Check(RocksDbStore::Open(options, &store));
  const RocksDbLibrary& r = store->library();
  RocksDbLibrary::Family* family = nullptr;
  Check(store->CreateFamily("hps_et.m.t", &family));
  RocksDbTable table(store, family, "hps_et.m.t", width);
  ev::Serial serial;
  std::vector<int64_t> all(num_rows);
  for (int64_t i = 0; i < num_rows; ++i) all[i] = i;
  {
    const std::vector<float> values(num_rows * width, 0.5f);
    Check(table.Insert(all, values.data(), &serial));
  }
  std::mt19937_64 random(1);
  for (const int64_t batch : {32, 256, 4096, 65536}) {
    std::vector<int64_t> keys(batch);
    for (int64_t& key : keys) {
      key = static_cast<int64_t>(random() % num_rows);
    }
    std::vector<float> rows(batch * width, 0.5f);
    std::vector<int64_t> missing(batch);
    std::vector<const char*> texts(batch);
    const std::vector<size_t> sizes(batch, sizeof(int64_t));
    for (int64_t i = 0; i < batch; ++i) {
      texts[i] = reinterpret_cast<const char*>(&keys[i]);
    }
    std::vector<RocksDbLibrary::Pinned*> values(batch);
    std::vector<char*> errors(batch);
    if (r.batched_multi_get == nullptr) {
      std::fprintf(stderr, "this RocksDB has no batched multi-get\n");
      return 1;
    }
    SideBySide(
        "RocksDB, fetch", batch, seconds,
        [&] {
          int64_t num_missing = 0;
          Check(table.Fetch(keys, Positions::All(batch), rows.data(),
                            missing.data(), &num_missing, &serial));
          if (num_missing != 0) std::exit(1);
        },
        [&] {
          r.batched_multi_get(store->db(), store->reads(), family, batch,
                              texts.data(), sizes.data(), values.data(),
                              errors.data(), false);
          for (RocksDbLibrary::Pinned* value : values) r.pinned_destroy(value);
        });
    SideBySide(
        "RocksDB, insert", batch, seconds,
        [&] { Check(table.Insert(keys, rows.data(), &serial)); },
        [&] {
          RocksDbLibrary::Batch* const writes = r.batch_create();
          for (int64_t i = 0; i < batch; ++i) {
            r.batch_put(writes, family, texts[i], sizeof(int64_t),
                        reinterpret_cast<const char*>(&rows[i * width]),
                        sizeof(float) * width);
          }
          char* error = nullptr;
          r.write(store->db(), store->writes(), writes, &error);
          r.batch_destroy(writes);
          Check(store->Take(error));
          Check(store->Sync());
        });
  }
  return 0;
}

}  // namespace
}  // namespace hps

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "expected a folder that is not there yet\n");
    return 1;
  }
  return hps::Run(argv[1], argc > 2 ? std::atoll(argv[2]) : 200000,
                  argc > 3 ? std::atoi(argv[3]) : 128,
                  argc > 4 ? std::atof(argv[4]) : 2.0);
}
