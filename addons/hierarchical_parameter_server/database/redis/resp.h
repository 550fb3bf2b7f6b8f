// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Redis's protocol, RESP2. Commands are appended to a buffer. Replies are
// parsed from the stream incrementally, so a row is copied from the stream's
// buffer straight to its destination.
//
//   +OK\r\n   -ERR words\r\n   :12\r\n   $3\r\nabc\r\n   $-1\r\n
//   *2\r\n<reply><reply>

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_RESP_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_RESP_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/redis/byte_stream.h"
#include "addons/hierarchical_parameter_server/database/redis/deadline.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Appends commands to a string.
class RespWriter {
 public:
  explicit RespWriter(std::string* to) : to_(to) {}
  // Starts a command of `words` words, including its name; the words follow.
  void Begin(int64_t words) { Number('*', words); }
  void Word(const char* bytes, size_t size) {
    Number('$', static_cast<int64_t>(size));
    to_->append(bytes, size);
    to_->append("\r\n", 2);
  }
  void Word(const std::string& word) { Word(word.data(), word.size()); }
  // Appends a key as its 8 bytes in memory.
  void Key(int64_t key) {
    char bytes[14] = {'$', '8', '\r', '\n'};
    std::memcpy(bytes + 4, &key, sizeof(key));
    bytes[12] = '\r';
    bytes[13] = '\n';
    to_->append(bytes, sizeof(bytes));
  }

 private:
  void Number(char mark, int64_t number);

  std::string* const to_;
};

// Encodes a whole command.
std::string RespCommand(const std::vector<std::string>& words);

// The first line of a reply.
struct RespHead {
  enum Type { kText, kError, kInteger, kBytes, kArray };
  Type type = kText;
  // The integer, or the number of bytes or elements; -1: nil.
  int64_t number = 0;
  // For kText and kError.
  std::string text;
};

// A whole reply, for commands with small replies.
struct RespReply {
  RespHead::Type type = RespHead::kText;
  int64_t number = 0;
  std::string text;  // for kText, kError and kBytes
  std::vector<RespReply> elements;

  bool is_nil() const { return number == -1 && type >= RespHead::kBytes; }
};

class RespReader {
 public:
  explicit RespReader(ByteStream* stream);

  // Sets the deadline of all following calls.
  void set_deadline(const Deadline& deadline) { deadline_ = deadline; }

  ev::Status Head(RespHead* head);
  // Reads the bytes after a kBytes head with number >= 0, and their terminator.
  ev::Status Bytes(char* to, int64_t bytes);
  // Skips such bytes.
  ev::Status Skip(int64_t bytes);
  // Reads the rest of a reply after its head.
  ev::Status Rest(const RespHead& head, RespReply* reply);
  ev::Status Reply(RespReply* reply);

 private:
  ev::Status Rest(const RespHead& head, int depth, RespReply* reply);
  // Ensures that a whole line is in the buffer.
  ev::Status Line(const char** begin, const char** end);
  ev::Status Fill();
  ev::Status End();

  ByteStream* const stream_;
  Deadline deadline_ = Deadline::InMs(0);
  std::vector<char> buffer_;
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_RESP_H_
