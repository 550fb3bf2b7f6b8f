// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The commands that transfer rows. A partition of a table is a Redis hash: each
// field is the 8 bytes of a key, its value the row's floats. The extra field
// "n" counts changes of the partition (redis_table.h explains its use).

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_ROW_REQUESTS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_ROW_REQUESTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/redis/redis_client.h"
#include "kernels/engine/base/span.h"

namespace hps {

extern const char kChangesField[];  // "n"

// Second in which a partition with this number of changes was created.
inline int64_t Second(int64_t changes) { return changes >> 32; }

// Whether a partition with `seen` changes can have come to `changes` without
// being emptied. After 2^32 changes, which take days, their number reaches the
// bits of the second in which the partition was created. A partition that is
// created again gets the second of that time, which is far ahead then.
inline bool Continues(int64_t seen, int64_t changes) {
  return changes >= seen &&
         (Second(changes) == Second(seen) || changes - seen < int64_t{1} << 31);
}

// HMGET of rows together with the change count, read atomically.
class FetchRows : public RedisRequest {
 public:
  // positions: the keys to fetch. Row p is written to rows + p * width, unless
  // the change count is incompatible with `seen` (rows were lost).
  FetchRows(int slot, const std::string* hash, const int64_t* keys,
            ev::Span<const int64_t> positions, int width, float* rows,
            int64_t seen);
  void Encode(RespWriter* writer) const override;
  ev::Status Take(const RespHead& head, RespReader* reader) override;

  // 1 for each position whose row exists, otherwise 0.
  const std::vector<uint8_t>& found() const { return found_; }
  // The change count; -1: the partition does not exist.
  int64_t changes() const { return changes_; }
  // DataLoss: a value is not a row of this table. Internal: a row disappeared
  // between two attempts after part of it was read.
  const ev::Status& error() const { return error_; }

 private:
  const std::string* const hash_;
  const int64_t* const keys_;
  const ev::Span<const int64_t> positions_;
  const int width_;
  float* const rows_;
  const int64_t seen_;
  std::vector<uint8_t> found_;
  std::vector<uint8_t> touched_;  // written by this or an earlier attempt
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

// A command with a hash and some of its keys, such as HDEL or an HSET of times;
// optionally the same word follows each key. The reply is an integer.
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

// Parses the integer in a bytes reply; returns `none` if it is not an integer.
int64_t IntegerOf(const RespReply& reply, int64_t none);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_ROW_REQUESTS_H_
