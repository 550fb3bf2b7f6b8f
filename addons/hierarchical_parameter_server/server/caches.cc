// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/server/caches.h"

#include <algorithm>
#include <utility>

#include "addons/hierarchical_parameter_server/cache/cache_size.h"
#include "addons/hierarchical_parameter_server/cache/make_device_cache.h"
#include "addons/hierarchical_parameter_server/server/cached_lookup.h"

namespace hps {
namespace {

constexpr int64_t kKeysAtOnce = 65536;

std::string Where(const ModelConfig& model, const ServedTable& table) {
  return "model '" + model.name + "', table '" + table.config().name + "': ";
}

bool IsWhole(const ModelConfig& model) {
  return model.cache_type == "static" || model.gpucacheper >= 1.0;
}

ev::Status OpenFiles(const ServedTable& table,
                     std::unique_ptr<TableDirectory>* files) {
  return TableDirectory::Open(table.config().folder, table.config().format(),
                              files);
}

// Returns a table's number of rows: that of its files, or of the tiers if there
// are none.
int64_t RowsOf(const ServedTable& table, const TableDirectory* files) {
  if (files != nullptr) return files->rows();
  int64_t most = 0;
  for (const auto& tier : {table.above(), table.below()}) {
    int64_t rows = 0;
    if (tier != nullptr && tier->Count(&rows).ok()) most = std::max(most, rows);
  }
  return most;
}

// Caches the first rows of the files, read from the tiers.
ev::Status FillFromTiers(const TableDirectory& files, KeyBits bits,
                         ServedTable* table, ev::Parallel* parallel) {
  CacheTable* const cache = table->cache().get();
  const int64_t rows = std::min(files.rows(), cache->options().capacity);
  std::vector<int64_t> normal;
  for (int64_t begin = 0; begin < rows; begin += kKeysAtOnce) {
    const ev::Span<const int64_t> keys =
        files.keys().subspan(begin, std::min(kKeysAtOnce, rows - begin));
    normal.clear();
    for (const int64_t key : keys) {
      int64_t as_asked;
      if (NormalKey(bits, key, &as_asked)) normal.push_back(as_asked);
    }
    EV_RETURN_IF_ERROR(BringUp(normal, cache, table->tiers().get(), parallel));
  }
  return ev::Status::OK();
}

}  // namespace

std::shared_ptr<Background> Caches::background() {
  std::lock_guard<std::mutex> lock(mu_);
  if (background_ == nullptr) background_ = std::make_shared<Background>();
  return background_;
}

ev::Status Caches::Device(std::shared_ptr<DeviceCache>* device,
                          std::vector<std::string>* notes) {
  std::lock_guard<std::mutex> lock(mu_);
  if (device_ == nullptr) {
    const ev::Status status = MakeDeviceCache(&device_);
    if (status.code() == ev::StatusCode::kFailedPrecondition) {
      if (!has_logged_) {
        notes->push_back("gpucache: " + status.message() +
                         "; the cache is left out, and rows are looked up in "
                         "host memory");
      }
      has_logged_ = true;
    } else {
      EV_RETURN_IF_ERROR(status);
    }
  }
  *device = device_;
  return ev::Status::OK();
}

ev::Status Caches::Attach(
    const ModelConfig& model,
    const std::vector<std::shared_ptr<ServedTable>>& tables,
    std::vector<std::string>* notes) {
  if (!model.gpucache) return ev::Status::OK();
  std::shared_ptr<DeviceCache> device;
  EV_RETURN_IF_ERROR(Device(&device, notes));
  if (device == nullptr) return ev::Status::OK();
  ev::Status status;
  for (const std::shared_ptr<ServedTable>& table : tables) {
    std::unique_ptr<TableDirectory> files;
    OpenFiles(*table, &files);
    const CacheSize size = CacheSizeFor(RowsOf(*table, files.get()),
                                        model.gpucacheper, IsWhole(model));
    CacheTableOptions options;
    options.tag = table->tag();
    options.format = table->config().format();
    options.capacity = size.capacity;
    options.evicts = size.evicts;
    options.policy =
        model.cache_policy == "lfu" ? CachePolicy::kLfu : CachePolicy::kLru;
    options.max_keys = table->max_keys();
    std::shared_ptr<CacheTable> cache;
    status = device->OpenTable(options, &cache);
    if (!status.ok()) {
      status = ev::Status(
          status.code(),
          Where(model, *table) + status.message() +
              "; reduce gpucacheper, or disable gpucache of some models "
              "(python -m hierarchical_parameter_server check shows the "
              "sizes)");
      break;
    }
    table->SetCache(std::move(cache));
  }
  if (!status.ok()) {
    for (const auto& table : tables) table->SetCache(nullptr);
  }
  return status;
}

void Caches::Fill(const ModelConfig& model,
                  const std::vector<std::shared_ptr<ServedTable>>& tables,
                  KeyBits bits, ev::Parallel* parallel,
                  std::vector<std::string>* notes) {
  if (!IsWhole(model) &&
      !(model.preload_cache && model.refresh_percentage > 0)) {
    return;
  }
  for (const std::shared_ptr<ServedTable>& table : tables) {
    if (table->cache() == nullptr) continue;
    std::unique_ptr<TableDirectory> files;
    ev::Status status = OpenFiles(*table, &files);
    if (status.ok())
      status = FillFromTiers(*files, bits, table.get(), parallel);
    if (!status.ok()) {
      notes->push_back(
          Where(model, *table) +
          "its cache was not filled at the start: " + status.message());
    }
  }
}

}  // namespace hps
