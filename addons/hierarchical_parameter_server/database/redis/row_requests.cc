// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/redis/row_requests.h"

#include <cstdlib>
#include <cstring>
#include <utility>

namespace hps {

const char kChangesField[] = "n";

namespace {

ev::Status WrongReply(const char* command) {
  return ev::Internal(std::string("a reply to ") + command +
                      " breaks Redis's protocol");
}

}  // namespace

FetchRows::FetchRows(int slot, const std::string* hash, const int64_t* keys,
                     ev::Span<const int64_t> positions, int width, float* rows,
                     int64_t seen)
    : RedisRequest(slot),
      hash_(hash),
      keys_(keys),
      positions_(positions),
      width_(width),
      rows_(rows),
      seen_(seen),
      found_(positions.size(), 0),
      touched_(positions.size(), 0) {}

void FetchRows::Encode(RespWriter* writer) const {
  writer->Begin(static_cast<int64_t>(positions_.size()) + 3);
  writer->Word("HMGET", 5);
  writer->Word(*hash_);
  // The change count comes first: it decides whether the rows may be used.
  writer->Word(kChangesField, 1);
  for (const int64_t p : positions_) writer->Key(keys_[p]);
}

ev::Status FetchRows::Take(const RespHead& head, RespReader* reader) {
  const int64_t count = static_cast<int64_t>(positions_.size());
  if (head.type != RespHead::kArray || head.number != count + 1) {
    return WrongReply("HMGET");
  }
  error_ = ev::Status::OK();
  RespReply changes;
  EV_RETURN_IF_ERROR(reader->Reply(&changes));
  changes_ = IntegerOf(changes, -1);
  // Same condition as RedisTable::CheckChanges; the upper half is the creation
  // time.
  const bool is_usable = Continues(seen_, changes_);
  const int64_t row_bytes = int64_t{4} * width_;
  RespHead value;
  for (int64_t i = 0; i < count; ++i) {
    EV_RETURN_IF_ERROR(reader->Head(&value));
    if (value.type != RespHead::kBytes) return WrongReply("HMGET");
    const int64_t p = positions_[i];
    found_[i] = is_usable && value.number == row_bytes;
    if (found_[i]) {
      touched_[i] = 1;
      EV_RETURN_IF_ERROR(reader->Bytes(
          reinterpret_cast<char*>(rows_ + p * width_), row_bytes));
      continue;
    }
    if (value.number >= 0) EV_RETURN_IF_ERROR(reader->Skip(value.number));
    if (touched_[i]) {
      error_ = ev::Internal("the row of key " + std::to_string(keys_[p]) +
                            " was removed while it was read");
    } else if (is_usable && value.number >= 0) {
      error_ =
          ev::Status(ev::StatusCode::kDataLoss,
                     "the row of key " + std::to_string(keys_[p]) + " has " +
                         std::to_string(value.number) + " bytes in " + *hash_ +
                         ", expected " + std::to_string(row_bytes));
    }
  }
  return ev::Status::OK();
}

StoreRows::StoreRows(int slot, const std::string* hash, const int64_t* keys,
                     ev::Span<const int64_t> positions, int width,
                     const float* rows)
    : RedisRequest(slot),
      hash_(hash),
      keys_(keys),
      positions_(positions),
      width_(width),
      rows_(rows) {}

void StoreRows::Encode(RespWriter* writer) const {
  writer->Begin(static_cast<int64_t>(positions_.size()) * 2 + 2);
  writer->Word("HSET", 4);
  writer->Word(*hash_);
  for (const int64_t p : positions_) {
    writer->Key(keys_[p]);
    writer->Word(reinterpret_cast<const char*>(rows_ + p * width_),
                 size_t{4} * width_);
  }
}

ev::Status StoreRows::Take(const RespHead& head, RespReader* reader) {
  return head.type == RespHead::kInteger ? ev::Status::OK()
                                         : WrongReply("HSET");
}

KeysCall::KeysCall(int slot, const char* command, const std::string* hash,
                   std::vector<int64_t> keys, std::string after_each)
    : RedisRequest(slot),
      command_(command),
      hash_(hash),
      keys_(std::move(keys)),
      after_each_(std::move(after_each)) {}

void KeysCall::Encode(RespWriter* writer) const {
  const int64_t words_each = after_each_.empty() ? 1 : 2;
  writer->Begin(static_cast<int64_t>(keys_.size()) * words_each + 2);
  writer->Word(command_, std::strlen(command_));
  writer->Word(*hash_);
  for (const int64_t key : keys_) {
    writer->Key(key);
    if (!after_each_.empty()) writer->Word(after_each_);
  }
}

ev::Status KeysCall::Take(const RespHead& head, RespReader* reader) {
  if (head.type != RespHead::kInteger) return WrongReply(command_);
  reply_ = head.number;
  return ev::Status::OK();
}

int64_t IntegerOf(const RespReply& reply, int64_t none) {
  if (reply.type == RespHead::kInteger) return reply.number;
  if (reply.is_nil() || reply.text.empty()) return none;
  char* end = nullptr;
  const long long number = std::strtoll(reply.text.c_str(), &end, 10);
  return *end == '\0' ? number : none;
}

}  // namespace hps
