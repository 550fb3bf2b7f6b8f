// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/redis/redis_table.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <unordered_set>
#include <utility>

#include "addons/hierarchical_parameter_server/database/redis/row_requests.h"
#include "kernels/engine/base/hash.h"

namespace hps {
namespace {

using Requests = std::vector<std::unique_ptr<RedisRequest>>;

constexpr int64_t kRowsOfAScan = 4096;

int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

ev::Status DataLoss(const std::string& message) {
  return ev::Status(ev::StatusCode::kDataLoss, message);
}

void Raise(std::atomic<int64_t>* seen, int64_t changes) {
  int64_t old = seen->load();
  while (old < changes && !seen->compare_exchange_weak(old, changes)) {
  }
}

template <typename Request, typename... Args>
Request* Add(Requests* requests, Args&&... args) {
  auto made = std::make_unique<Request>(std::forward<Args>(args)...);
  Request* const request = made.get();
  requests->push_back(std::move(made));
  return request;
}

std::vector<RedisRequest*> ListOf(const Requests& requests) {
  std::vector<RedisRequest*> list;
  list.reserve(requests.size());
  for (const auto& request : requests) list.push_back(request.get());
  return list;
}

using Words = std::vector<std::string>;

}  // namespace

std::string PartitionHash(const std::string& tag, int partition, char kind) {
  return "hps_et{" + tag + "/p" + std::to_string(partition) + "}" + kind;
}

RedisTable::RedisTable(std::shared_ptr<RedisClient> client, std::string tag,
                       const RowFormat& format)
    : client_(std::move(client)),
      tag_(std::move(tag)),
      format_(format),
      width_(format.width()) {
  for (int i = 0; i < client_->options().num_partitions; ++i) {
    auto partition = std::make_unique<Partition>();
    partition->number = i;
    partition->values = PartitionHash(tag_, i, 'v');
    partition->uses = PartitionHash(tag_, i, 't');
    partition->slot = SlotOf(partition->values);
    partitions_.push_back(std::move(partition));
  }
}

ev::Status RedisTable::Named(const ev::Status& status) const {
  if (status.ok()) return status;
  return ev::Status(status.code(), "database redis_cluster, table " + tag_ +
                                       ": " + status.message());
}

ev::Status RedisTable::RunAll(const Requests& requests) {
  return RunAll(requests, CallDeadline());
}

ev::Status RedisTable::RunAll(const Requests& requests,
                              const Deadline& deadline) {
  return Named(client_->Run(ListOf(requests), deadline));
}

Deadline RedisTable::CallDeadline() const {
  return Deadline::InMs(client_->options().timeout_ms);
}

Deadline RedisTable::FetchDeadline() const {
  const int64_t ms = client_->options().fetch_timeout_ms;
  return ms > 0 ? Deadline::InMs(ms) : CallDeadline();
}

ev::Status RedisTable::Open(bool is_new) {
  const auto read = [this](int* num_found) {
    Requests requests;
    std::vector<RedisCall*> changes;
    for (const auto& partition : partitions_) {
      changes.push_back(Add<RedisCall>(
          &requests, Words{"HGET", partition->values, kChangesField}));
    }
    EV_RETURN_IF_ERROR(RunAll(requests));
    *num_found = 0;
    for (size_t i = 0; i < partitions_.size(); ++i) {
      const int64_t n = IntegerOf(changes[i]->reply(), -1);
      // An n without a second means: the partition was lost, and a process
      // stored into it and ended before it could undo that.
      partitions_[i]->seen = Second(n) > 0 ? n : -1;
      *num_found += Second(n) > 0;
    }
    return ev::Status::OK();
  };
  const int num_partitions = static_cast<int>(partitions_.size());
  int num_found = 0;
  EV_RETURN_IF_ERROR(read(&num_found));
  if (num_found == num_partitions) return ev::Status::OK();
  const bool is_cache =
      client_->options().loss == RedisLoss::kEmptiesThePartition;
  if (!is_cache && (!is_new || num_found > 0)) {
    return Named(DataLoss("the server has lost " +
                          std::to_string(num_partitions - num_found) + " of " +
                          std::to_string(num_partitions) +
                          " partitions: drop the table and load it again"));
  }
  const std::string first = std::to_string(((NowMs() / 1000) << 32) + 1);
  Requests requests;
  for (const auto& partition : partitions_) {
    if (partition->seen < 0) {
      Add<RedisCall>(&requests, Words{"UNLINK", partition->values});
    }
    Add<RedisCall>(&requests,
                   Words{"HSETNX", partition->values, kChangesField, first});
  }
  EV_RETURN_IF_ERROR(RunAll(requests));
  EV_RETURN_IF_ERROR(read(&num_found));
  return num_found == num_partitions
             ? ev::Status::OK()
             : Named(DataLoss(
                   "partitions disappeared while the table was created"));
}

void RedisTable::Sort(ev::Span<const int64_t> keys, Positions wanted,
                      Sorted* sorted) const {
  const uint64_t num_partitions = partitions_.size();
  const int64_t count = wanted.size();
  std::vector<uint32_t> part_of(count);
  sorted->begins.assign(num_partitions + 1, 0);
  for (int64_t i = 0; i < count; ++i) {
    const uint32_t part =
        static_cast<uint32_t>(ev::MixKey(keys[wanted[i]]) % num_partitions);
    part_of[i] = part;
    ++sorted->begins[part + 1];
  }
  for (size_t p = 0; p < num_partitions; ++p) {
    sorted->begins[p + 1] += sorted->begins[p];
  }
  std::vector<int64_t> next(sorted->begins);
  sorted->positions.resize(count);
  sorted->order.resize(count);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = next[part_of[i]]++;
    sorted->positions[at] = wanted[i];
    sorted->order[at] = i;
  }
}

ev::Status RedisTable::CheckChanges(Partition* partition, int64_t seen,
                                    int64_t changes, int64_t connection,
                                    const Deadline& deadline, bool* is_lost) {
  *is_lost = false;
  if (Continues(seen, changes)) {
    Raise(&partition->seen, changes);
    partition->known.Add(connection);
    return ev::Status::OK();
  }
  partition->known.Clear();
  if (client_->options().loss == RedisLoss::kIsAnError) {
    return Named(
        DataLoss("the server has lost rows of partition " +
                 std::to_string(partition->number) + ", which has " +
                 (changes < 0 ? "no change count"
                              : "change count " + std::to_string(changes)) +
                 ", expected at least " + std::to_string(seen) +
                 ": drop the table and load it again"));
  }
  *is_lost = true;
  if (changes >= 0 && Second(changes) > Second(seen)) {
    // Another process has emptied or recreated it since.
    Raise(&partition->seen, changes);
    return ev::Status::OK();
  }
  // A new second, so that every process that has seen the old one notices.
  const int64_t now = NowMs() / 1000;
  const int64_t first = (std::max(now, Second(seen) + 1) << 32) + 1;
  RedisCall unlink({"UNLINK", partition->values});
  RedisCall unlink_uses({"UNLINK", partition->uses});
  RedisCall make(
      {"HSETNX", partition->values, kChangesField, std::to_string(first)});
  RedisCall get({"HGET", partition->values, kChangesField});
  const std::vector<RedisRequest*> requests = {&unlink, &unlink_uses, &make,
                                               &get};
  EV_RETURN_IF_ERROR(Named(client_->Run(requests, deadline)));
  Raise(&partition->seen, IntegerOf(get.reply(), first));
  return ev::Status::OK();
}

ev::Status RedisTable::CheckInsert(Partition* partition, int64_t seen,
                                   const RedisCall& changes, bool* is_lost) {
  const int64_t n = IntegerOf(changes.reply(), -1);
  if (Second(n) == 0) {
    // The partition was lost before the rows were stored; the rows must not
    // become part of a new table.
    RedisCall unlink({"UNLINK", partition->values});
    EV_RETURN_IF_ERROR(Named(client_->Run(&unlink)));
  }
  const ev::Status status = CheckChanges(
      partition, seen + 1, n, changes.connection(), CallDeadline(), is_lost);
  if (status.code() == ev::StatusCode::kDataLoss && Second(n) == Second(seen)) {
    // Otherwise later inserts would raise n to the value seen and hide the
    // loss.
    RedisCall back({"HINCRBY", partition->values, kChangesField, "-1"});
    EV_RETURN_IF_ERROR(Named(client_->Run(&back)));
  }
  return status;
}

bool RedisTable::CountsUses() const {
  const RedisOptions& options = client_->options();
  return options.overflow_margin != std::numeric_limits<uint64_t>::max() &&
         options.overflow_policy != RedisOverflow::kEvictRandom;
}

void RedisTable::AddUses(Partition* partition, std::vector<int64_t> keys,
                         Requests* requests) const {
  if (keys.empty()) return;
  if (client_->options().overflow_policy == RedisOverflow::kEvictOldest) {
    Add<KeysCall>(requests, partition->slot, "HSET", &partition->uses,
                  std::move(keys), std::to_string(NowMs()));
    return;
  }
  for (const int64_t key : keys) {
    Add<KeysCall>(requests, partition->slot, "HINCRBY", &partition->uses,
                  std::vector<int64_t>{key}, "1");
  }
}

ev::Status RedisTable::Fetch(ev::Span<const int64_t> keys, Positions wanted,
                             float* rows, int64_t* missing,
                             int64_t* num_missing, ev::Parallel* parallel) {
  const int64_t most = client_->options().max_batch_size;
  Sorted sorted;
  Sort(keys, wanted, &sorted);
  struct Part {
    Partition* partition;
    int64_t begin;
    int64_t seen;
    FetchRows* request;
  };
  std::vector<Part> parts;
  Requests requests;
  for (size_t p = 0; p < partitions_.size(); ++p) {
    Partition* const partition = partitions_[p].get();
    // Read before the command is sent, so the server's n is no older.
    const int64_t seen = partition->seen.load();
    for (int64_t begin = sorted.begins[p]; begin < sorted.begins[p + 1];
         begin += most) {
      const int64_t count = std::min(most, sorted.begins[p + 1] - begin);
      const ev::Span<const int64_t> positions(sorted.positions.data() + begin,
                                              count);
      parts.push_back(
          {partition, begin, seen,
           Add<FetchRows>(&requests, partition->slot, &partition->values,
                          keys.data(), positions, width_, rows, seen)});
    }
  }
  const Deadline deadline = FetchDeadline();
  EV_RETURN_IF_ERROR(RunAll(requests, deadline));

  std::vector<uint8_t> is_found(wanted.size(), 0);
  Requests uses;
  for (const Part& part : parts) {
    bool is_lost = false;
    EV_RETURN_IF_ERROR(
        CheckChanges(part.partition, part.seen, part.request->changes(),
                     part.request->connection(), deadline, &is_lost));
    EV_RETURN_IF_ERROR(Named(part.request->error()));
    if (is_lost) continue;
    const std::vector<uint8_t>& found = part.request->found();
    std::vector<int64_t> used;
    for (size_t i = 0; i < found.size(); ++i) {
      if (found[i] == 0) continue;
      is_found[sorted.order[part.begin + i]] = 1;
      if (CountsUses()) used.push_back(keys[sorted.positions[part.begin + i]]);
    }
    AddUses(part.partition, std::move(used), &uses);
  }
  if (!uses.empty()) EV_RETURN_IF_ERROR(RunAll(uses, deadline));
  int64_t count = 0;
  for (int64_t i = 0; i < wanted.size(); ++i) {
    if (is_found[i] == 0) missing[count++] = wanted[i];
  }
  *num_missing = count;
  return ev::Status::OK();
}

ev::Status RedisTable::CheckPartitions(const Sorted& sorted) {
  Requests requests;
  struct Part {
    Partition* partition;
    int64_t seen;
    RedisCall* changes;
  };
  std::vector<Part> parts;
  for (size_t p = 0; p < partitions_.size(); ++p) {
    if (sorted.begins[p] == sorted.begins[p + 1]) continue;
    Partition* const partition = partitions_[p].get();
    parts.push_back({partition, partition->seen.load(),
                     Add<RedisCall>(&requests, Words{"HGET", partition->values,
                                                     kChangesField})});
  }
  EV_RETURN_IF_ERROR(RunAll(requests));
  for (const Part& part : parts) {
    bool is_lost = false;
    EV_RETURN_IF_ERROR(CheckChanges(
        part.partition, part.seen, IntegerOf(part.changes->reply(), -1),
        part.changes->connection(), CallDeadline(), &is_lost));
  }
  return ev::Status::OK();
}

ev::Status RedisTable::Insert(ev::Span<const int64_t> keys, const float* rows,
                              ev::Parallel* parallel) {
  const RedisOptions& options = client_->options();
  const int64_t most = options.max_batch_size;
  const bool is_limited =
      options.overflow_margin != std::numeric_limits<uint64_t>::max();
  Sorted sorted;
  Sort(keys, Positions::All(static_cast<int64_t>(keys.size())), &sorted);
  struct Part {
    Partition* partition;
    int64_t seen;
    int64_t count;
    RedisCall* changes;
    RedisCall* length;
  };
  // One command per partition at a time, so that rows of a repeated key keep
  // their order even when a command is resent.
  bool is_checked = false;
  for (int64_t wave = 0;;) {
    Requests requests;
    std::vector<Part> parts;
    for (size_t p = 0; p < partitions_.size(); ++p) {
      const int64_t begin = sorted.begins[p] + wave * most;
      if (begin >= sorted.begins[p + 1]) continue;
      const int64_t count = std::min(most, sorted.begins[p + 1] - begin);
      Partition* const partition = partitions_[p].get();
      const ev::Span<const int64_t> positions(sorted.positions.data() + begin,
                                              count);
      Part part = {partition, partition->seen.load(), count, nullptr, nullptr};
      Add<StoreRows>(&requests, partition->slot, &partition->values,
                     keys.data(), positions, width_, rows);
      if (CountsUses()) {
        std::vector<int64_t> used;
        for (const int64_t position : positions) used.push_back(keys[position]);
        AddUses(partition, std::move(used), &requests);
      }
      part.changes = Add<RedisCall>(
          &requests, Words{"HINCRBY", partition->values, kChangesField, "1"});
      if (!is_checked) part.changes->WantKnown(&partition->known);
      if (is_limited) {
        part.length =
            Add<RedisCall>(&requests, Words{"HLEN", partition->values});
      }
      parts.push_back(part);
    }
    if (requests.empty()) return ev::Status::OK();
    if (is_checked) {
      EV_RETURN_IF_ERROR(RunAll(requests));
    } else {
      bool is_done = false;
      EV_RETURN_IF_ERROR(
          Named(client_->RunOnKnown(ListOf(requests), &is_done)));
      if (!is_done) {
        // Do not store into a partition that has been lost.
        EV_RETURN_IF_ERROR(CheckPartitions(sorted));
        is_checked = true;
        continue;
      }
    }
    // Processes all parts: an increment by one must be undone even if another
    // fails.
    ev::Status status;
    bool any_lost = false;
    for (const Part& part : parts) {
      bool is_lost = false;
      const ev::Status one =
          CheckInsert(part.partition, part.seen, *part.changes, &is_lost);
      if (status.ok()) status = one;
      any_lost = any_lost || is_lost;
    }
    EV_RETURN_IF_ERROR(status);
    if (any_lost && !is_checked) {
      // Retries once; the lost partitions are now emptied.
      is_checked = true;
      continue;
    }
    ++wave;
    for (const Part& part : parts) {
      inserted_ += part.count;
      if (part.length == nullptr) continue;
      const int64_t length = IntegerOf(part.length->reply(), 1) - 1;
      if (static_cast<uint64_t>(length) > options.overflow_margin) {
        EV_RETURN_IF_ERROR(Named(Evict(part.partition, length)));
      }
    }
  }
}

ev::Status RedisTable::Remove(ev::Span<const int64_t> keys, int64_t* removed) {
  const int64_t most = client_->options().max_batch_size;
  Sorted sorted;
  Sort(keys, Positions::All(static_cast<int64_t>(keys.size())), &sorted);
  EV_RETURN_IF_ERROR(CheckPartitions(sorted));
  Requests requests;
  std::vector<KeysCall*> counts;
  for (size_t p = 0; p < partitions_.size(); ++p) {
    Partition* const partition = partitions_[p].get();
    for (int64_t begin = sorted.begins[p]; begin < sorted.begins[p + 1];
         begin += most) {
      const int64_t end = std::min(begin + most, sorted.begins[p + 1]);
      std::vector<int64_t> some;
      for (int64_t i = begin; i < end; ++i) {
        some.push_back(keys[sorted.positions[i]]);
      }
      counts.push_back(Add<KeysCall>(&requests, partition->slot, "HDEL",
                                     &partition->values, some));
      if (CountsUses()) {
        Add<KeysCall>(&requests, partition->slot, "HDEL", &partition->uses,
                      std::move(some));
      }
      Add<RedisCall>(&requests,
                     Words{"HINCRBY", partition->values, kChangesField, "1"});
    }
  }
  EV_RETURN_IF_ERROR(RunAll(requests));
  if (removed != nullptr) {
    *removed = 0;
    for (const KeysCall* count : counts) *removed += count->reply();
  }
  return ev::Status::OK();
}

ev::Status RedisTable::Count(int64_t* rows) {
  return CountUntil(CallDeadline(), rows);
}

ev::Status RedisTable::CountUntil(const Deadline& deadline, int64_t* rows) {
  Requests requests;
  std::vector<RedisCall*> lengths;
  for (const auto& partition : partitions_) {
    lengths.push_back(
        Add<RedisCall>(&requests, Words{"HLEN", partition->values}));
  }
  EV_RETURN_IF_ERROR(RunAll(requests, deadline));
  *rows = 0;
  for (const RedisCall* length : lengths) {
    // without the field n
    *rows += std::max(IntegerOf(length->reply(), 0) - 1, int64_t{0});
  }
  return ev::Status::OK();
}

ev::Status RedisTable::ForEach(const Visit& visit) {
  std::vector<int64_t> keys;
  std::vector<float> rows;
  for (const auto& partition : partitions_) {
    // A scan may return a field twice.
    std::unordered_set<int64_t> seen;
    std::string cursor = "0";
    do {
      RedisCall scan({"HSCAN", partition->values, cursor, "COUNT",
                      std::to_string(kRowsOfAScan)});
      EV_RETURN_IF_ERROR(Named(client_->Run(&scan)));
      const RespReply& reply = scan.reply();
      if (reply.elements.size() != 2) {
        return Named(ev::Internal("a reply to HSCAN breaks Redis's protocol"));
      }
      cursor = reply.elements[0].text;
      keys.clear();
      rows.clear();
      const std::vector<RespReply>& pairs = reply.elements[1].elements;
      for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
        const std::string& field = pairs[i].text;
        const std::string& value = pairs[i + 1].text;
        if (field == kChangesField) continue;
        if (field.size() != sizeof(int64_t) ||
            value.size() != sizeof(float) * width_) {
          return Named(DataLoss("a row of " + std::to_string(value.size()) +
                                " bytes under a key of " +
                                std::to_string(field.size()) + " bytes in " +
                                partition->values));
        }
        int64_t key;
        std::memcpy(&key, field.data(), sizeof(key));
        if (!seen.insert(key).second) continue;
        keys.push_back(key);
        rows.resize(rows.size() + width_);
        std::memcpy(rows.data() + rows.size() - width_, value.data(),
                    value.size());
      }
      if (!keys.empty()) EV_RETURN_IF_ERROR(visit(keys, rows.data()));
    } while (cursor != "0");
  }
  return ev::Status::OK();
}

ev::Status RedisTable::Statistics(TableStatistics* statistics) {
  TableStatistics made;
  // A report has the time limit of a lookup.
  EV_RETURN_IF_ERROR(CountUntil(FetchDeadline(), &made.rows));
  made.inserted = inserted_.load();
  made.evicted = evicted_.load();
  *statistics = made;
  return ev::Status::OK();
}

}  // namespace hps
