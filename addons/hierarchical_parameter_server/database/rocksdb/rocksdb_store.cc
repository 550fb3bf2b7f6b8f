// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/rocksdb/rocksdb_store.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace hps {
namespace {

constexpr char kDefault[] = "default";
constexpr char kWidths[] = "hps_width/";
constexpr double kFilterBits = 10;  // one absent key in a hundred is searched
constexpr int kNoCompression = 0;   // floats hardly shrink
constexpr char kTimedOut[] = "Operation timed out";

ev::Status NoStore(const std::string& path) {
  return ev::NotFound(
      path + ": there is no RocksDB store, and read_only forbids creating one");
}

}  // namespace

ev::Status RocksDbStore::Take(char* error) const {
  if (error == nullptr) return ev::Status::OK();
  const std::string text = error;
  library_->free(error);
  const std::string message = options_.path + ": " + text;
  return text.compare(0, sizeof(kTimedOut) - 1, kTimedOut) == 0
             ? ev::Unavailable(message + " (lookup_timeout_ms is " +
                               std::to_string(options_.fetch_timeout_ms) + ")")
             : ev::Internal(message);
}

ev::Status RocksDbStore::Reach(const std::string& path, bool read_only) {
  const RocksDbLibrary* r = nullptr;
  EV_RETURN_IF_ERROR(RocksDbLibrary::Get(&r));
  if (access((path + "/CURRENT").c_str(), F_OK) != 0) {
    if (read_only) return NoStore(path);
    // RocksDB creates only the last folder of the path.
    const size_t slash = path.find_last_of('/');
    const std::string above = slash == std::string::npos ? "."
                              : slash == 0               ? "/"
                                           : path.substr(0, slash);
    const std::string& folder = access(path.c_str(), F_OK) == 0 ? path : above;
    if (access(folder.c_str(), W_OK | X_OK) == 0) return ev::Status::OK();
    return ev::FailedPrecondition(
        path + ": the folder " + folder +
        " cannot be written: " + std::strerror(errno));
  }
  RocksDbLibrary::Options* const options = r->options_create();
  char* error = nullptr;
  size_t count = 0;
  char** const list = r->list_families(options, path.c_str(), &count, &error);
  if (error == nullptr) r->list_destroy(list, count);
  r->options_destroy(options);
  if (error == nullptr) return ev::Status::OK();
  const ev::Status status = ev::Unavailable(path + ": " + error);
  r->free(error);
  return status;
}

ev::Status RocksDbStore::Open(const RocksDbOptions& options,
                              std::shared_ptr<RocksDbStore>* store) {
  const RocksDbLibrary* library = nullptr;
  EV_RETURN_IF_ERROR(RocksDbLibrary::Get(&library));
  std::shared_ptr<RocksDbStore> made(new RocksDbStore(library, options));
  EV_RETURN_IF_ERROR(made->Open());
  *store = std::move(made);
  return ev::Status::OK();
}

ev::Status RocksDbStore::Open() {
  const RocksDbLibrary& r = *library_;
  if (options_.fetch_timeout_ms > 0 && r.read_options_deadline == nullptr) {
    return ev::FailedPrecondition(
        options_.path +
        ": lookup_timeout_ms: this RocksDB library is older than deadlines; "
        "expected 0 (no limit) or a newer library, got " +
        std::to_string(options_.fetch_timeout_ms));
  }
  rocks_options_ = r.options_create();
  r.options_create_if_missing(rocks_options_, options_.read_only ? 0 : 1);
  r.options_increase_parallelism(rocks_options_, options_.num_threads);
  r.options_compression(rocks_options_, kNoCompression);
  r.options_keep_log_files(rocks_options_, 2);
  RocksDbLibrary::TableOptions* const table = r.table_options_create();
  RocksDbLibrary::Cache* const cache = r.cache_lru(options_.block_cache_bytes);
  r.table_options_cache(table, cache);
  r.table_options_filter(table, r.filter_bloom(kFilterBits));
  r.options_table_factory(rocks_options_, table);
  r.cache_destroy(cache);
  r.table_options_destroy(table);
  reads_ = r.read_options_create();
  writes_ = r.write_options_create();

  std::vector<std::string> names = {kDefault};
  const std::string current = options_.path + "/CURRENT";
  if (access(current.c_str(), F_OK) == 0) {
    char* error = nullptr;
    size_t count = 0;
    char** list =
        r.list_families(rocks_options_, options_.path.c_str(), &count, &error);
    EV_RETURN_IF_ERROR(Take(error));
    names.assign(list, list + count);
    r.list_destroy(list, count);
  } else if (options_.read_only) {
    return NoStore(options_.path);
  }
  std::vector<const char*> texts;
  for (const std::string& name : names) texts.push_back(name.c_str());
  const std::vector<const RocksDbLibrary::Options*> family_options(
      names.size(), rocks_options_);
  std::vector<Family*> families(names.size(), nullptr);
  char* error = nullptr;
  const int count = static_cast<int>(names.size());
  db_ = options_.read_only
            ? r.open_read_only(rocks_options_, options_.path.c_str(), count,
                               texts.data(), family_options.data(),
                               families.data(), 0, &error)
            : r.open(rocks_options_, options_.path.c_str(), count, texts.data(),
                     family_options.data(), families.data(), &error);
  if (error != nullptr) db_ = nullptr;
  EV_RETURN_IF_ERROR(Take(error));
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == kDefault) {
      default_family_ = families[i];
    } else {
      families_[names[i]] = families[i];
    }
  }
  return ev::Status::OK();
}

RocksDbStore::~RocksDbStore() {
  const RocksDbLibrary& r = *library_;
  for (const auto& family : families_) r.family_destroy(family.second);
  if (default_family_ != nullptr) r.family_destroy(default_family_);
  if (db_ != nullptr) r.close(db_);
  if (reads_ != nullptr) r.read_options_destroy(reads_);
  if (writes_ != nullptr) r.write_options_destroy(writes_);
  if (rocks_options_ != nullptr) r.options_destroy(rocks_options_);
}

ev::Status RocksDbStore::CreateFamily(const std::string& name,
                                      Family** family) {
  char* error = nullptr;
  *family = library_->create_family(db_, rocks_options_, name.c_str(), &error);
  return Take(error);
}

ev::Status RocksDbStore::DropFamily(Family* family) {
  char* error = nullptr;
  library_->drop_family(db_, family, &error);
  return Take(error);
}

ev::Status RocksDbStore::ReadFormat(const std::string& tag, RowFormat* format) {
  const std::string key = kWidths + tag;
  char* error = nullptr;
  size_t bytes = 0;
  char* const value = library_->get(db_, reads_, default_family_, key.data(),
                                    key.size(), &bytes, &error);
  EV_RETURN_IF_ERROR(Take(error));
  *format = RowFormat();
  if (value == nullptr) return ev::Status::OK();
  const std::string text(value, bytes);
  library_->free(value);
  if (ParseFormatText(text, format)) return ev::Status::OK();
  return ev::Status(
      ev::StatusCode::kDataLoss,
      options_.path + ": the width of table " + tag + " is '" + text + "'");
}

ev::Status RocksDbStore::WidthOfFirstRow(Family* family, int* width) {
  RocksDbLibrary::Iterator* const at =
      library_->iterator_create(db_, reads_, family);
  library_->iterator_first(at);
  size_t bytes = 0;
  if (library_->iterator_valid(at) != 0) library_->iterator_value(at, &bytes);
  char* error = nullptr;
  library_->iterator_error(at, &error);
  library_->iterator_destroy(at);
  EV_RETURN_IF_ERROR(Take(error));
  *width = static_cast<int>(bytes / sizeof(float));
  if (bytes % sizeof(float) == 0) return ev::Status::OK();
  return ev::Status(ev::StatusCode::kDataLoss,
                    "the first row has " + std::to_string(bytes) + " bytes");
}

ev::Status RocksDbStore::WriteFormat(const std::string& tag,
                                     const RowFormat& format) {
  const std::string key = kWidths + tag;
  const std::string text = FormatText(format);
  char* error = nullptr;
  library_->put(db_, writes_, default_family_, key.data(), key.size(),
                text.data(), text.size(), &error);
  EV_RETURN_IF_ERROR(Take(error));
  return Sync();
}

ev::Status RocksDbStore::RemoveFormat(const std::string& tag) {
  const std::string key = kWidths + tag;
  char* error = nullptr;
  library_->remove(db_, writes_, default_family_, key.data(), key.size(),
                   &error);
  return Take(error);
}

ev::Status RocksDbStore::Sync() {
  char* error = nullptr;
  library_->flush_log(db_, 1, &error);
  return Take(error);
}

}  // namespace hps
