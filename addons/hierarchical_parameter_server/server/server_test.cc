// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <stdlib.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "addons/hierarchical_parameter_server/server/api.h"
#include "addons/hierarchical_parameter_server/server/parameter_server.h"
#include "addons/hierarchical_parameter_server/server/registry.h"
#include "gtest/gtest.h"
#include "kernels/engine/testing/thread_pool.h"

namespace hps {
namespace {

float Value(int64_t key, int version, int column) {
  return static_cast<float>(static_cast<uint64_t>(key) % 9973) +
         0.5f * version + 16384.0f * (column % 5);
}

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string made = ::testing::TempDir() + "/serverXXXXXX";
    ASSERT_NE(mkdtemp(&made[0]), nullptr);
    folder_ = made;
    unsetenv(kConfigVariable);
    Stop();
  }
  void TearDown() override { Stop(); }

  void WriteTable(const std::string& name, const std::vector<int64_t>& keys,
                  int width, int version) {
    const std::string folder = folder_ + "/" + name;
    mkdir(folder.c_str(), 0755);
    std::vector<float> rows;
    for (const int64_t key : keys) {
      for (int c = 0; c < width; ++c) rows.push_back(Value(key, version, c));
    }
    WriteFile(name + "/key", keys.data(), keys.size() * 8);
    WriteFile(name + "/emb_vector", rows.data(), rows.size() * 4);
  }
  // Creates a new file under the name, since readers may have mapped the old
  // one.
  void WriteFile(const std::string& name, const void* data, size_t bytes) {
    const std::string path = folder_ + "/" + name;
    remove(path.c_str());
    std::ofstream(path, std::ios::binary)
        .write(static_cast<const char*>(data), bytes);
  }
  static std::string Model(const std::string& name, const std::string& files,
                           const std::string& widths,
                           const std::string& per_sample,
                           const std::string& defaults) {
    return "{\"model\": \"" + name + "\", \"sparse_files\": [" + files +
           "], \"embedding_vecsize_per_table\": [" + widths +
           "], \"maxnum_catfeature_query_per_table_per_sample\": [" +
           per_sample + "], \"default_value_for_each_table\": [" + defaults +
           "], \"deployed_device_list\": [0], \"max_batch_size\": 1024}";
  }
  // Two models with three tables of different widths.
  std::string Models() {
    return "\"models\": [" +
           Model("m", "\"a\", \"b\"", "4, 8", "2, 3", "0.5, 1") + ", " +
           Model("n", "\"c\"", "3", "100", "-1") + "]";
  }
  void WriteModels(int version) {
    WriteTable("a", Range(0, 1000), 4, version);
    WriteTable("b", Range(500, 2000), 8, version);
    WriteTable("c", {INT64_MAX, INT64_MIN, -1, 0, 7}, 3, version);
  }
  std::string WriteConfig(const std::string& text,
                          const std::string& name = "ps.json") {
    WriteFile(name, text.data(), text.size());
    return folder_ + "/" + name;
  }
  std::unique_ptr<ParameterServer> Serve(const std::string& more) {
    Config config;
    std::unique_ptr<ParameterServer> server;
    ev::Status status = ParseConfig("{" + Models() + more + "}", "ps.json",
                                    folder_, DatabaseTypes(), &config);
    EXPECT_TRUE(status.ok()) << status.message();
    status = ParameterServer::Make(config, &serial_, &server);
    EXPECT_TRUE(status.ok()) << status.message();
    return server;
  }
  static std::vector<int64_t> Range(int64_t first, int64_t count) {
    std::vector<int64_t> keys;
    for (int64_t i = 0; i < count; ++i) keys.push_back(first + i);
    return keys;
  }
  std::vector<float> Lookup(ParameterServer* server, const std::string& model,
                            int table_id, int width,
                            const std::vector<int64_t>& keys) {
    std::shared_ptr<ServedTable> table;
    ev::Status status = server->Find(model, table_id, width, &table);
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<float> rows(keys.size() * width, -7.0f);
    status =
        table->Lookup(ev::Span<const int64_t>(keys), rows.data(), &serial_);
    EXPECT_TRUE(status.ok()) << status.message();
    return rows;
  }
  // Returns this version's rows for keys in [first, last), and `other` for the
  // rest.
  static std::vector<float> Expected(const std::vector<int64_t>& keys,
                                     int64_t first, int64_t last, int width,
                                     int version, float other) {
    std::vector<float> rows;
    for (const int64_t key : keys) {
      for (int c = 0; c < width; ++c) {
        rows.push_back(key >= first && key < last ? Value(key, version, c)
                                                  : other);
      }
    }
    return rows;
  }

  std::string folder_;
  ev::Serial serial_;
};

const char* const kTiers[] = {
    "",
    ", \"volatile_db\": {\"type\": \"hash_map\", \"num_partitions\": 3}",
    ", \"volatile_db\": {\"type\": \"multi_process_hash_map\"}",
    ", \"volatile_db\": {\"type\": \"none\"}, "
    "\"persistent_db\": {\"type\": \"mapped_files\"}",
    ", \"volatile_db\": {\"initial_cache_rate\": 0.3}, "
    "\"persistent_db\": {\"type\": \"mapped_files\"}",
    ", \"volatile_db\": {\"initial_cache_rate\": 0.1, \"num_partitions\": 2, "
    "\"cache_missed_embeddings\": true, \"overflow_margin\": 300, "
    "\"overflow_policy\": \"evict_oldest\"}, "
    "\"persistent_db\": {\"type\": \"mapped_files\"}",
};

// Acceptance tests 3 and 5: two models, three tables of different widths;
// unknown, extreme and repeated keys; with every combination of tiers.
TEST_F(ServerTest, EveryTierGivesTheSameRows) {
  WriteModels(1);
  for (const char* const tiers : kTiers) {
    SCOPED_TRACE(tiers);
    const auto server = Serve(tiers);
    for (int round = 0; round < 3; ++round) {
      const std::vector<int64_t> keys = {5, 999, 1000, -1, 5, INT64_MAX, 0};
      EXPECT_EQ(Lookup(server.get(), "m", 0, 4, keys),
                Expected(keys, 0, 1000, 4, 1, 0.5f));
      const std::vector<int64_t> many = Range(0, 2800);
      EXPECT_EQ(Lookup(server.get(), "m", 1, 8, many),
                Expected(many, 500, 2500, 8, 1, 1.0f));
      const std::vector<int64_t> extreme = {INT64_MIN,     7, INT64_MAX, 1, -1,
                                            INT64_MAX - 1, 0};
      std::vector<float> rows;
      for (const int64_t key : extreme) {
        for (int c = 0; c < 3; ++c) {
          const bool has_row = key != 1 && key != INT64_MAX - 1;
          rows.push_back(has_row ? Value(key, 1, c) : -1.0f);
        }
      }
      EXPECT_EQ(Lookup(server.get(), "n", 0, 3, extreme), rows);
      if (server->elevator() != nullptr) server->elevator()->Drain();
    }
    std::shared_ptr<ServedTable> table;
    ASSERT_TRUE(server->Find("m", 1, 8, &table).ok());
    const Served served = table->served();
    EXPECT_EQ(served.lookups, 3);
    EXPECT_EQ(served.keys, 3 * 2800);
    EXPECT_EQ(served.defaults, 3 * 800);
    EXPECT_EQ(served.from_volatile + served.from_persistent, 3 * 2000);
    const std::string json = server->MetricsJson();
    EXPECT_NE(json.find("\"defaults\": 2400"), std::string::npos) << json;
  }
}

TEST_F(ServerTest, RowsFoundInThePersistentTierAreElevated) {
  WriteModels(1);
  const auto server = Serve(
      ", \"volatile_db\": {\"initial_cache_rate\": 0, "
      "\"cache_missed_embeddings\": true}, "
      "\"persistent_db\": {\"type\": \"mapped_files\"}");
  const std::vector<int64_t> keys = Range(900, 200);
  Lookup(server.get(), "m", 0, 4, keys);
  server->elevator()->Drain();
  std::shared_ptr<ServedTable> table;
  ASSERT_TRUE(server->Find("m", 0, 4, &table).ok());
  int64_t rows = -1;
  ASSERT_TRUE(table->above()->Count(&rows).ok());
  EXPECT_EQ(rows, 100);  // keys that no tier has are not stored
  Lookup(server.get(), "m", 0, 4, keys);
  EXPECT_EQ(table->served().from_volatile, 100);
  EXPECT_EQ(table->served().from_persistent, 100);
}

TEST_F(ServerTest, ALayersModelAndTableMustExist) {
  WriteModels(1);
  const auto server = Serve("");
  std::shared_ptr<ServedTable> table;
  ev::Status status = server->Find("x", 0, 4, &table);
  EXPECT_EQ(status.code(), ev::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("models 'm', 'n', got 'x'"),
            std::string::npos)
      << status.message();
  status = server->Find("m", 2, 4, &table);
  EXPECT_NE(status.message().find("tables 0 to 1, got 2"), std::string::npos);
  status = server->Find("m", 1, 4, &table);
  EXPECT_NE(status.message().find("rows of 8 floats, got 4"),
            std::string::npos);
  ASSERT_TRUE(server->Find("m", 0, 4, &table).ok());
  const std::vector<int64_t> keys = Range(0, 2049);
  std::vector<float> rows(keys.size() * 4);
  status = table->Lookup(ev::Span<const int64_t>(keys), rows.data(), &serial_);
  EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument);
  EXPECT_NE(status.message().find("at most 2048 ids"), std::string::npos);
  EXPECT_NE(status.message().find("got 2049"), std::string::npos);
  EXPECT_EQ(table->served().failed, 1);
}

TEST_F(ServerTest, ModelsComeAreReloadedAndGoWhileLookupsRun) {
  WriteModels(1);
  for (const char* const tiers : {kTiers[0], kTiers[2]}) {
    WriteModels(1);
    const auto server = Serve(tiers);
    std::atomic<bool> stop{false};
    std::atomic<int> wrong{0}, reads{0};
    const std::vector<int64_t> keys = Range(0, 1000);
    std::thread reader([&] {
      ev::Serial serial;
      std::vector<float> rows(keys.size() * 4);
      while (!stop) {
        std::shared_ptr<ServedTable> table;
        if (!server->Find("m", 0, 4, &table).ok() ||
            !table->Lookup(ev::Span<const int64_t>(keys), rows.data(), &serial)
                 .ok()) {
          ++wrong;
          continue;
        }
        // Each row has one version or the other.
        for (int64_t k = 0; k < 1000; ++k) {
          const int version = rows[k * 4] == Value(k, 1, 0) ? 1 : 2;
          for (int c = 0; c < 4; ++c) {
            wrong += rows[k * 4 + c] != Value(k, version, c);
          }
        }
        ++reads;
      }
    });
    for (int round = 0; round < 4; ++round) {
      WriteModels(1 + round % 2);
      ASSERT_TRUE(server->ReloadModel("m", &serial_).ok());
      EXPECT_EQ(Lookup(server.get(), "m", 0, 4, keys),
                Expected(keys, 0, 1000, 4, 1 + round % 2, 0));
    }
    // Files of the wrong size leave the model unchanged.
    WriteFile("b/key", "12345678", 8);
    const ev::Status status = server->ReloadModel("m", &serial_);
    EXPECT_NE(status.message().find("model 'm', table 'sparse_embedding2'"),
              std::string::npos)
        << status.message();
    EXPECT_EQ(Lookup(server.get(), "m", 0, 4, keys),
              Expected(keys, 0, 1000, 4, 2, 0));
    ModelConfig added = server->config().models[1];
    EXPECT_EQ(server->AddModel(added, &serial_).code(),
              ev::StatusCode::kAlreadyExists);
    added.name = "added";
    ASSERT_TRUE(server->AddModel(added, &serial_).ok());
    EXPECT_EQ(Lookup(server.get(), "added", 0, 3, {7})[0], Value(7, 2, 0));
    while (reads.load() < 3) std::this_thread::yield();
    stop = true;
    reader.join();
    EXPECT_EQ(wrong.load(), 0);
    std::shared_ptr<ServedTable> held;
    ASSERT_TRUE(server->Find("added", 0, 3, &held).ok());
    ASSERT_TRUE(server->RemoveModel("added").ok());
    EXPECT_EQ(server->RemoveModel("added").code(), ev::StatusCode::kNotFound);
    std::shared_ptr<ServedTable> table;
    EXPECT_FALSE(server->Find("added", 0, 3, &table).ok());
    // A lookup that already has the table can finish.
    float row[3];
    const std::vector<int64_t> seven = {7};
    ASSERT_TRUE(
        held->Lookup(ev::Span<const int64_t>(seven), row, &serial_).ok());
    EXPECT_EQ(row[0], Value(7, 2, 0));
  }
}

// Acceptance test 10, in host memory: 1 % of the rows change while many threads
// look up. No row is torn, and pushed rows are visible to the next lookup.
TEST_F(ServerTest, PushesRowsWhileServing) {
  WriteModels(1);
  for (const char* const tiers : kTiers) {
    SCOPED_TRACE(tiers);
    const auto server = Serve(tiers);
    std::atomic<bool> stop{false};
    std::atomic<int> torn{0}, failed{0};
    const std::vector<int64_t> keys = Range(500, 2000);
    std::vector<std::thread> readers;
    for (int r = 0; r < 2; ++r) {
      readers.emplace_back([&] {
        ev::Serial serial;
        std::vector<float> rows(keys.size() * 8);
        while (!stop) {
          std::shared_ptr<ServedTable> table;
          if (!server->Find("m", 1, 8, &table).ok() ||
              !table
                   ->Lookup(ev::Span<const int64_t>(keys), rows.data(), &serial)
                   .ok()) {
            ++failed;
            continue;
          }
          for (size_t k = 0; k < keys.size(); ++k) {
            const int version = static_cast<int>(
                (rows[k * 8] - Value(keys[k], 0, 0)) * 2 + 0.5f);
            for (int c = 0; c < 8; ++c) {
              torn += rows[k * 8 + c] != Value(keys[k], version, c);
            }
          }
        }
      });
    }
    for (int version = 2; version < 40; ++version) {
      const std::vector<int64_t> pushed = Range(500 + version * 20, 20);
      std::vector<float> rows;
      for (const int64_t key : pushed) {
        for (int c = 0; c < 8; ++c) rows.push_back(Value(key, version, c));
      }
      ASSERT_TRUE(server
                      ->Update("hps_et.m.sparse_embedding2", 8, pushed,
                               rows.data(), true, true)
                      .ok());
      EXPECT_EQ(Lookup(server.get(), "m", 1, 8, pushed), rows);
    }
    stop = true;
    for (std::thread& reader : readers) reader.join();
    EXPECT_EQ(torn.load(), 0);
    EXPECT_EQ(failed.load(), 0);
    const std::vector<int64_t> one = {1};
    const float row[8] = {0};
    EXPECT_EQ(server->Update("hps_et.m.x", 8, one, row, true, true).code(),
              ev::StatusCode::kNotFound);
    EXPECT_NE(
        server->Update("hps_et.m.sparse_embedding1", 8, one, row, true, true)
            .message()
            .find("rows of 4 floats, got an update with 8"),
        std::string::npos);
  }
}

TEST_F(ServerTest, KeysOf32Bits) {
  WriteTable("a", {-1, 5, INT64_C(4294967294)}, 2, 1);
  Config config;
  ASSERT_TRUE(ParseConfig("{\"supportlonglong\": false, \"models\": [" +
                              Model("m", "\"a\"", "2", "4", "0") + "]}",
                          "ps.json", folder_, DatabaseTypes(), &config)
                  .ok());
  std::unique_ptr<ParameterServer> server;
  ASSERT_TRUE(ParameterServer::Make(config, &serial_, &server).ok());
  std::shared_ptr<ServedTable> table;
  ASSERT_TRUE(server->Find("m", 0, 2, &table).ok());
  const std::vector<int32_t> keys = {-1, 5, -2, INT32_MAX, INT32_MIN};
  float rows[10];
  ASSERT_TRUE(
      table->Lookup(ev::Span<const int32_t>(keys), rows, &serial_).ok());
  EXPECT_EQ(rows[0], Value(-1, 1, 0));
  EXPECT_EQ(rows[2], Value(5, 1, 0));
  EXPECT_EQ(rows[4], Value(INT64_C(4294967294), 1, 0));
  EXPECT_EQ(rows[6], 0.0f);
  EXPECT_EQ(rows[8], 0.0f);
  WriteTable("a", {1, INT64_C(1) << 40}, 2, 1);
  const ev::Status status = ParameterServer::Make(config, &serial_, &server);
  EXPECT_NE(status.message().find("1099511627776 of row 1"), std::string::npos)
      << status.message();
}

// Acceptance test 9: many concurrent callers, no wrong row.
TEST_F(ServerTest, ServesManyCallers) {
  WriteModels(1);
  const auto server = Serve("");
  std::shared_ptr<ServedTable> table;
  ASSERT_TRUE(server->Find("m", 1, 8, &table).ok());
  for (const int callers : {1, 4, 16, 64}) {
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < callers; ++t) {
      threads.emplace_back([&, t] {
        ev::Serial serial;
        for (int round = 0; round < 10; ++round) {
          const std::vector<int64_t> keys = Range(500 + t * 10 + round, 300);
          std::vector<float> rows(keys.size() * 8);
          if (!table
                   ->Lookup(ev::Span<const int64_t>(keys), rows.data(), &serial)
                   .ok() ||
              rows != Expected(keys, 500, 2500, 8, 1, 1.0f)) {
            ++wrong;
          }
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong.load(), 0) << callers;
  }
}

TEST_F(ServerTest, ALayerOfARemovedModelGetsAnError) {
  WriteModels(1);
  StartOptions options;
  options.config_file = WriteConfig("{" + Models() + "}");
  options.global_batch_size = 1024;
  bool started = false;
  ASSERT_TRUE(Start(options, &serial_, &started).ok());
  LayerTable layer("n", 0, 3);
  const std::vector<int64_t> keys = {7};
  std::vector<float> rows(3);
  ASSERT_TRUE(
      layer.Lookup(ev::Span<const int64_t>(keys), rows.data(), &serial_).ok());
  // Without a command, after which layers search for their models again.
  ASSERT_TRUE(RunningServer()->RemoveModel("n").ok());
  EXPECT_EQ(
      layer.Lookup(ev::Span<const int64_t>(keys), rows.data(), &serial_).code(),
      ev::StatusCode::kNotFound);
}

// Acceptance test 6: explicit start, then implicit; a conflicting second one
// fails.
TEST_F(ServerTest, RunsOneConfiguration) {
  WriteModels(1);
  StartOptions options;
  bool started = true;
  EXPECT_EQ(Start(options, &serial_, &started).code(),
            ev::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(started);
  options.config_file = WriteConfig("{" + Models() + "}");
  options.global_batch_size = 1024;
  const uint64_t generation = Generation();
  ev::Status status = Start(options, &serial_, &started);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(started);
  EXPECT_NE(Generation(), generation);
  const auto server = RunningServer();
  ASSERT_TRUE(Start(options, &serial_, &started).ok());
  EXPECT_FALSE(started);
  ASSERT_TRUE(Start(StartOptions(), &serial_, &started).ok());
  EXPECT_EQ(RunningServer(), server);
  // The same file under another path is the same configuration.
  StartOptions same = options;
  same.config_file = folder_ + "/./a/../ps.json";
  EXPECT_TRUE(Start(same, &serial_, &started).ok());
  // Another file is not.
  StartOptions other = options;
  other.config_file = WriteConfig("{" + Models() + "}", "other.json");
  status = Start(other, &serial_, &started);
  EXPECT_EQ(status.code(), ev::StatusCode::kFailedPrecondition);
  for (const char* part : {"/ps.json'", "/other.json'"}) {
    EXPECT_NE(status.message().find(part), std::string::npos)
        << status.message();
  }
  EXPECT_EQ(RunningServer(), server);
  Stop();
  EXPECT_EQ(RunningServer(), nullptr);
  EXPECT_TRUE(Start(other, &serial_, &started).ok());
}

// Acceptance test 7, first half: the environment overrides the graph.
TEST_F(ServerTest, EnvironmentNamesTheConfiguration) {
  WriteModels(1);
  const std::string path = WriteConfig("{" + Models() + "}");
  setenv(kConfigVariable, path.c_str(), 1);
  StartOptions options;
  options.config_file = "not/there.json";
  bool started = false;
  const ev::Status status = Start(options, &serial_, &started);
  unsetenv(kConfigVariable);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(started);
}

// Acceptance test 8: all invalid sizes.
TEST_F(ServerTest, ServesBatchesAndReplicas) {
  WriteModels(1);
  StartOptions good;
  good.config_file = WriteConfig("{" + Models() + "}");
  good.global_batch_size = 2048;
  good.num_replicas = 2;
  bool started = false;
  const struct {
    int64_t batch, replicas;
    const char* message;
  } cases[] = {
      {0, 1, "global_batch_size: expected at least 1, got 0"},
      {1023, 2, "expected a multiple of the 2 replicas, got 1023"},
      {1025, 1, "models[0].max_batch_size"},
      {8, 0, "num_replicas: expected at least 1, got 0"},
  };
  for (int round = 0; round < 2; ++round) {  // before and after the start
    for (const auto& one : cases) {
      StartOptions options = good;
      options.global_batch_size = one.batch;
      options.num_replicas = one.replicas;
      const ev::Status status = Start(options, &serial_, &started);
      EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument);
      EXPECT_NE(status.message().find(one.message), std::string::npos)
          << status.message();
      EXPECT_EQ(RunningServer() != nullptr, round == 1);
    }
    ASSERT_TRUE(Start(good, &serial_, &started).ok());
  }
}

// Acceptance test 11: the planned host memory is right.
TEST_F(ServerTest, PlansMemoryWithin5Percent) {
  WriteTable("a", Range(0, 100000), 16, 1);
  for (const char* type : {"hash_map", "multi_process_hash_map"}) {
    Config config;
    ASSERT_TRUE(
        ParseConfig("{\"models\": [" + Model("m", "\"a\"", "16", "4", "0") +
                        "], \"volatile_db\": {\"type\": \"" + type + "\"}}",
                    "ps.json", folder_, DatabaseTypes(), &config)
            .ok());
    std::vector<std::string> problems;
    const std::string plan = PlanJson(config, &problems);
    EXPECT_TRUE(problems.empty());
    const size_t at = plan.rfind("\"host_bytes\": ");
    const double planned = std::stod(plan.substr(at + 14));
    std::unique_ptr<ParameterServer> server;
    ASSERT_TRUE(ParameterServer::Make(config, &serial_, &server).ok());
    TableStatistics statistics;
    ASSERT_TRUE(server->FindTag("hps_et.m.sparse_embedding1")
                    ->above()
                    ->Statistics(&statistics)
                    .ok());
    EXPECT_NEAR(statistics.host_bytes / planned, 1.0, 0.05) << type;
    EXPECT_LE(statistics.host_bytes, 1.2 * (8 + 64) * 100000);
  }
}

TEST_F(ServerTest, MissingTypesAndFilesAreErrors) {
  Config config;
  std::unique_ptr<ParameterServer> server;
  ASSERT_TRUE(ParseConfig("{" + Models() + "}", "ps.json", folder_,
                          DatabaseTypes(), &config)
                  .ok());
  const ev::Status status = ParameterServer::Make(config, &serial_, &server);
  EXPECT_EQ(status.code(), ev::StatusCode::kNotFound);
  EXPECT_NE(status.message().find("model 'm', table 'sparse_embedding1'"),
            std::string::npos);
  std::vector<std::string> problems;
  PlanJson(config, &problems);
  EXPECT_EQ(problems.size(), 3u);
}

}  // namespace
}  // namespace hps
