// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/config/config.h"

#include <random>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/config/json.h"
#include "addons/hierarchical_parameter_server/server/databases.h"
#include "gtest/gtest.h"

namespace hps {
namespace {

const char kModel[] = R"("model": "m", "sparse_files": ["a", "b"],
  "embedding_vecsize_per_table": [4, 8],
  "maxnum_catfeature_query_per_table_per_sample": [2, 3],
  "default_value_for_each_table": [0.5, 1],
  "deployed_device_list": [0])";

std::string WithModel(const std::string& more) {
  return std::string("{\"models\": [{") + kModel + more + "}]}";
}
std::string WithTop(const std::string& more) {
  return std::string("{\"models\": [{") + kModel + "}], " + more + "}";
}

ev::Status Parse(const std::string& text, Config* config) {
  return ParseConfig(text, "ps.json", "", DatabaseTypes(), config);
}

TEST(JsonTest, ReadsWhatUpstreamsSamplesHave) {
  Json json;
  ASSERT_TRUE(ParseJson("{ // models\n \"a\": [1, -2.5e1, true, null,],\n"
                        "/* b */ \"b\": \"x\\n\\u00e4\\ud83d\\ude00\"}",
                        "x", &json)
                  .ok());
  ASSERT_EQ(json.Find("a")->items.size(), 4u);
  EXPECT_EQ(json.Find("a")->items[0].integer, 1);
  EXPECT_EQ(json.Find("a")->items[1].number, -25);
  EXPECT_FALSE(json.Find("a")->items[1].is_integer);
  EXPECT_EQ(json.Find("b")->text, "x\n\xC3\xA4\xF0\x9F\x98\x80");
}

TEST(JsonTest, ReportsThePositionOfAnError) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 1, column 1: expected a value"},
      {"{\"a\": }", "column 7: expected a value"},
      {"{\n\"a\": 1 \"b\"", "line 2, column 8: expected ',' or '}'"},
      {"{\"a\": 1, \"a\": 2}", "the key 'a' occurs twice"},
      {"[01]", "begins with 0"},
      {"[1.]", "digits after the point"},
      {"\"abc", "an unterminated string"},
      {"/* x", "an unterminated comment"},
      {"{} x", "expected the end"},
      {"\"\\q\"", "unknown escape"},
      {"\"\\ud800\"", "second half"},
      {std::string(100, '['), "nested more than 64 deep"},
      {"nul", "expected a value"},
      {"{\"a\": 1\xEF\xBC\x8C \"b\": 2}",
       "column 8: expected ',' or '}', got '\xEF\xBC\x8C' (U+FF0C, a "
       "full-width "
       "comma)"},
      {"{\"a\"\xEF\xBC\x9A 1}",
       "expected ':', got '\xEF\xBC\x9A' (U+FF1A, a full-width colon)"},
      {"{\xE2\x80\x9C"
       "a\xE2\x80\x9D: 1}",
       "expected a key in quotes, got '\xE2\x80\x9C' (U+201C, a typographic "
       "quote)"},
      {"[1,\xC2\xA0"
       "2]",
       "expected a value, got U+00A0, a no-break space"},
      {"{\"\xC3\xA9\": \xC3\xA9}",
       "column 7: expected a value, got '\xC3\xA9' (U+00E9)"},
      {"{} \xEF\xBB\xBF", "expected the end, got U+FEFF, a byte-order mark"},
      {"[\xE9]",
       "column 2: expected a value, got the byte \\xe9, which is not UTF-8"},
      {"\xFF\xFE{\0", "line 1, column 1: expected a value, got the byte \\xff"},
      {"\xEF\xBB\xBF{\"a\" 1}", "line 1, column 6: expected ':', got '1'"},
  };
  for (const auto& one : cases) {
    Json json;
    const ev::Status status = ParseJson(one.first, "f.json", &json);
    EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument) << one.first;
    EXPECT_NE(status.message().find(one.second), std::string::npos)
        << status.message();
    EXPECT_EQ(status.message().find("f.json, line"), 0u);
  }
}

TEST(JsonTest, SkipsAByteOrderMark) {
  Json json;
  ASSERT_TRUE(ParseJson("\xEF\xBB\xBF{\"a\": 1}", "x", &json).ok());
  EXPECT_EQ(json.Find("a")->integer, 1);
}

TEST(JsonTest, QuotesTextThatIsNotUtf8) {
  EXPECT_EQ(Quoted("a\"\\\n\xC3\xA9\xE9"),
            "\"a\\\"\\\\\\u000a\xC3\xA9\\\\xe9\"");
}

TEST(ConfigTest, WhatLookupsDoWhileATierIsAway) {
  Config config;
  ASSERT_TRUE(Parse(WithTop("\"volatile_db\": {\"type\": \"redis\"}, "
                            "\"persistent_db\": {\"type\": \"rocks_db\", "
                            "\"path\": \"s\"}"),
                    &config)
                  .ok());
  EXPECT_EQ(config.volatile_db.outage.lookup_timeout_ms, 500);
  EXPECT_EQ(config.persistent_db.outage.lookup_timeout_ms, 0);
  for (const OutageConfig& outage :
       {config.volatile_db.outage, config.persistent_db.outage}) {
    EXPECT_EQ(outage.on_unavailable, "error");
    EXPECT_EQ(outage.breaker_failures, 3);
    EXPECT_EQ(outage.breaker_pause_ms, 1000);
  }
  const auto redis = [&](const std::string& more) {
    return Parse(
        WithTop("\"volatile_db\": {\"type\": \"redis\", " + more + "}"),
        &config);
  };
  ASSERT_TRUE(redis("\"timeout_ms\": 100").ok());
  EXPECT_EQ(config.volatile_db.outage.lookup_timeout_ms, 100);
  ASSERT_TRUE(redis("\"lookup_timeout_ms\": 0").ok());
  EXPECT_EQ(config.volatile_db.outage.lookup_timeout_ms, 5000);
  ASSERT_TRUE(redis("\"lookup_timeout_ms\": 50, \"on_unavailable\": \"skip\", "
                    "\"breaker_failures\": 1, \"breaker_pause_ms\": 0")
                  .ok());
  EXPECT_EQ(config.volatile_db.outage.on_unavailable, "skip");
  const ev::Status status =
      redis("\"lookup_timeout_ms\": 6000, \"on_unavailable\": \"ignore\"");
  for (const char* words :
       {"lookup_timeout_ms: expected at most timeout_ms, 5000, got 6000",
        "on_unavailable: expected one of \"error\", \"skip\", got "
        "\"ignore\""}) {
    EXPECT_NE(status.message().find(words), std::string::npos)
        << status.message();
  }
  EXPECT_EQ(config.errors.size(), 2u);
  ASSERT_TRUE(Parse(WithTop("\"volatile_db\": {\"type\": \"hash_map\", "
                            "\"breaker_failures\": 1}"),
                    &config)
                  .ok());
  ASSERT_EQ(config.notes.size(), 1u);
  EXPECT_EQ(config.notes[0],
            "volatile_db.breaker_failures: no effect with type \"hash_map\"");
}

TEST(ConfigTest, TheDocumentedDefaults) {
  Config config;
  const ev::Status status = Parse(WithModel(""), &config);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(config.long_keys);
  ASSERT_EQ(config.models.size(), 1u);
  const ModelConfig& model = config.models[0];
  EXPECT_EQ(model.max_batch_size, 64);
  EXPECT_EQ(model.worker_buffers, 2);
  EXPECT_EQ(model.hit_rate_threshold, 1.0);
  EXPECT_FALSE(model.gpucache);
  EXPECT_EQ(model.gpucacheper, 0.2);
  EXPECT_EQ(model.cache_policy, "lru");
  ASSERT_EQ(model.tables.size(), 2u);
  EXPECT_EQ(model.tables[0].name, "sparse_embedding1");
  EXPECT_EQ(model.tables[1].name, "sparse_embedding2");
  EXPECT_EQ(model.tables[1].width, 8);
  EXPECT_EQ(model.max_keys(model.tables[1]), 192);
  EXPECT_EQ(model.tables[0].default_value, 0.5f);
  EXPECT_EQ(config.volatile_db.type, "parallel_hash_map");
  EXPECT_EQ(config.persistent_db.type, "disabled");
  EXPECT_EQ(config.update_source.type, "none");
  EXPECT_TRUE(config.notes.empty());
}

TEST(ConfigTest, AKeyThatDescribesTheCacheEnablesIt) {
  for (const std::string key :
       {"\"gpucacheper\": 0.1", "\"embedding_cache_type\": \"static\"",
        "\"use_static_table\": true", "\"embedding_cache_policy\": \"lfu\"",
        "\"gpucache\": true"}) {
    Config config;
    ASSERT_TRUE(Parse(WithModel(", " + key), &config).ok()) << key;
    EXPECT_TRUE(config.models[0].gpucache) << key;
    const ev::Status status = Parse(
        WithModel(", \"gpucacheper\": 0.1, \"gpucache\": false"), &config);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_FALSE(config.models[0].gpucache);
  }
}

TEST(ConfigTest, APolicyWithoutEvictionIsNoted) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", ""},
      {", \"gpucache\": false", "gpucache is false"},
      {", \"gpucacheper\": 1.0", "evicts nothing"},
      {", \"use_static_table\": true", "evicts nothing"},
  };
  for (const auto& one : cases) {
    Config config;
    const ev::Status status =
        Parse(WithModel(", \"embedding_cache_policy\": \"lfu\"" + one.first),
              &config);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(config.models[0].cache_policy, "lfu");
    ASSERT_EQ(config.notes.size(), one.second.empty() ? 0u : 1u) << one.first;
    if (one.second.empty()) continue;
    EXPECT_EQ(
        config.notes[0].find("models[0].embedding_cache_policy: no effect"),
        0u);
    EXPECT_NE(config.notes[0].find(one.second), std::string::npos);
  }
}

TEST(ConfigTest, ARefreshNeedsACacheAndAnInterval) {
  const auto parse = [](const std::string& more) {
    Config config;
    const ev::Status status = Parse(WithModel(more), &config);
    EXPECT_TRUE(status.ok()) << status.message();
    return config;
  };
  Config config = parse("");
  EXPECT_EQ(config.models[0].refresh_interval, 0);
  config = parse(
      ", \"gpucache\": true, \"refresh_interval\": 2.5, "
      "\"refresh_delay\": 10");
  EXPECT_EQ(config.models[0].refresh_interval, 2.5);
  EXPECT_EQ(config.models[0].refresh_delay, 10);
  EXPECT_TRUE(config.notes.empty());
  // The key alone does not enable the cache: existing files have it without
  // one.
  config = parse(", \"refresh_interval\": 1");
  EXPECT_FALSE(config.models[0].gpucache);
  ASSERT_EQ(config.notes.size(), 1u);
  EXPECT_EQ(config.notes[0].find("models[0].refresh_interval: no effect"), 0u);
  config = parse(", \"gpucache\": true, \"refresh_delay\": 1");
  ASSERT_EQ(config.notes.size(), 1u);
  EXPECT_EQ(config.notes[0].find("models[0].refresh_delay: no effect"), 0u);
  config = parse(", \"refresh_interval\": 0, \"refresh_delay\": 0");
  EXPECT_TRUE(config.notes.empty());
}

TEST(ConfigTest, EveryKeyOfUpstreamIsAccepted) {
  Config config;
  const ev::Status status = Parse(
      std::string("{\"supportlonglong\": false, \"fuse_embedding_table\": true,"
                  "\"models\": [{") +
          kModel + R"(, "embedding_table_names": ["x", "y"],
          "row_type_per_table": ["uint8", "float32"],
          "max_batch_size": 16, "gpucache": true, "gpucacheper": 0.5,
          "hit_rate_threshold": 0.9, "num_of_worker_buffer_in_pool": 3,
          "num_of_refresher_buffer_in_pool": 1,
          "cache_refresh_percentage_per_iteration": 0.2, "refresh_delay": 0,
          "refresh_interval": 0, "maxnum_des_feature_per_sample": 26,
          "embedding_cache_type": "dynamic", "use_static_table": true,
          "init_ec": true, "use_context_stream": true,
          "use_hctr_cache_implementation": false, "thread_pool_size": 16,
          "enable_pagelock": false, "fp8_quant": false,
          "fuse_embedding_table": false, "dense_file": "d",
          "network_file": "n", "label_dim": 1, "slot_num": 10}],
          "volatile_db": {"type": "hashmap", "num_partitions": 4,
            "allocation_rate": 268435456, "shared_memory_size": 1,
            "shared_memory_name": "s", "shared_memory_auto_remove": true,
            "max_batch_size": 65536, "address": ["a:1", "b:2"],
            "user_name": "u", "password": "p", "num_node_connections": 5,
            "enable_tls": false, "tls_ca_certificate": "c",
            "tls_client_certificate": "cc", "tls_client_key": "k",
            "tls_server_name_identification": "n",
            "overflow_margin": 18446744073709551615,
            "overflow_policy": "oldest", "overflow_resolution_target": 0.8,
            "initial_cache_rate": 0.5, "cache_missed_embeddings": true,
            "update_filters": [".+"], "initialize_after_startup": true},
          "persistent_db": {"type": "rocksdb", "path": "p", "num_threads": 2,
            "read_only": true, "max_batch_size": 10, "update_filters": [".+"],
            "initialize_after_startup": false},
          "update_source": {"type": "kafka", "brokers": "a;b",
            "metadata_refresh_interval_ms": 1, "receive_buffer_size": 262144,
            "poll_timeout_ms": 500, "max_batch_size": 8192,
            "failure_backoff_ms": 50, "max_commit_interval": 32}})",
      &config);
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_FALSE(config.long_keys);
  EXPECT_EQ(config.models[0].tables[1].name, "y");
  EXPECT_EQ(config.models[0].tables[0].row_type, RowType::kUint8);
  EXPECT_EQ(config.models[0].tables[1].row_type, RowType::kFloat32);
  EXPECT_EQ(config.models[0].cache_type, "static");
  EXPECT_FALSE(config.models[0].fuse);
  EXPECT_EQ(config.volatile_db.type, "hash_map");
  EXPECT_EQ(config.volatile_db.redis.address, "a:1,b:2");
  EXPECT_EQ(config.volatile_db.overflow_margin, INT64_MAX);
  EXPECT_EQ(config.volatile_db.overflow_policy, "evict_oldest");
  EXPECT_EQ(config.persistent_db.type, "rocks_db");
  EXPECT_EQ(config.update_source.type, "kafka_message_queue");
  std::string notes;
  for (const std::string& note : config.notes) notes += note + "\n";
  for (const char* key :
       {"models[0].hit_rate_threshold: below 1", "models[0].thread_pool_size",
        "models[0].dense_file", "volatile_db.allocation_rate",
        "volatile_db.shared_memory_size",
        "volatile_db.address: no effect with type"}) {
    EXPECT_NE(notes.find(key), std::string::npos) << key << "\n" << notes;
  }
}

// Acceptance test 8, for the file's content: the error names key, limit and
// value.
TEST(ConfigTest, NamesEveryWrongKey) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[]", "expected an object"},
      {"{}", "models: expected one model at least"},
      {"{\"models\": []}", "models: expected one model at least"},
      {"{\"models\": {}}", "models: expected a list"},
      {"{\"models\": [3]}", "models[0]: expected an object in {}, got 3"},
      {"{\"models\": [{}]}", "models[0].sparse_files: is required"},
      {"{\"models\": [{}]}", "models[0].deployed_device_list: is required"},
      {"{\"models\": [{}]}", "models[0].model: is required"},
      {WithModel(", \"gpucachper\": 1"),
       "models[0].gpucachper: unknown key; was 'gpucacheper' meant?"},
      {WithModel(", \"quux_quux\": 1"), "models[0].quux_quux: unknown key"},
      {WithModel(", \"gpucacheper\": 1.5"),
       "models[0].gpucacheper: expected a number from 0 to 1, got 1.5"},
      {WithModel(", \"gpucache\": 1"),
       "models[0].gpucache: expected true or false, got 1"},
      {WithModel(", \"embedding_cache_policy\": \"lfru\""),
       "models[0].embedding_cache_policy: expected one of \"lru\", \"lfu\", "
       "got "
       "\"lfru\""},
      {WithModel(", \"refresh_interval\": -1"),
       "models[0].refresh_interval: expected a number from 0"},
      {WithModel(", \"refresh_delay\": \"1 s\""),
       "models[0].refresh_delay: expected a number"},
      {WithModel(", \"embedding_cache_policy\": 2"),
       "models[0].embedding_cache_policy: expected"},
      {WithModel(", \"max_batch_size\": 0"),
       "models[0].max_batch_size: expected an integer from 1 to 2147483648, "
       "got 0"},
      {WithModel(", \"max_batch_size\": 2.5"), "got 2.5"},
      {WithModel(", \"max_batch_size\": 2000000000"),
       "maxnum_catfeature_query_per_table_per_sample[0]: times max_batch_size"},
      {WithModel(", \"embedding_table_names\": [\"x\"]"),
       "models[0].embedding_table_names: expected one item for each of the 2"},
      {WithModel(", \"embedding_table_names\": [\"x\", \"x\"]"),
       "models[0].embedding_table_names[1]: \"x\" occurs twice"},
      {WithModel(", \"embedding_table_names\": [\"x\", \"a.b\"]"),
       "models[0].embedding_table_names[1]: expected 1 to 120 letters"},
      {WithModel(", \"row_type_per_table\": [\"uint8\"]"),
       "models[0].row_type_per_table: expected one item for each of the 2"},
      {WithModel(", \"row_type_per_table\": [\"uint8\", \"int8\"]"),
       "models[0].row_type_per_table[1]: expected float32, float16 or uint8, "
       "got \"int8\""},
      {WithModel(", \"fp8_quant\": true"),
       "models[0].fp8_quant: expected false"},
      {WithModel(", \"embedding_cache_type\": \"dynamc\""),
       "expected one of \"dynamic\", \"static\", \"uvm\", \"stochastic\", got "
       "\"dynamc\""},
      {WithTop("\"suportlonglong\": true"),
       "suportlonglong: unknown key; was 'supportlonglong' meant?"},
      {WithTop("\"supportlonglong\": 1"),
       "supportlonglong: expected true or false"},
      {WithTop("\"volatile_db\": {\"type\": \"hazh\"}"),
       "volatile_db.type: expected one of"},
      {WithTop("\"volatile_db\": {\"overflow_margin\": 0}"),
       "volatile_db.overflow_margin: expected an integer from 1"},
      {WithTop("\"volatile_db\": {\"overflow_resolution_target\": 0}"),
       "volatile_db.overflow_resolution_target: expected more than 0"},
      {WithTop("\"volatile_db\": {\"initial_cache_rate\": 0.5}"),
       "volatile_db.initial_cache_rate: without a persistent_db"},
      {WithTop("\"volatile_db\": {\"initialize_after_startup\": false}"),
       "volatile_db.initialize_after_startup: false leaves"},
      {WithTop("\"persistent_db\": {}"), "persistent_db.type: is required"},
      {WithTop("\"persistent_db\": {\"type\": \"rocks_db\"}"),
       "persistent_db.path: is required"},
      {WithTop("\"update_source\": {\"type\": \"kafkaa\"}"),
       "update_source.type: expected one of"},
      {WithTop("\"update_source\": {\"type\": \"directory\"}"),
       "update_source.path: is required"},
  };
  for (const auto& one : cases) {
    Config config;
    const ev::Status status = Parse(one.first, &config);
    EXPECT_EQ(status.code(), ev::StatusCode::kInvalidArgument) << one.first;
    EXPECT_NE(status.message().find(one.second), std::string::npos)
        << one.second << "\ngot: " << status.message();
    EXPECT_EQ(status.message().find("ps.json"), 0u);
  }
}

std::string Replaced(std::string text, const std::string& from,
                     const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos);
  return text.replace(at, from.size(), to);
}

TEST(ConfigTest, ListsOfTablesMustAgree) {
  Config config;
  const std::string good = WithModel("");
  const std::vector<std::vector<std::string>> cases = {
      {"[4, 8]", "[4]",
       "embedding_vecsize_per_table: expected one item for each"},
      {"[4, 8]", "[4, 0]",
       "embedding_vecsize_per_table[1]: expected an integer from 1 to 65536, "
       "got "
       "0"},
      {"[2, 3]", "[2, 3, 4]",
       "maxnum_catfeature_query_per_table_per_sample: expected one item"},
      {"[0.5, 1]", "[0.5, 1, 2]",
       "default_value_for_each_table: expected one item"},
      {"[0.5, 1]", "[0.5, \"x\"]",
       "default_value_for_each_table[1]: expected a number, got \"x\""},
      {"[0.5, 1]", "[0.5, 1e300]",
       "default_value_for_each_table[1]: expected a number that a float32 "
       "holds"},
      {"[\"a\", \"b\"]", "[]", "sparse_files: expected one folder at least"},
      {"[\"a\", \"b\"]", "[\"a\", \"hdfs://b\"]",
       "sparse_files[1]: expected a folder of this machine"},
      {"_list\": [0]", "_list\": [1]",
       "deployed_device_list: expected the numbers 0 to N - 1, each once; got "
       "[1]"},
      {"_list\": [0]", "_list\": []",
       "deployed_device_list: expected the numbers"},
      {"_list\": [0]", "_list\": [0, 0]", "got [0, 0]"},
      {"_list\": [0]", "_list\": [-1]",
       "deployed_device_list[0]: expected an integer from 0"},
      {"\"m\"", "\"a.b\"", "models[0].model: expected 1 to 120 letters"},
  };
  for (const auto& one : cases) {
    const ev::Status status = Parse(Replaced(good, one[0], one[1]), &config);
    EXPECT_NE(status.message().find(one[2]), std::string::npos)
        << one[2] << "\ngot: " << status.message();
  }
  // Short lists of default values are padded, as in upstream.
  ASSERT_TRUE(Parse(Replaced(good, "[0.5, 1]", "[0.5]"), &config).ok());
  EXPECT_EQ(config.models[0].tables[1].default_value, 0.0f);
  ASSERT_EQ(config.notes.size(), 1u);
}

TEST(ConfigTest, KeysLieInTheSamePartsOfRedisWhateverTheMachine) {
  Config config;
  ASSERT_TRUE(
      Parse(WithTop("\"volatile_db\": {\"type\": \"redis_cluster\"}"), &config)
          .ok());
  EXPECT_EQ(config.volatile_db.num_partitions, 8);
  ASSERT_TRUE(Parse(WithTop("\"volatile_db\": {\"type\": \"redis\", "
                            "\"num_partitions\": 3, \"timeout_ms\": 70}"),
                    &config)
                  .ok());
  EXPECT_EQ(config.volatile_db.num_partitions, 3);
  EXPECT_EQ(config.volatile_db.redis.timeout_ms, 70);
}

TEST(ConfigTest, FiltersThatMatchNoModelAreNoted) {
  const std::string source =
      ", \"update_source\": {\"type\": \"directory\", \"path\": \"p\"}";
  const auto notes = [](const std::string& text) {
    Config config;
    const ev::Status status = Parse(WithTop(text), &config);
    EXPECT_TRUE(status.ok()) << status.message();
    return config.notes;
  };
  const std::string upstreams =
      "\"volatile_db\": {\"type\": \"hash_map\", \"update_filters\": "
      "[\"^hps_.+$\"]}";
  const std::vector<std::string> found = notes(upstreams + source);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("volatile_db.update_filters: no model of this file"),
            std::string::npos)
      << found[0];
  // Without a source the filters have no effect.
  EXPECT_TRUE(notes(upstreams).empty());
  for (const std::string filter : {".+", "m", "x|m", "^m$", "("}) {
    const std::string memory =
        "\"volatile_db\": {\"type\": \"hash_map\", "
        "\"update_filters\": [\"none\", \"" +
        filter + "\"]}";
    EXPECT_TRUE(notes(memory + source).empty()) << filter;
  }
}

TEST(ConfigTest, AllErrorsAreInOneMessage) {
  Config config;
  const ev::Status status =
      Parse(WithModel(", \"gpucacheper\": 2, \"max_batch_size\": -1"), &config);
  EXPECT_NE(status.message().find("gpucacheper"), std::string::npos);
  EXPECT_NE(status.message().find("max_batch_size"), std::string::npos);
}

// Parsing a damaged text ends, with an error or not.
TEST(ConfigTest, DamagedTextsAreErrorsOrRight) {
  const std::string good = WithTop(
      "\"supportlonglong\": true, // x\n\"volatile_db\": {\"type\": \"hash\", "
      "\"overflow_margin\": 18446744073709551615, \"update_filters\": "
      "[\"\\u00e4.+\"]}, /* y */ \"persistent_db\": {\"type\": \"none\"}");
  Config config;
  ASSERT_TRUE(Parse(good, &config).ok());
  std::mt19937 random(11);
  const std::string letters = "{}[]\",:\\/*u0-9.eE+tfn \n\x01\xff";
  int errors = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = good;
    for (unsigned change = 0; change <= random() % 3; ++change) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = letters[random() % letters.size()];
          break;
        case 1:
          text.erase(at, 1 + random() % 8);
          break;
        case 2:
          text.insert(at, 1, letters[random() % letters.size()]);
          break;
        default:
          text.resize(at + 1);
      }
      if (text.empty()) text = "{";
    }
    const ev::Status status = Parse(text, &config);
    if (status.ok()) continue;
    ++errors;
    ASSERT_EQ(status.message().find("ps.json"), 0u) << text;
  }
  EXPECT_GT(errors, 10000);
}

TEST(ConfigTest, AMissingFileIsAnError) {
  Config config;
  std::string text;
  EXPECT_EQ(
      ReadConfig("no/such/ps.json", DatabaseTypes(), &config, &text).code(),
      ev::StatusCode::kNotFound);
}

}  // namespace
}  // namespace hps
