// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/redis/resp.h"

#include <algorithm>

namespace hps {
namespace {

constexpr size_t kBufferBytes = 256 << 10;
// Limits on the sizes that a server may announce.
constexpr int64_t kMostBytes = int64_t{512} << 20;
constexpr int64_t kMostElements = int64_t{1} << 24;
constexpr int kMostDepth = 8;

ev::Status Broken(const std::string& what) {
  return ev::Internal("a reply breaks Redis's protocol: " + what);
}

bool ParseInteger(const char* begin, const char* end, int64_t* number) {
  const bool negative = begin != end && *begin == '-';
  if (negative) ++begin;
  if (begin == end || end - begin > 19) return false;
  uint64_t value = 0;
  for (; begin != end; ++begin) {
    if (*begin < '0' || *begin > '9') return false;
    value = value * 10 + static_cast<uint64_t>(*begin - '0');
  }
  // 19 digits stay below 2^64.
  if (value > uint64_t{1} << 63 || (!negative && value >> 63 != 0)) {
    return false;
  }
  *number = static_cast<int64_t>(negative ? 0 - value : value);
  return true;
}

}  // namespace

void RespWriter::Number(char mark, int64_t number) {
  // Counts of words and bytes are not negative. printf would cost as much as a
  // short row.
  char line[32];
  char* begin = line + sizeof(line);
  *--begin = '\n';
  *--begin = '\r';
  do {
    *--begin = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number != 0);
  *--begin = mark;
  to_->append(begin, line + sizeof(line) - begin);
}

std::string RespCommand(const std::vector<std::string>& words) {
  std::string command;
  RespWriter writer(&command);
  writer.Begin(static_cast<int64_t>(words.size()));
  for (const std::string& word : words) writer.Word(word);
  return command;
}

RespReader::RespReader(ByteStream* stream)
    : stream_(stream), buffer_(kBufferBytes) {}

ev::Status RespReader::Fill() {
  if (begin_ == end_) {
    begin_ = end_ = 0;
  } else if (end_ == buffer_.size()) {
    if (begin_ == 0) return Broken("a line is too long");
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  size_t got = 0;
  EV_RETURN_IF_ERROR(stream_->Read(buffer_.data() + end_, buffer_.size() - end_,
                                   deadline_, &got));
  end_ += got;
  return ev::Status::OK();
}

ev::Status RespReader::Line(const char** begin, const char** end) {
  size_t seen = 0;
  for (;;) {
    const char* const from = buffer_.data() + begin_;
    const size_t size = end_ - begin_;
    const void* found =
        size > seen ? std::memchr(from + seen, '\n', size - seen) : nullptr;
    if (found != nullptr) {
      const char* last = static_cast<const char*>(found);
      if (last == from || last[-1] != '\r') return Broken("a line has no end");
      *begin = from;
      *end = last - 1;
      begin_ = last + 1 - buffer_.data();
      return ev::Status::OK();
    }
    seen = size;
    EV_RETURN_IF_ERROR(Fill());
  }
}

ev::Status RespReader::Head(RespHead* head) {
  const char* begin;
  const char* end;
  EV_RETURN_IF_ERROR(Line(&begin, &end));
  if (begin == end) return Broken("an empty line");
  const char mark = *begin++;
  switch (mark) {
    case '+':
    case '-':
      head->type = mark == '+' ? RespHead::kText : RespHead::kError;
      head->text.assign(begin, end);
      head->number = 0;
      return ev::Status::OK();
    case ':':
      head->type = RespHead::kInteger;
      break;
    case '$':
      head->type = RespHead::kBytes;
      break;
    case '*':
      head->type = RespHead::kArray;
      break;
    default:
      return Broken("a line that begins with the byte " +
                    std::to_string(static_cast<unsigned char>(mark)));
  }
  if (!ParseInteger(begin, end, &head->number)) {
    return Broken("a number is invalid");
  }
  const int64_t most =
      head->type == RespHead::kBytes ? kMostBytes : kMostElements;
  if (head->type != RespHead::kInteger &&
      (head->number < -1 || head->number > most)) {
    return Broken("a size of " + std::to_string(head->number));
  }
  return ev::Status::OK();
}

ev::Status RespReader::End() {
  while (end_ - begin_ < 2) EV_RETURN_IF_ERROR(Fill());
  if (buffer_[begin_] != '\r' || buffer_[begin_ + 1] != '\n') {
    return Broken("a string of bytes has no line end after it");
  }
  begin_ += 2;
  return ev::Status::OK();
}

ev::Status RespReader::Bytes(char* to, int64_t bytes) {
  size_t wanted = static_cast<size_t>(bytes);
  for (;;) {
    const size_t available = std::min(wanted, end_ - begin_);
    std::memcpy(to, buffer_.data() + begin_, available);
    begin_ += available;
    to += available;
    wanted -= available;
    if (wanted == 0) return End();
    EV_RETURN_IF_ERROR(Fill());
  }
}

ev::Status RespReader::Skip(int64_t bytes) {
  size_t wanted = static_cast<size_t>(bytes);
  for (;;) {
    const size_t available = std::min(wanted, end_ - begin_);
    begin_ += available;
    wanted -= available;
    if (wanted == 0) return End();
    EV_RETURN_IF_ERROR(Fill());
  }
}

ev::Status RespReader::Rest(const RespHead& head, RespReply* reply) {
  return Rest(head, 0, reply);
}

ev::Status RespReader::Rest(const RespHead& head, int depth, RespReply* reply) {
  reply->type = head.type;
  reply->number = head.number;
  reply->text = head.text;
  reply->elements.clear();
  if (head.type == RespHead::kBytes && head.number >= 0) {
    reply->text.resize(head.number);
    return Bytes(&reply->text[0], head.number);
  }
  if (head.type != RespHead::kArray) return ev::Status::OK();
  if (depth == kMostDepth) return Broken("lists are nested too deeply");
  for (int64_t i = 0; i < head.number; ++i) {
    RespHead inner;
    EV_RETURN_IF_ERROR(Head(&inner));
    reply->elements.emplace_back();
    EV_RETURN_IF_ERROR(Rest(inner, depth + 1, &reply->elements.back()));
  }
  return ev::Status::OK();
}

ev::Status RespReader::Reply(RespReply* reply) {
  RespHead head;
  EV_RETURN_IF_ERROR(Head(&head));
  return Rest(head, reply);
}

}  // namespace hps
