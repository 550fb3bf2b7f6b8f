// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "addons/hierarchical_parameter_server/database/rocksdb/rocksdb_store.h"

namespace hps {
namespace {

constexpr size_t kKeyBytes = sizeof(int64_t);
constexpr int64_t kRowsOfAVisit = 4096;

// Minimum number of keys per library call: the library sorts them and reads
// each block once for all its keys.
constexpr int64_t kKeysOfAFetch = 2048;

const char* BytesOf(const int64_t& key) {
  return reinterpret_cast<const char*>(&key);
}

uint64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

ev::Status DataLoss(const std::string& message) {
  return ev::Status(ev::StatusCode::kDataLoss, message);
}

}  // namespace

RocksDbTable::RocksDbTable(std::shared_ptr<RocksDbStore> store,
                           RocksDbLibrary::Family* family, std::string tag,
                           const RowFormat& format)
    : store_(std::move(store)),
      family_(family),
      tag_(std::move(tag)),
      format_(format),
      width_(format.width()) {}

RocksDbTable::~RocksDbTable() { store_->library().family_destroy(family_); }

ev::Status RocksDbTable::Named(const ev::Status& status) const {
  if (status.ok()) return status;
  return ev::Status(status.code(), "database rocks_db, table " + tag_ + ": " +
                                       status.message());
}

ev::Status RocksDbTable::CheckNotDropped() const {
  return is_dropped_.load()
             ? Named(ev::FailedPrecondition("the table was dropped"))
             : ev::Status::OK();
}

ev::Status RocksDbTable::CheckWritable(const char* what) const {
  EV_RETURN_IF_ERROR(CheckNotDropped());
  if (!store_->options().read_only) return ev::Status::OK();
  return Named(ev::FailedPrecondition(std::string(what) +
                                      " of a database that is read_only"));
}

// Fetches the positions with indices [begin, end).
ev::Status RocksDbTable::FetchPart(const RocksDbLibrary::ReadOptions* reads,
                                   ev::Span<const int64_t> keys,
                                   Positions wanted, int64_t begin, int64_t end,
                                   float* rows, uint8_t* is_found) const {
  const RocksDbLibrary& r = store_->library();
  const size_t count = end - begin;
  const size_t row_bytes = sizeof(float) * width_;
  std::vector<const char*> texts(count);
  const std::vector<size_t> sizes(count, kKeyBytes);
  std::vector<char*> errors(count, nullptr);
  for (size_t i = 0; i < count; ++i) {
    texts[i] = BytesOf(keys[wanted[begin + i]]);
  }
  ev::Status status;
  const auto take = [&](size_t i, const char* value, size_t bytes) {
    if (errors[i] != nullptr) {
      status = store_->Take(errors[i]);
      return;
    }
    is_found[begin + i] = value != nullptr;
    if (value == nullptr) return;
    const int64_t p = wanted[begin + i];
    if (bytes == row_bytes) {
      std::memcpy(rows + p * width_, value, bytes);
    } else {
      status = DataLoss("the row of key " + std::to_string(keys[p]) + " has " +
                        std::to_string(bytes) + " bytes, expected " +
                        std::to_string(row_bytes));
    }
  };
  if (r.batched_multi_get != nullptr) {
    std::vector<RocksDbLibrary::Pinned*> values(count, nullptr);
    r.batched_multi_get(store_->db(), reads, family_, count, texts.data(),
                        sizes.data(), values.data(), errors.data(), false);
    for (size_t i = 0; i < count; ++i) {
      size_t bytes = 0;
      const char* const value =
          values[i] == nullptr ? nullptr : r.pinned_value(values[i], &bytes);
      take(i, value, bytes);
      if (values[i] != nullptr) r.pinned_destroy(values[i]);
    }
    return status;
  }
  const std::vector<const RocksDbLibrary::Family*> families(count, family_);
  std::vector<char*> values(count, nullptr);
  std::vector<size_t> bytes(count, 0);
  r.multi_get(store_->db(), reads, families.data(), count, texts.data(),
              sizes.data(), values.data(), bytes.data(), errors.data());
  for (size_t i = 0; i < count; ++i) {
    take(i, values[i], bytes[i]);
    if (values[i] != nullptr) r.free(values[i]);
  }
  return status;
}

ev::Status RocksDbTable::Fetch(ev::Span<const int64_t> keys, Positions wanted,
                               float* rows, int64_t* missing,
                               int64_t* num_missing, ev::Parallel* parallel) {
  EV_RETURN_IF_ERROR(CheckNotDropped());
  const int64_t count = wanted.size();
  const int64_t share = (count + parallel->num_threads() - 1) /
                        std::max(parallel->num_threads(), 1);
  const int64_t most = std::min(std::max(kKeysOfAFetch, share),
                                store_->options().max_batch_size);
  const int64_t tasks = (count + most - 1) / most;
  std::vector<uint8_t> is_found(count, 0);
  const RocksDbLibrary& r = store_->library();
  const int64_t limit_ms = store_->options().fetch_timeout_ms;
  const std::unique_ptr<RocksDbLibrary::ReadOptions,
                        void (*)(RocksDbLibrary::ReadOptions*)>
      limited(limit_ms > 0 ? r.read_options_create() : nullptr,
              r.read_options_destroy);
  if (limited != nullptr) {
    r.read_options_deadline(limited.get(), NowUs() + 1000 * limit_ms);
  }
  const RocksDbLibrary::ReadOptions* const reads =
      limited != nullptr ? limited.get() : store_->reads();
  std::mutex mutex;
  ev::Status failed;
  const auto one = [&](int64_t task) {
    const ev::Status status =
        FetchPart(reads, keys, wanted, task * most,
                  std::min(count, (task + 1) * most), rows, is_found.data());
    if (status.ok()) return;
    std::lock_guard<std::mutex> lock(mutex);
    failed = status;
  };
  if (tasks == 1) {
    one(0);
  } else if (tasks > 1) {
    parallel->For(tasks, one);
  }
  EV_RETURN_IF_ERROR(Named(failed));
  int64_t num = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (is_found[i] == 0) missing[num++] = wanted[i];
  }
  *num_missing = num;
  return ev::Status::OK();
}

ev::Status RocksDbTable::Insert(ev::Span<const int64_t> keys, const float* rows,
                                ev::Parallel* parallel) {
  EV_RETURN_IF_ERROR(CheckWritable("Insert"));
  if (keys.empty()) return ev::Status::OK();
  const RocksDbLibrary& r = store_->library();
  const int64_t count = static_cast<int64_t>(keys.size());
  const int64_t most = store_->options().max_batch_size;
  RocksDbLibrary::Batch* const batch = r.batch_create();
  ev::Status status;
  for (int64_t begin = 0; begin < count && status.ok(); begin += most) {
    r.batch_clear(batch);
    const int64_t end = std::min(count, begin + most);
    for (int64_t i = begin; i < end; ++i) {
      r.batch_put(batch, family_, BytesOf(keys[i]), kKeyBytes,
                  reinterpret_cast<const char*>(rows + i * width_),
                  sizeof(float) * width_);
    }
    char* error = nullptr;
    r.write(store_->db(), store_->writes(), batch, &error);
    status = store_->Take(error);
    if (status.ok()) inserted_ += end - begin;
  }
  r.batch_destroy(batch);
  EV_RETURN_IF_ERROR(Named(status));
  return Named(store_->Sync());
}

ev::Status RocksDbTable::Remove(ev::Span<const int64_t> keys,
                                int64_t* removed) {
  EV_RETURN_IF_ERROR(CheckWritable("Remove"));
  if (removed != nullptr) {
    const std::unordered_set<int64_t> distinct(keys.begin(), keys.end());
    const std::vector<int64_t> list(distinct.begin(), distinct.end());
    std::vector<float> rows(list.size() * width_);
    std::vector<int64_t> missing(list.size());
    int64_t num_missing = 0;
    ev::Serial serial;
    EV_RETURN_IF_ERROR(
        Fetch(list, Positions::All(static_cast<int64_t>(list.size())),
              rows.data(), missing.data(), &num_missing, &serial));
    *removed = static_cast<int64_t>(list.size()) - num_missing;
  }
  const RocksDbLibrary& r = store_->library();
  RocksDbLibrary::Batch* const batch = r.batch_create();
  for (const int64_t& key : keys) {
    r.batch_remove(batch, family_, BytesOf(key), kKeyBytes);
  }
  char* error = nullptr;
  r.write(store_->db(), store_->writes(), batch, &error);
  r.batch_destroy(batch);
  EV_RETURN_IF_ERROR(Named(store_->Take(error)));
  return Named(store_->Sync());
}

// Visits every row as it was when the walk began.
ev::Status RocksDbTable::Walk(
    const std::function<ev::Status(int64_t key, const char* row)>& one) const {
  EV_RETURN_IF_ERROR(CheckNotDropped());
  const RocksDbLibrary& r = store_->library();
  RocksDbLibrary::Iterator* const at =
      r.iterator_create(store_->db(), store_->reads(), family_);
  ev::Status status;
  for (r.iterator_first(at); status.ok() && r.iterator_valid(at) != 0;
       r.iterator_next(at)) {
    size_t key_bytes = 0, bytes = 0;
    const char* const key_at = r.iterator_key(at, &key_bytes);
    const char* const value = r.iterator_value(at, &bytes);
    if (key_bytes != kKeyBytes || bytes != sizeof(float) * width_) {
      status = Named(DataLoss("a row of " + std::to_string(bytes) +
                              " bytes under a key of " +
                              std::to_string(key_bytes) + " bytes"));
      break;
    }
    int64_t key;
    std::memcpy(&key, key_at, sizeof(key));
    status = one(key, value);
  }
  if (status.ok()) {
    char* error = nullptr;
    r.iterator_error(at, &error);
    status = Named(store_->Take(error));
  }
  r.iterator_destroy(at);
  return status;
}

ev::Status RocksDbTable::Count(int64_t* rows) {
  int64_t count = 0;
  EV_RETURN_IF_ERROR(Walk([&](int64_t, const char*) {
    ++count;
    return ev::Status::OK();
  }));
  *rows = count;
  return ev::Status::OK();
}

ev::Status RocksDbTable::ForEach(const Visit& visit) {
  std::vector<int64_t> keys;
  std::vector<float> rows(kRowsOfAVisit * width_);
  EV_RETURN_IF_ERROR(Walk([&](int64_t key, const char* row) {
    std::memcpy(&rows[keys.size() * width_], row, sizeof(float) * width_);
    keys.push_back(key);
    if (static_cast<int64_t>(keys.size()) < kRowsOfAVisit) {
      return ev::Status::OK();
    }
    const ev::Status status = visit(keys, rows.data());
    keys.clear();
    return status;
  }));
  return keys.empty() ? ev::Status::OK() : visit(keys, rows.data());
}

ev::Status RocksDbTable::Statistics(TableStatistics* statistics) {
  EV_RETURN_IF_ERROR(CheckNotDropped());
  const RocksDbLibrary& r = store_->library();
  TableStatistics made;
  uint64_t number = 0;
  if (r.property(store_->db(), family_, "rocksdb.estimate-num-keys", &number) ==
      0) {
    made.rows = static_cast<int64_t>(number);
  }
  if (r.property(store_->db(), family_, "rocksdb.cur-size-all-mem-tables",
                 &number) == 0) {
    made.host_bytes = static_cast<int64_t>(number);
  }
  made.inserted = inserted_.load();
  *statistics = made;
  return ev::Status::OK();
}

ev::Status RocksDbTable::Drop() {
  EV_RETURN_IF_ERROR(CheckWritable("DropTable"));
  EV_RETURN_IF_ERROR(Named(store_->DropFamily(family_)));
  is_dropped_ = true;
  return Named(store_->RemoveFormat(tag_));
}

}  // namespace hps
