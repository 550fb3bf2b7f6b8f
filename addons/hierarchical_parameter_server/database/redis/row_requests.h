// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The commands that carry rows. A partition of a table is a Redis hash: a field
// is the 8 bytes of a key, its value the row's floats. One more field, "n",
// counts the changes of the partition (redis_table.h says what for).

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_ROW_REQUESTS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_ROW_REQUESTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/redis/redis_client.h"
#include "kernels/engine/base/span.h"

namespace hps {

extern const char kChangesField[];  // "n"

// HMGET of rows and of the count of changes, which are of one moment.
class FetchRows : public RedisRequest {
 public:
  // positions: which keys are wanted. Row p goes to rows + p * width, unless
  // fewer changes than `seen` say that the rows are not to be used.
  FetchRows(int slot, const std::string* hash, const int64_t* keys,
            ev::Span<const int64_t> positions, int width, float* rows,
            int64_t seen);
  void Encode(RespWriter* writer) const override;
  ev::Status Take(const RespHead& head, RespReader* reader) override;

  // For each of the positions 1 if its row was there.
  const std::vector<uint8_t>& found() const { return found_; }
  // -1: there is no such partition.
  int64_t changes() const { return changes_; }
  // DataLoss: what the server has is no row of this table. Internal: a row went
  // away between two attempts, after a part of it was read.
  const ev::Status& error() const { return error_; }

 private:
  const std::string* const hash_;
  const int64_t* const keys_;
  const ev::Span<const int64_t> positions_;
  const int width_;
  float* const rows_;
  const int64_t seen_;
  std::vector<uint8_t> found_;
  std::vector<uint8_t> touched_;  // in this attempt or one before
  int64_t changes_ = -1;
  ev::Status error_;
};

// HSET of rows.
class StoreRows : public RedisRequest {
 public:
  StoreRows(int slot, const std::string* hash, const int64_t* keys,
            ev::Span<const int64_t> positions, int width, const float* rows);
  void Encode(RespWriter* writer) const override;
  ev::Status Take(const RespHead& head, RespReader* reader) override;

 private:
  const std::string* const hash_;
  const int64_t* const keys_;
  const ev::Span<const int64_t> positions_;
  const int width_;
  const float* const rows_;
};

// A command of a hash and some of its keys, with the same word after each key
// if there is one: HDEL, HSET of times. The reply is an integer.
class KeysCall : public RedisRequest {
 public:
  KeysCall(int slot, const char* command, const std::string* hash,
           std::vector<int64_t> keys, std::string after_each = "");
  void Encode(RespWriter* writer) const override;
  ev::Status Take(const RespHead& head, RespReader* reader) override;
  int64_t reply() const { return reply_; }

 private:
  const char* const command_;
  const std::string* const hash_;
  const std::vector<int64_t> keys_;
  const std::string after_each_;
  int64_t reply_ = 0;
};

// The integer that a field of bytes says; `none` when it says none.
int64_t IntegerOf(const RespReply& reply, int64_t none);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_ROW_REQUESTS_H_
