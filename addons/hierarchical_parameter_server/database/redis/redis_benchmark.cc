// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Compares a Redis table with hiredis in a tight loop: same server, same
// hashes, same keys; commands of all partitions are sent before the first reply
// is read. hiredis is timed without copying the rows.
//
//   redis_benchmark [ROWS] [WIDTH] [SECONDS]

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/opened_library.h"
#include "addons/hierarchical_parameter_server/database/redis/redis_database.h"
#include "addons/hierarchical_parameter_server/database/redis/redis_table.h"
#include "addons/hierarchical_parameter_server/database/testing/redis_server.h"
#include "addons/hierarchical_parameter_server/database/testing/side_by_side.h"
#include "kernels/engine/base/hash.h"

namespace hps {
namespace {

struct Hiredis {
  struct Context;
  Context* (*connect)(const char* host, int port);
  int (*append)(Context* context, int count, const char** words,
                const size_t* sizes);
  int (*get_reply)(Context* context, void** reply);
  void (*free_reply)(void* reply);
  void (*free_context)(Context* context);
};

void Check(const ev::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  std::exit(1);
}

// Commands of one batch, one per partition that has keys of it.
class Commands {
 public:
  // rows: null for HMGET, otherwise for HSET.
  Commands(const std::string& tag, int num_partitions,
           const std::vector<int64_t>& keys, const float* rows, int width)
      : keys_(keys) {
    for (int p = 0; p < num_partitions; ++p) {
      hashes_.push_back(PartitionHash(tag, p, 'v'));
    }
    words_.resize(num_partitions);
    sizes_.resize(num_partitions);
    for (size_t i = 0; i < keys_.size(); ++i) {
      const size_t p = ev::MixKey(keys_[i]) % num_partitions;
      if (words_[p].empty()) {
        Add(p, rows == nullptr ? "HMGET" : "HSET", rows == nullptr ? 5 : 4);
        Add(p, hashes_[p].data(), hashes_[p].size());
      }
      Add(p, reinterpret_cast<const char*>(&keys_[i]), 8);
      if (rows != nullptr) {
        Add(p, reinterpret_cast<const char*>(rows + i * width), width * 4);
      }
    }
  }
  void Run(const Hiredis& h, Hiredis::Context* context) {
    int num = 0;
    for (size_t p = 0; p < words_.size(); ++p) {
      if (words_[p].empty()) continue;
      ++num;
      h.append(context, static_cast<int>(words_[p].size()), words_[p].data(),
               sizes_[p].data());
    }
    for (; num > 0; --num) {
      void* reply = nullptr;
      if (h.get_reply(context, &reply) != 0) std::exit(1);
      h.free_reply(reply);
    }
  }

 private:
  void Add(size_t partition, const char* word, size_t size) {
    words_[partition].push_back(word);
    sizes_[partition].push_back(size);
  }

  const std::vector<int64_t> keys_;
  std::vector<std::string> hashes_;
  std::vector<std::vector<const char*>> words_;
  std::vector<std::vector<size_t>> sizes_;
};

int Run(int64_t num_rows, int width, double seconds) {
  const std::string reason = NoRedisReason();
  if (!reason.empty()) {
    std::fprintf(stderr, "%s\n", reason.c_str());
    return 1;
  }
  Hiredis h;
  OpenedLibrary library("this program", "hiredis (package libhiredis-dev)",
                        "HPS_HIREDIS_LIBRARY",
                        {"libhiredis.so", "libhiredis.so.0.14",
                         "libhiredis.so.1.0.0", "libhiredis.so.1.1.0"});
  library.Find("redisConnect", &h.connect);
  library.Find("redisAppendCommandArgv", &h.append);
  library.Find("redisGetReply", &h.get_reply);
  library.Find("freeReplyObject", &h.free_reply);
  library.Find("redisFree", &h.free_context);
  Check(library.status());

  RedisServer server;
  if (!server.Start()) return 1;
  RedisOptions options;
  options.addresses = {server.address()};
  options.timeout_ms = 60000;
  std::unique_ptr<Database> database;
  Check(RedisDatabase::Open(options, &database));
  std::shared_ptr<Table> table;
  const std::string tag = "hps_et.m.t";
  Check(database->OpenTable(tag, width, &table));
  ev::Serial serial;
  std::vector<int64_t> all(num_rows);
  for (int64_t i = 0; i < num_rows; ++i) all[i] = i;
  std::vector<float> values(num_rows * width, 0.5f);
  Check(table->Insert(all, values.data(), &serial));
  Hiredis::Context* const context = h.connect("127.0.0.1", server.port());

  std::mt19937_64 random(1);
  for (const int64_t batch : {32, 256, 4096, 65536}) {
    std::vector<int64_t> keys(batch);
    for (int64_t& key : keys) {
      key = static_cast<int64_t>(random() % num_rows);
    }
    std::vector<float> rows(batch * width, 0.5f);
    std::vector<int64_t> missing(batch);
    Commands fetch(tag, options.num_partitions, keys, nullptr, width);
    SideBySide(
        "Redis, fetch", batch, seconds,
        [&] {
          int64_t num_missing = 0;
          Check(table->Fetch(keys, Positions::All(batch), rows.data(),
                             missing.data(), &num_missing, &serial));
          if (num_missing != 0) std::exit(1);
        },
        [&] { fetch.Run(h, context); });
    Commands store(tag, options.num_partitions, keys, rows.data(), width);
    SideBySide(
        "Redis, insert", batch, seconds,
        [&] { Check(table->Insert(keys, rows.data(), &serial)); },
        [&] { store.Run(h, context); });
  }
  h.free_context(context);
  return 0;
}

}  // namespace
}  // namespace hps

int main(int argc, char** argv) {
  return hps::Run(argc > 1 ? std::atoll(argv[1]) : 200000,
                  argc > 2 ? std::atoi(argv[2]) : 128,
                  argc > 3 ? std::atof(argv[3]) : 2.0);
}
