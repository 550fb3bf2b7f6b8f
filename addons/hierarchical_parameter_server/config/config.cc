// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/config/config.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <thread>

#include "addons/hierarchical_parameter_server/config/json.h"
#include "addons/hierarchical_parameter_server/config/object_reader.h"

namespace hps {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostKeys = int64_t{1} << 31;
constexpr double kMostSeconds = 1e8;  // three years
constexpr int64_t kMostMs = 3600000;  // an hour
// Default limit of a lookup in Redis. A dead server must not block a service.
constexpr int64_t kLookupTimeoutMs = 500;

bool IsName(const std::string& name) {
  if (name.empty() || name.size() > 120) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

const char kExpectedName[] =
    "expected 1 to 120 letters, digits, '_' and '-', got ";

bool IsFolder(const std::string& path) {
  struct stat about;
  return stat(path.c_str(), &about) == 0 && S_ISDIR(about.st_mode);
}

std::string Resolved(const std::string& path, const std::string& folder) {
  if (path.empty() || path[0] == '/' || folder.empty()) return path;
  const std::string beside = folder + "/" + path;
  return IsFolder(beside) ? beside : path;
}

// Checks that a model's list has one item for each table.
template <typename T>
bool HasOneForEach(const std::vector<T>& list, size_t tables, const char* key,
                   ObjectReader* reader) {
  if (list.size() == tables) return true;
  reader->Wrong(
      key, "expected one item for each of the " + std::to_string(tables) +
               " folders of sparse_files, got " + std::to_string(list.size()));
  return false;
}

void ReadTables(ObjectReader* reader, const std::string& folder,
                ModelConfig* model) {
  std::vector<std::string> folders, names, types;
  std::vector<int64_t> widths, max_keys;
  std::vector<double> defaults;
  const auto required = [&](const char* key, bool is_given) {
    if (!is_given && !reader->Has(key)) reader->Wrong(key, "is required");
    return is_given;
  };
  bool good =
      required("sparse_files", reader->Strings("sparse_files", &folders));
  if (good && folders.empty()) {
    reader->Wrong("sparse_files", "expected one folder at least, got none");
    good = false;
  }
  const size_t tables = folders.size();
  good &= required(
      "embedding_vecsize_per_table",
      reader->Integers("embedding_vecsize_per_table", 1, 65536, &widths));
  good &=
      required("maxnum_catfeature_query_per_table_per_sample",
               reader->Integers("maxnum_catfeature_query_per_table_per_sample",
                                1, kMostKeys, &max_keys));
  good &= required("default_value_for_each_table",
                   reader->Numbers("default_value_for_each_table", &defaults));
  const bool named = reader->Strings("embedding_table_names", &names);
  if (reader->Has("embedding_table_names") && !named) good = false;
  const bool typed = reader->Strings("row_type_per_table", &types);
  if (reader->Has("row_type_per_table") && !typed) good = false;
  if (!good) return;
  good &= HasOneForEach(widths, tables, "embedding_vecsize_per_table", reader);
  good &= HasOneForEach(max_keys, tables,
                        "maxnum_catfeature_query_per_table_per_sample", reader);
  if (defaults.size() < tables) {
    reader->Note("default_value_for_each_table",
                 "has " + std::to_string(defaults.size()) + " items for " +
                     std::to_string(tables) +
                     " tables; the others' default value is 0");
    defaults.resize(tables, 0.0);
  }
  good &=
      HasOneForEach(defaults, tables, "default_value_for_each_table", reader);
  if (!named) {
    for (size_t t = 0; t < tables; ++t) {
      names.push_back("sparse_embedding" + std::to_string(t + 1));
    }
  }
  good &= HasOneForEach(names, tables, "embedding_table_names", reader);
  if (!typed) types.assign(tables, RowTypeName(RowType::kFloat32));
  good &= HasOneForEach(types, tables, "row_type_per_table", reader);
  if (!good) return;
  std::set<std::string> seen;
  for (size_t t = 0; t < tables; ++t) {
    const std::string index = "[" + std::to_string(t) + "]";
    TableConfig table;
    table.name = names[t];
    table.folder = Resolved(folders[t], folder);
    table.width = static_cast<int>(widths[t]);
    table.max_keys_per_sample = max_keys[t];
    table.default_value = static_cast<float>(defaults[t]);
    if (!std::isfinite(table.default_value)) {
      reader->Wrong("default_value_for_each_table" + index,
                    "expected a number that a float32 holds, got " +
                        std::to_string(defaults[t]));
    }
    if (!ParseRowType(types[t], &table.row_type)) {
      reader->Wrong(
          "row_type_per_table" + index,
          "expected float32, float16 or uint8, got " + Quoted(types[t]));
    }
    if (table.row_type != RowType::kFloat32 &&
        std::fabs(table.default_value) > 65504) {
      reader->Wrong("default_value_for_each_table" + index,
                    "expected a number that a float16 holds, since the row "
                    "type is " +
                        types[t] + ", got " + std::to_string(defaults[t]));
    }
    if (!IsName(table.name)) {
      reader->Wrong("embedding_table_names" + index,
                    kExpectedName + Quoted(table.name));
    } else if (!seen.insert(table.name).second) {
      reader->Wrong("embedding_table_names" + index,
                    Quoted(table.name) + " occurs twice");
    }
    if (table.folder.empty() || table.folder.find("://") != std::string::npos) {
      reader->Wrong("sparse_files" + index,
                    "expected a folder of this machine, got " +
                        Quoted(folders[t]) +
                        "; remote file systems are not supported");
    }
    model->tables.push_back(table);
  }
}

void ReadDevices(ObjectReader* reader, ModelConfig* model) {
  if (!reader->Integers("deployed_device_list", 0, 1023, &model->devices)) {
    if (!reader->Has("deployed_device_list")) {
      reader->Wrong("deployed_device_list", "is required");
    }
  } else {
    std::vector<int64_t> sorted = model->devices;
    std::sort(sorted.begin(), sorted.end());
    bool right = !sorted.empty();
    for (size_t i = 0; i < sorted.size(); ++i) {
      right = right && sorted[i] == static_cast<int64_t>(i);
    }
    if (!right) {
      std::string list;
      for (const int64_t device : model->devices) {
        list += (list.empty() ? "" : ", ") + std::to_string(device);
      }
      reader->Wrong(
          "deployed_device_list",
          "expected the numbers 0 to N - 1, each once; got [" + list + "]");
    }
  }
}

// Reads the keys about the GPU cache and its refresh.
void ReadCache(ObjectReader* reader, ModelConfig* model) {
  model->gpucache =
      reader->Has("gpucacheper") || reader->Has("embedding_cache_type") ||
      reader->Has("embedding_cache_policy") || reader->Has("use_static_table");
  reader->Bool("gpucache", &model->gpucache);
  reader->Number("gpucacheper", 0.0, 1.0, &model->gpucacheper);
  if (reader->Number("hit_rate_threshold", 0.0, 2.0,
                     &model->hit_rate_threshold) &&
      model->hit_rate_threshold < 1.0) {
    reader->Note(
        "hit_rate_threshold",
        "below 1, a lookup with this hit rate in the GPU cache is answered "
        "at once: missed ids get the default value, and their rows are cached "
        "later; from 1 on, and without a GPU cache, lookups are exact");
  }
  if (reader->Integer("num_of_worker_buffer_in_pool", 1, 256,
                      &model->worker_buffers)) {
    reader->Note("num_of_worker_buffer_in_pool",
                 "no effect: buffers are allocated on demand");
  }
  reader->Ignore("num_of_refresher_buffer_in_pool",
                 "no effect: there is no pool of buffers to size");
  reader->Number("cache_refresh_percentage_per_iteration", 0.0, 1.0,
                 &model->refresh_percentage);
  reader->Number("refresh_delay", 0.0, kMostSeconds, &model->refresh_delay);
  reader->Number("refresh_interval", 0.0, kMostSeconds,
                 &model->refresh_interval);
  if (model->refresh_interval > 0 && !model->gpucache) {
    reader->Note("refresh_interval",
                 "no effect without gpucache: there is no cache to refresh");
  }
  if (model->refresh_delay > 0 && model->refresh_interval == 0) {
    reader->Note("refresh_delay", "no effect without a refresh_interval");
  }
  reader->Choice("embedding_cache_type",
                 {{"dynamic"}, {"static"}, {"uvm"}, {"stochastic"}},
                 &model->cache_type);
  if (model->cache_type == "stochastic") {
    reader->Note("embedding_cache_type",
                 "\"stochastic\" is served as \"dynamic\"");
    model->cache_type = "dynamic";
  }
  if (model->cache_type == "uvm") {
    reader->Note("embedding_cache_type",
                 "\"uvm\" is served as \"dynamic\": GPU memory holds the most "
                 "recently used rows, not the first rows of the files");
    model->cache_type = "dynamic";
  }
  bool is_static = false;
  if (reader->Bool("use_static_table", &is_static) && is_static) {
    model->cache_type = "static";
  }
  if (reader->Choice("embedding_cache_policy", {{"lru"}, {"lfu"}},
                     &model->cache_policy)) {
    if (!model->gpucache) {
      reader->Note("embedding_cache_policy",
                   "no effect: gpucache is false, there is no cache");
    } else if (model->cache_type == "static" || model->gpucacheper >= 1.0) {
      reader->Note(
          "embedding_cache_policy",
          "no effect: the cache has the whole table and evicts nothing");
    }
  }
}

void ReadModel(const Json& json, const std::string& path,
               const std::string& folder, bool fuse_all, Findings* findings,
               ModelConfig* model) {
  ObjectReader reader(json, path, findings);
  if (!reader.String("model", &model->name) && !reader.Has("model")) {
    reader.Wrong("model", "is required");
  } else if (reader.Has("model") && !IsName(model->name)) {
    reader.Wrong("model", kExpectedName + Quoted(model->name));
  }
  ReadTables(&reader, folder, model);
  ReadDevices(&reader, model);
  reader.Integer("max_batch_size", 1, kMostKeys, &model->max_batch_size);
  for (size_t t = 0; t < model->tables.size(); ++t) {
    if (model->tables[t].max_keys_per_sample >
        kMostKeys / model->max_batch_size) {
      reader.Wrong("maxnum_catfeature_query_per_table_per_sample[" +
                       std::to_string(t) + "]",
                   "times max_batch_size " +
                       std::to_string(model->max_batch_size) +
                       ", expected at most 2147483648 keys, got " +
                       std::to_string(model->tables[t].max_keys_per_sample) +
                       " keys a sample");
    }
  }

  ReadCache(&reader, model);
  reader.Bool("init_ec", &model->preload_cache);
  reader.Ignore("use_context_stream",
                "no effect: lookups always use TensorFlow's stream");
  reader.Ignore("use_hctr_cache_implementation",
                "no effect: there is only one cache implementation");
  reader.Ignore("thread_pool_size",
                "no effect: lookups run on TensorFlow's threads");
  if (reader.Bool("enable_pagelock", &model->pinned_values) &&
      model->pinned_values) {
    reader.Note("enable_pagelock",
                "no effect: the cache's rows are in GPU memory");
  }
  bool fp8 = false;
  if (reader.Bool("fp8_quant", &fp8) && fp8) {
    reader.Wrong(
        "fp8_quant",
        "expected false, got true: rows are kept as float32, bit for bit");
  }
  model->fuse = fuse_all;
  reader.Bool("fuse_embedding_table", &model->fuse);
  for (const char* key : {"dense_file", "network_file", "label_dim", "slot_num",
                          "maxnum_des_feature_per_sample"}) {
    reader.Ignore(key, "no effect: only HugeCTR's own inference reads it");
  }
  reader.Finish();
}

// Notes that `fuse` makes no difference: each table is looked up by itself,
// with the same rows.
void NoteFusion(const Config& config, Findings* findings) {
  for (size_t m = 0; m < config.models.size(); ++m) {
    if (!config.models[m].fuse) continue;
    findings->notes.push_back(
        "models[" + std::to_string(m) +
        "].fuse_embedding_table: no effect: the rows are the same, and layers "
        "do not wait for each other");
  }
}

void CheckFilters(const std::vector<std::string>& filters,
                  ObjectReader* reader) {
  if (filters.empty()) {
    reader->Wrong("update_filters", "expected one pattern at least, got none");
  }
}

// Reads the keys for tiers that may be unavailable. For other tiers they have
// no effect. *outage: lookup_timeout_ms holds its default.
void ReadOutage(bool may_be_away, const std::string& type, ObjectReader* reader,
                OutageConfig* outage) {
  reader->Integer("lookup_timeout_ms", 0, kMostMs, &outage->lookup_timeout_ms);
  reader->Choice("on_unavailable", {{"error"}, {"skip"}},
                 &outage->on_unavailable);
  reader->Integer("breaker_failures", 1, 1000000, &outage->breaker_failures);
  reader->Integer("breaker_pause_ms", 0, kMostMs, &outage->breaker_pause_ms);
  if (may_be_away) return;
  for (const char* key : {"lookup_timeout_ms", "on_unavailable",
                          "breaker_failures", "breaker_pause_ms"}) {
    if (reader->Has(key)) {
      reader->Note(key, "no effect with type \"" + type + "\"");
    }
  }
}

using Types = std::vector<DatabaseType>;

// The names of a tier's types, for ObjectReader::Choice.
std::vector<std::vector<std::string>> NamesOf(const Types& types,
                                              DatabaseType::Tier tier) {
  std::vector<std::vector<std::string>> names;
  for (const DatabaseType& one : types) {
    if (one.tier == tier) names.push_back(one.names);
  }
  names.push_back({"disabled", "disable", "none"});
  return names;
}

// Returns whether models share the databases of a type.
bool IsShared(const Types& types, const std::string& type) {
  for (const DatabaseType& one : types) {
    if (one.names[0] == type) return one.is_shared();
  }
  return false;
}

void ReadVolatile(const Json& json, const Types& types, Findings* findings,
                  VolatileConfig* config) {
  ObjectReader reader(json, "volatile_db", findings);
  if (!reader.Choice("type", NamesOf(types, DatabaseType::Tier::kVolatile),
                     &config->type) &&
      !reader.Has("type")) {
    reader.Note("type",
                "is not given; upstream then has no volatile tier, here "
                "it is \"parallel_hash_map\"");
  }
  const bool shared = IsShared(types, config->type);
  // The key's place in Redis depends on the number, so all machines need the
  // same.
  if (shared) config->num_partitions = 8;
  reader.Integer("num_partitions", 1, 1024, &config->num_partitions);
  reader.Integer("max_batch_size", 1, 1 << 20, &config->max_batch_size);
  reader.IntegerOrHuge("overflow_margin", 1, &config->overflow_margin);
  reader.Choice("overflow_policy",
                {{"evict_random", "random"},
                 {"evict_least_used", "least_used"},
                 {"evict_oldest", "oldest"}},
                &config->overflow_policy);
  if (reader.Number("overflow_resolution_target", 0.0, 1.0,
                    &config->overflow_resolution_target) &&
      config->overflow_resolution_target == 0.0) {
    reader.Wrong("overflow_resolution_target", "expected more than 0, got 0");
  }
  reader.Number("initial_cache_rate", 0.0, 1.0, &config->initial_cache_rate);
  reader.Bool("cache_missed_embeddings", &config->cache_missed_embeddings);
  reader.Bool("initialize_after_startup", &config->initialize_after_startup);
  if (reader.Strings("update_filters", &config->update_filters)) {
    CheckFilters(config->update_filters, &reader);
  }
  reader.Ignore("allocation_rate",
                "no effect: memory grows with the rows, by 8 % of a segment");
  for (const char* key : {"shared_memory_size", "shared_memory_name",
                          "shared_memory_auto_remove"}) {
    reader.Ignore(key,
                  "no effect: processes share the pages of the mapped "
                  "table files");
  }
  RedisConfig& to = config->redis;
  std::vector<std::string> addresses;
  const Json* const address = json.Find("address");
  if (address != nullptr && address->kind == Json::Kind::kArray) {
    if (reader.Strings("address", &addresses)) {
      to.address.clear();
      for (const std::string& one : addresses) {
        to.address += (to.address.empty() ? "" : ",") + one;
      }
    }
  } else {
    reader.String("address", &to.address);
  }
  reader.String("user_name", &to.user_name);
  reader.String("password", &to.password);
  reader.String("password_file", &to.password_file);
  reader.String("password_env", &to.password_env);
  if (!to.password.empty() + !to.password_file.empty() +
          !to.password_env.empty() >
      1) {
    reader.Wrong("password",
                 "expected one of password, password_file and password_env");
  }
  reader.Integer("num_node_connections", 1, 1024, &to.num_node_connections);
  reader.Integer("timeout_ms", 1, kMostMs, &to.timeout_ms);
  OutageConfig& outage = config->outage;
  if (shared) {
    outage.lookup_timeout_ms = std::min(kLookupTimeoutMs, to.timeout_ms);
  }
  ReadOutage(shared, config->type, &reader, &outage);
  if (shared && outage.lookup_timeout_ms == 0) {
    outage.lookup_timeout_ms = to.timeout_ms;
  }
  if (shared && outage.lookup_timeout_ms > to.timeout_ms) {
    reader.Wrong("lookup_timeout_ms",
                 "expected at most timeout_ms, " +
                     std::to_string(to.timeout_ms) + ", got " +
                     std::to_string(outage.lookup_timeout_ms));
  }
  reader.Bool("enable_tls", &to.enable_tls);
  reader.String("tls_ca_certificate", &to.tls_ca_certificate);
  reader.String("tls_client_certificate", &to.tls_client_certificate);
  reader.String("tls_client_key", &to.tls_client_key);
  reader.String("tls_server_name_identification",
                &to.tls_server_name_identification);
  if (!shared) {
    for (const char* key :
         {"address", "user_name", "password", "password_file", "password_env",
          "num_node_connections", "timeout_ms", "enable_tls"}) {
      if (reader.Has(key)) {
        reader.Note(key, "no effect with type \"" + config->type + "\"");
      }
    }
  }
  reader.Finish();
}

void ReadPersistent(const Json& json, const Types& types, Findings* findings,
                    PersistentConfig* config) {
  ObjectReader reader(json, "persistent_db", findings);
  const auto names = NamesOf(types, DatabaseType::Tier::kPersistent);
  if (!reader.Choice("type", names, &config->type) && !reader.Has("type")) {
    std::string list;
    for (size_t i = 0; i + 1 < names.size(); ++i) {
      list += (i == 0 ? "\"" : ", \"") + names[i][0] + "\"";
    }
    reader.Wrong("type", "is required: " + list + " or \"disabled\"");
  }
  reader.String("path", &config->path);
  const bool shared = IsShared(types, config->type);
  if (shared && config->path.empty()) {
    reader.Wrong("path", "is required with type \"" + config->type +
                             "\": the store's folder");
  }
  ReadOutage(shared, config->type, &reader, &config->outage);
  reader.Integer("num_threads", 1, 1024, &config->num_threads);
  reader.Bool("read_only", &config->read_only);
  reader.Integer("max_batch_size", 1, 1 << 20, &config->max_batch_size);
  reader.Bool("initialize_after_startup", &config->initialize_after_startup);
  if (reader.Strings("update_filters", &config->update_filters)) {
    CheckFilters(config->update_filters, &reader);
  }
  reader.Finish();
}

void ReadUpdateSource(const Json& json, Findings* findings,
                      UpdateSourceConfig* config) {
  ObjectReader reader(json, "update_source", findings);
  if (!reader.Choice("type",
                     {{"kafka_message_queue", "kafka_mq", "kafka"},
                      {"directory"},
                      {"none", "disabled", "disable"}},
                     &config->type) &&
      !reader.Has("type")) {
    reader.Wrong("type",
                 "is required: \"kafka_message_queue\", \"directory\" or "
                 "\"none\"");
  }
  reader.String("brokers", &config->brokers);
  reader.String("path", &config->path);
  if (config->type == "directory" && config->path.empty()) {
    reader.Wrong(
        "path", "is required with type \"directory\": where files are dropped");
  }
  reader.Integer("metadata_refresh_interval_ms", 1, kMost,
                 &config->metadata_refresh_interval_ms);
  reader.Integer("receive_buffer_size", 1024, int64_t{1} << 30,
                 &config->receive_buffer_size);
  reader.Integer("poll_timeout_ms", 1, 600000, &config->poll_timeout_ms);
  reader.Integer("max_batch_size", 1, 1 << 20, &config->max_batch_size);
  reader.Integer("failure_backoff_ms", 0, 600000, &config->failure_backoff_ms);
  reader.Integer("max_commit_interval", 1, 1 << 20,
                 &config->max_commit_interval);
  reader.Finish();
}

// Returns whether updates of a model pass a tier's filters. A filter that is no
// valid expression is reported when the source is opened.
bool MatchesAny(const std::vector<std::string>& filters,
                const std::vector<ModelConfig>& models) {
  for (const std::string& filter : filters) {
    try {
      const std::regex expression(filter, std::regex::extended);
      for (const ModelConfig& model : models) {
        if (std::regex_match(model.name, expression)) return true;
      }
    } catch (const std::regex_error&) {
      return true;
    }
  }
  return false;
}

void NoteFilters(const Config& config, Findings* findings) {
  if (config.update_source.type == "none") return;
  const auto note = [&](const char* tier, const std::string& type,
                        const std::vector<std::string>& filters) {
    if (type == "disabled" || MatchesAny(filters, config.models)) return;
    findings->notes.push_back(
        std::string(tier) +
        ".update_filters: no model of this file is matched, so the update "
        "source feeds none of them; a filter is compared with a model's name "
        "as a whole (\"^hps_.+$\", which upstream documents as its default, "
        "matches names that begin with hps_)");
  };
  note("volatile_db", config.volatile_db.type,
       config.volatile_db.update_filters);
  note("persistent_db", config.persistent_db.type,
       config.persistent_db.update_filters);
}

// Finds keys that are valid alone and wrong together.
void CheckTogether(const Config& config, const Types& types,
                   Findings* findings) {
  std::set<std::string> seen;
  for (size_t m = 0; m < config.models.size(); ++m) {
    if (!seen.insert(config.models[m].name).second) {
      findings->errors.push_back("models[" + std::to_string(m) + "].model: \"" +
                                 config.models[m].name + "\" occurs twice");
    }
  }
  const VolatileConfig& memory = config.volatile_db;
  const bool below = config.persistent_db.type != "disabled";
  const bool has_memory = memory.type != "disabled";
  if (!has_memory && !below) {
    findings->notes.push_back(
        "volatile_db and persistent_db are disabled: every lookup returns "
        "the table's default value");
  }
  if (has_memory && !below && memory.overflow_margin != kMost) {
    findings->notes.push_back(
        "volatile_db.overflow_margin: without a persistent_db, lookups of an "
        "evicted row return the table's default value");
  }
  if (has_memory && !below && memory.initial_cache_rate < 1.0 &&
      memory.initialize_after_startup) {
    findings->errors.push_back(
        "volatile_db.initial_cache_rate: without a persistent_db, lookups of "
        "rows that are not loaded would return default values; expected 1 or a "
        "persistent_db (\"mapped_files\" reads the table folders), got " +
        std::to_string(memory.initial_cache_rate));
  }
  if (has_memory && !below && !memory.initialize_after_startup &&
      !IsShared(types, memory.type)) {
    findings->errors.push_back(
        "volatile_db.initialize_after_startup: false leaves type \"" +
        memory.type +
        "\" empty, and there is no persistent_db; expected true or a "
        "persistent_db, got false");
  }
  if (memory.cache_missed_embeddings && !below) {
    findings->notes.push_back(
        "volatile_db.cache_missed_embeddings: no effect without a "
        "persistent_db");
  }
}

}  // namespace

ev::Status ParseConfig(const std::string& text, const std::string& where,
                       const std::string& folder,
                       const std::vector<DatabaseType>& types, Config* config) {
  *config = Config();
  config->where = where;
  Json json;
  EV_RETURN_IF_ERROR(ParseJson(text, where, &json));
  Findings findings;
  ObjectReader reader(json, "", &findings);
  reader.Bool("supportlonglong", &config->long_keys);
  bool fuse = false;
  reader.Bool("fuse_embedding_table", &fuse);
  config->volatile_db.num_partitions = std::max<int64_t>(
      1, std::min<int64_t>(16, std::thread::hardware_concurrency()));
  const Json* const memory = reader.Object("volatile_db");
  if (memory != nullptr) {
    ReadVolatile(*memory, types, &findings, &config->volatile_db);
  }
  const Json* const below = reader.Object("persistent_db");
  if (below != nullptr) {
    ReadPersistent(*below, types, &findings, &config->persistent_db);
  }
  const Json* const source = reader.Object("update_source");
  if (source != nullptr) {
    ReadUpdateSource(*source, &findings, &config->update_source);
  }
  const Json* const models = reader.Array("models");
  if (models == nullptr || models->items.empty()) {
    if (models != nullptr || !reader.Has("models")) {
      reader.Wrong("models", "expected one model at least, got none");
    }
  } else {
    for (size_t m = 0; m < models->items.size(); ++m) {
      config->models.emplace_back();
      ReadModel(models->items[m], "models[" + std::to_string(m) + "]", folder,
                fuse, &findings, &config->models.back());
    }
  }
  reader.Finish();
  if (findings.errors.empty()) {
    CheckTogether(*config, types, &findings);
    NoteFusion(*config, &findings);
    NoteFilters(*config, &findings);
  }
  config->notes = findings.notes;
  config->errors = findings.errors;
  if (findings.errors.empty()) return ev::Status::OK();
  std::string message = where + ": ";
  for (size_t i = 0; i < findings.errors.size(); ++i) {
    message += (i == 0 ? "" : "\n  ") + findings.errors[i];
  }
  return ev::InvalidArgument(message);
}

ev::Status ReadConfig(const std::string& path,
                      const std::vector<DatabaseType>& types, Config* config,
                      std::string* text) {
  std::ifstream file(path, std::ios::binary);
  std::string read((std::istreambuf_iterator<char>(file)),
                   std::istreambuf_iterator<char>());
  if (!file.good() && !file.eof()) {
    return ev::NotFound("cannot read the configuration '" + path +
                        "': " + std::strerror(errno));
  }
  if (IsFolder(path)) {
    return ev::InvalidArgument("the configuration '" + path + "' is a folder");
  }
  const size_t slash = path.rfind('/');
  const std::string folder =
      slash == std::string::npos ? "." : path.substr(0, slash);
  const ev::Status status = ParseConfig(read, path, folder, types, config);
  if (text != nullptr) text->swap(read);
  return status;
}

}  // namespace hps
