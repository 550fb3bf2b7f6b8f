// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Eviction from partitions larger than overflow_margin. It uses small commands,
// so that the server can serve others in between.

#include <algorithm>
#include <cstring>
#include <utility>

#include "addons/hierarchical_parameter_server/database/redis/redis_table.h"
#include "addons/hierarchical_parameter_server/database/redis/row_requests.h"

namespace hps {
namespace {

constexpr int64_t kFieldsOfAScan = 4096;

bool IsKey(const std::string& field, int64_t* key) {
  if (field.size() != sizeof(*key)) return false;
  std::memcpy(key, field.data(), sizeof(*key));
  return true;
}

}  // namespace

ev::Status RedisTable::Evict(Partition* partition, int64_t rows) {
  // One evicting thread is enough; the others have stored their rows and
  // return.
  std::unique_lock<std::mutex> lock(partition->evicts, std::try_to_lock);
  if (!lock.owns_lock()) return ev::Status::OK();
  const RedisOptions& options = client_->options();
  const int64_t target =
      static_cast<int64_t>(static_cast<double>(options.overflow_margin) *
                           options.overflow_resolution_target);
  int64_t excess = rows - target;
  std::vector<int64_t> keys;
  if (CountsUses()) {
    EV_RETURN_IF_ERROR(LeastUsed(partition, excess, &keys));
    EV_RETURN_IF_ERROR(Delete(partition, keys));
    excess -= static_cast<int64_t>(keys.size());
  }
  // Also evicts rows without use counts: another process with another policy
  // has stored them.
  while (excess > 0) {
    EV_RETURN_IF_ERROR(SomeAtRandom(
        partition, std::min(excess, options.max_batch_size), &keys));
    if (keys.empty()) break;
    EV_RETURN_IF_ERROR(Delete(partition, keys));
    excess -= static_cast<int64_t>(keys.size());
  }
  return ev::Status::OK();
}

ev::Status RedisTable::LeastUsed(Partition* partition, int64_t count,
                                 std::vector<int64_t>* keys) {
  std::vector<std::pair<int64_t, int64_t>> uses;  // and the key
  std::string cursor = "0";
  do {
    RedisCall scan({"HSCAN", partition->uses, cursor, "COUNT",
                    std::to_string(kFieldsOfAScan)});
    EV_RETURN_IF_ERROR(client_->Run(&scan));
    if (scan.reply().elements.size() != 2) {
      return ev::Internal("a reply to HSCAN breaks Redis's protocol");
    }
    cursor = scan.reply().elements[0].text;
    const std::vector<RespReply>& pairs = scan.reply().elements[1].elements;
    for (size_t i = 0; i + 1 < pairs.size(); i += 2) {
      int64_t key;
      if (IsKey(pairs[i].text, &key)) {
        uses.emplace_back(IntegerOf(pairs[i + 1], 0), key);
      }
    }
  } while (cursor != "0");
  std::sort(uses.begin(), uses.end());
  keys->clear();
  for (const auto& use : uses) {
    if (static_cast<int64_t>(keys->size()) == count) break;
    // A scan may return a field twice.
    if (keys->empty() || keys->back() != use.second) {
      keys->push_back(use.second);
    }
  }
  return ev::Status::OK();
}

ev::Status RedisTable::SomeAtRandom(Partition* partition, int64_t count,
                                    std::vector<int64_t>* keys) {
  keys->clear();
  RedisCall some({"HRANDFIELD", partition->values, std::to_string(count + 1)});
  const ev::Status status = client_->Run(&some);
  if (!status.ok()) {
    return ev::Status(
        status.code(),
        status.message() + " (evict_random needs Redis 6.2 or newer)");
  }
  for (const RespReply& field : some.reply().elements) {
    int64_t key;
    if (static_cast<int64_t>(keys->size()) < count && IsKey(field.text, &key)) {
      keys->push_back(key);
    }
  }
  return ev::Status::OK();
}

ev::Status RedisTable::Delete(Partition* partition,
                              const std::vector<int64_t>& keys) {
  const size_t most = client_->options().max_batch_size;
  for (size_t begin = 0; begin < keys.size(); begin += most) {
    const std::vector<int64_t> some(
        keys.begin() + begin,
        keys.begin() + std::min(begin + most, keys.size()));
    KeysCall values(partition->slot, "HDEL", &partition->values, some);
    KeysCall uses(partition->slot, "HDEL", &partition->uses, some);
    const std::vector<RedisRequest*> requests = {&values, &uses};
    EV_RETURN_IF_ERROR(client_->Run(requests));
    evicted_ += values.reply();
  }
  return ev::Status::OK();
}

}  // namespace hps
