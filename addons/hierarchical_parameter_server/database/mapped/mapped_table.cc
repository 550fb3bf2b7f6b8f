// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/mapped/mapped_table.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>
#include <vector>

#include "addons/hierarchical_parameter_server/database/fetch_in_tasks.h"
#include "addons/hierarchical_parameter_server/database/hash_map/hash_map.h"
#include "kernels/engine/base/pages.h"
#include "kernels/engine/base/prefetch.h"

namespace hps {
namespace {

constexpr int kStage = 16;  // keys per pipeline stage

// Makes an in-memory table that belongs to no database.
ev::Status MakeTable(const std::string& name, const std::string& tag,
                     const RowFormat& format, std::shared_ptr<Table>* table) {
  HashMapOptions options;
  options.name = name;
  options.num_partitions = 1;
  std::unique_ptr<Database> map;
  EV_RETURN_IF_ERROR(HashMap::Make(options, &map));
  return map->OpenTable(tag, format, table);
}

}  // namespace

MappedTable::MappedTable(const std::string& database, const std::string& tag,
                         const RowFormat& format)
    : database_(database),
      tag_(tag),
      format_(format),
      width_(format.width()),
      content_(std::make_shared<Content>()) {}

ev::Status MappedTable::Attach(const std::string& folder, KeyBits bits,
                               std::string* note) {
  auto fresh = std::make_shared<Content>();
  EV_RETURN_IF_ERROR(TableDirectory::Open(folder, format_, &fresh->directory));
  const ev::Status same = CheckFormat(fresh->directory->format(), format_);
  if (!same.ok()) {
    return ev::Status(
        same.code(),
        "'" + folder + "', which is served from its files: " + same.message() +
            "; convert the table with this row type");
  }
  EV_RETURN_IF_ERROR(
      TableIndex::Open(*fresh->directory, bits, &fresh->index, note));
  fresh->count = fresh->index->distinct();
  // A row is on one or two pages. The index is small and soon read as a whole,
  // so it gets no such advice.
  if (width_ * sizeof(float) <= ev::kSmallPage) {
    fresh->directory->vector_file().WillBeReadAtRandom();
  }
  std::lock_guard<std::mutex> writer(writer_);
  std::atomic_store(&content_, std::move(fresh));
  return ev::Status::OK();
}

ev::Status MappedTable::Content::CheckIndex() const {
  if (!is_damaged.load(std::memory_order_relaxed)) return ev::Status::OK();
  return ev::Status(ev::StatusCode::kDataLoss,
                    "the file hps_index (with 32-bit keys hps_index32) of '" +
                        directory->folder() +
                        "' is damaged: remove it and reload the model");
}

int64_t MappedTable::FindInFiles(const Content& content, int64_t key) {
  if (content.directory == nullptr) return -1;
  const int64_t row = content.index->Find(key, content.index->BucketOf(key));
  if (row == TableIndex::kDamaged) content.is_damaged = true;
  return row;
}

int64_t MappedTable::FetchFromFiles(const Content& content,
                                    ev::Span<const int64_t> keys,
                                    const Positions& wanted, int64_t begin,
                                    int64_t end, float* rows,
                                    int64_t* missing) const {
  struct Stage {
    int64_t bucket[kStage];
    int64_t row[kStage];
    int64_t position[kStage];
    int count;
  };
  Stage stages[3];
  const TableIndex& index = *content.index;
  const TableDirectory& directory = *content.directory;
  int64_t num_missing = 0;
  const int64_t num_stages = (end - begin + kStage - 1) / kStage;
  for (int64_t s = 0; s < num_stages + 2; ++s) {
    if (s < num_stages) {
      Stage& stage = stages[s % 3];
      const int64_t first = begin + s * kStage;
      stage.count = static_cast<int>(std::min<int64_t>(kStage, end - first));
      for (int i = 0; i < stage.count; ++i) {
        stage.position[i] = wanted[first + i];
        stage.bucket[i] = index.BucketOf(keys[stage.position[i]]);
        index.PrefetchBucket(stage.bucket[i]);
      }
    }
    if (s >= 1 && s - 1 < num_stages) {
      Stage& stage = stages[(s - 1) % 3];
      for (int i = 0; i < stage.count; ++i) {
        stage.row[i] = index.Find(keys[stage.position[i]], stage.bucket[i]);
        if (stage.row[i] == TableIndex::kDamaged) content.is_damaged = true;
        if (stage.row[i] >= 0) {
          ev::PrefetchBytes(directory.row(stage.row[i]),
                            width_ * sizeof(float));
        }
      }
    }
    if (s >= 2) {
      const Stage& stage = stages[(s - 2) % 3];
      for (int i = 0; i < stage.count; ++i) {
        if (stage.row[i] < 0) {
          missing[num_missing++] = stage.position[i];
          continue;
        }
        std::memcpy(rows + stage.position[i] * width_,
                    directory.row(stage.row[i]), width_ * sizeof(float));
      }
    }
  }
  return num_missing;
}

ev::Status MappedTable::Fetch(ev::Span<const int64_t> keys, Positions wanted,
                              float* rows, int64_t* missing,
                              int64_t* num_missing, ev::Parallel* parallel) {
  const std::shared_ptr<Content> content = Now();
  const bool changed = content->changed.load(std::memory_order_acquire);
  if (changed) {
    // Stored rows take precedence over removed keys and the files.
    int64_t count = 0;
    EV_RETURN_IF_ERROR(
        content->stored->Fetch(keys, wanted, rows, missing, &count, parallel));
    wanted = Positions::Of(missing, count);
  }
  if (content->directory == nullptr) {
    for (int64_t i = 0; i < wanted.size(); ++i) missing[i] = wanted[i];
    *num_missing = wanted.size();
    return ev::Status::OK();
  }
  std::vector<int64_t> gone, present;
  if (changed && wanted.size() > 0) {
    // Finds which keys of the files were removed: those in `removed`.
    std::vector<float> nothing(keys.size());
    present.resize(wanted.size());
    int64_t count = 0;
    EV_RETURN_IF_ERROR(content->removed->Fetch(
        keys, wanted, nothing.data(), present.data(), &count, parallel));
    present.resize(count);
    std::vector<int64_t> all;
    for (int64_t i = 0; i < wanted.size(); ++i) all.push_back(wanted[i]);
    std::set_difference(all.begin(), all.end(), present.begin(), present.end(),
                        std::back_inserter(gone));
    if (!gone.empty()) {
      wanted = Positions::Of(present);
      // A key may have been stored since `stored` was read; it has a row then.
      EV_RETURN_IF_ERROR(content->stored->Fetch(keys, Positions::Of(gone), rows,
                                                gone.data(), &count, parallel));
      gone.resize(count);
    }
  }
  *num_missing = FetchInTasks(
      wanted.size(), width_ * sizeof(float), missing, parallel,
      [&](int64_t begin, int64_t end, int64_t* list) {
        return FetchFromFiles(*content, keys, wanted, begin, end, rows, list);
      });
  EV_RETURN_IF_ERROR(content->CheckIndex());
  if (!gone.empty()) {
    std::vector<int64_t> both;
    std::merge(missing, missing + *num_missing, gone.begin(), gone.end(),
               std::back_inserter(both));
    std::copy(both.begin(), both.end(), missing);
    *num_missing = static_cast<int64_t>(both.size());
  }
  return ev::Status::OK();
}

// REQUIRES: writer_ is held.
ev::Status MappedTable::MakeMemory(Content* content) {
  if (content->stored != nullptr) return ev::Status::OK();
  std::shared_ptr<Table> stored, removed;
  EV_RETURN_IF_ERROR(MakeTable(database_, tag_, format_, &stored));
  EV_RETURN_IF_ERROR(MakeTable(database_, tag_, 1, &removed));
  content->stored = std::move(stored);
  content->removed = std::move(removed);
  content->changed.store(true, std::memory_order_release);
  return ev::Status::OK();
}

ev::Status MappedTable::Insert(ev::Span<const int64_t> keys, const float* rows,
                               ev::Parallel* parallel) {
  if (keys.empty()) return ev::Status::OK();
  std::lock_guard<std::mutex> writer(writer_);
  const std::shared_ptr<Content> content = Now();
  EV_RETURN_IF_ERROR(MakeMemory(content.get()));
  // `removed` gets every key of the files that is stored, so that its row is
  // counted once and a later Remove need not hide the file's row.
  std::vector<int64_t> of_files;
  for (const int64_t key : keys) {
    if (FindInFiles(*content, key) >= 0) of_files.push_back(key);
  }
  EV_RETURN_IF_ERROR(content->CheckIndex());
  const std::vector<float> nothing(of_files.size(), 0.0f);
  EV_RETURN_IF_ERROR(content->stored->Insert(keys, rows, parallel));
  ev::Serial serial;
  EV_RETURN_IF_ERROR(
      content->removed->Insert(of_files, nothing.data(), &serial));
  int64_t hidden = 0, stored = 0;
  EV_RETURN_IF_ERROR(content->removed->Count(&hidden));
  EV_RETURN_IF_ERROR(content->stored->Count(&stored));
  content->count = stored - hidden;
  if (content->index != nullptr) content->count += content->index->distinct();
  inserted_ += static_cast<int64_t>(keys.size());
  return ev::Status::OK();
}

ev::Status MappedTable::Remove(ev::Span<const int64_t> keys, int64_t* removed) {
  if (removed != nullptr) *removed = 0;
  if (keys.empty()) return ev::Status::OK();
  std::lock_guard<std::mutex> writer(writer_);
  const std::shared_ptr<Content> content = Now();
  EV_RETURN_IF_ERROR(MakeMemory(content.get()));
  std::vector<int64_t> of_files;
  for (const int64_t key : keys) {
    if (FindInFiles(*content, key) >= 0) of_files.push_back(key);
  }
  EV_RETURN_IF_ERROR(content->CheckIndex());
  ev::Serial serial;
  const std::vector<float> nothing(of_files.size(), 0.0f);
  // Hides the file's row before the stored one is removed.
  EV_RETURN_IF_ERROR(
      content->removed->Insert(of_files, nothing.data(), &serial));
  EV_RETURN_IF_ERROR(content->stored->Remove(keys, nullptr));
  int64_t hidden = 0, stored = 0;
  EV_RETURN_IF_ERROR(content->removed->Count(&hidden));
  EV_RETURN_IF_ERROR(content->stored->Count(&stored));
  int64_t now = stored - hidden;
  if (content->index != nullptr) now += content->index->distinct();
  if (removed != nullptr) *removed = content->count - now;
  content->count = now;
  return ev::Status::OK();
}

ev::Status MappedTable::Count(int64_t* rows) {
  std::lock_guard<std::mutex> writer(writer_);
  *rows = Now()->count;
  return ev::Status::OK();
}

ev::Status MappedTable::ForEach(const Visit& visit) {
  const std::shared_ptr<Content> content = Now();
  if (content->changed.load(std::memory_order_acquire)) {
    EV_RETURN_IF_ERROR(content->stored->ForEach(visit));
  }
  if (content->directory == nullptr) return ev::Status::OK();
  constexpr size_t kBatch = 1024;
  std::vector<int64_t> keys, some;
  std::vector<float> rows;
  const auto flush = [&]() -> ev::Status {
    if (some.empty()) return ev::Status::OK();
    const ev::Status status = visit(some, rows.data());
    some.clear();
    rows.clear();
    return status;
  };
  const bool changed = content->changed.load(std::memory_order_acquire);
  ev::Serial serial;
  // Attach has advised random access, so the walk requests its own read-ahead.
  constexpr int64_t kAhead = int64_t{8} << 20;
  const int64_t row_bytes = width_ * static_cast<int64_t>(sizeof(float));
  int64_t asked = 0;
  for (int64_t row = 0; row < content->directory->rows(); ++row) {
    for (; asked < (row + 1) * row_bytes + kAhead; asked += kAhead) {
      content->directory->vector_file().WillBeReadSoon(asked, kAhead);
    }
    int64_t key = content->directory->keys()[row];
    // If a key repeats, only the served row is visited. 32-bit keys are found
    // in their normalized form.
    if (FindInFiles(*content, key) != row) {
      NormalKey(KeyBits::k32, key, &key);
      if (FindInFiles(*content, key) != row) continue;
    }
    if (changed) {
      const std::vector<int64_t> one = {key};
      float nothing = 0;
      int64_t missing = 0, count = 0;
      EV_RETURN_IF_ERROR(content->removed->Fetch(
          one, Positions::All(1), &nothing, &missing, &count, &serial));
      if (count == 0) continue;
    }
    some.push_back(key);
    rows.insert(rows.end(), content->directory->row(row),
                content->directory->row(row) + width_);
    if (some.size() == kBatch) EV_RETURN_IF_ERROR(flush());
  }
  EV_RETURN_IF_ERROR(content->CheckIndex());
  return flush();
}

ev::Status MappedTable::Statistics(TableStatistics* statistics) {
  std::lock_guard<std::mutex> writer(writer_);
  const std::shared_ptr<Content> content = Now();
  *statistics = TableStatistics();
  statistics->rows = content->count;
  statistics->inserted = inserted_;
  statistics->host_bytes = sizeof(*this) + sizeof(Content);
  if (content->directory != nullptr) {
    statistics->host_bytes +=
        content->directory->rows() *
            (width_ * static_cast<int64_t>(sizeof(float))) +
        content->index->bytes();
  }
  for (const auto& table : {content->stored, content->removed}) {
    if (table == nullptr) continue;
    TableStatistics memory;
    EV_RETURN_IF_ERROR(table->Statistics(&memory));
    statistics->host_bytes += memory.host_bytes;
  }
  return ev::Status::OK();
}

}  // namespace hps
