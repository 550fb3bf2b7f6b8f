// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/source/update_message.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/database.h"
#include "kernels/engine/base/hash.h"

namespace hps {
namespace {

constexpr char kMagic[] = {'H', 'C', 'T', 'R'};
// Written by a sender that stores the magic as a little-endian number.
constexpr char kMagicReversed[] = {'R', 'T', 'C', 'H'};
constexpr size_t kHeadBytes = 8;

// Reserves at least twice the memory, so that many small messages do not copy
// the batch each time.
template <typename T>
void MakeRoom(size_t count, std::vector<T>* values) {
  if (count > values->capacity()) {
    values->reserve(std::max(count, 2 * values->capacity()));
  }
}

}  // namespace

void AppendToMessage(int64_t key, const float* row, int width,
                     std::string* message) {
  const uint32_t value_bytes = static_cast<uint32_t>(sizeof(float) * width);
  if (message->empty()) {
    message->append(kMagic, sizeof(kMagic));
    message->append(reinterpret_cast<const char*>(&value_bytes),
                    sizeof(value_bytes));
  }
  message->append(reinterpret_cast<const char*>(&key), sizeof(key));
  message->append(reinterpret_cast<const char*>(row), value_bytes);
}

ev::Status ReadMessage(const void* message, size_t bytes, UpdateBatch* batch) {
  if (bytes == 0) return ev::Status::OK();
  const auto wrong = [&](const std::string& what) {
    return ev::Status(ev::StatusCode::kDataLoss,
                      "a message of " + std::to_string(bytes) +
                          " bytes for table " + batch->tag + ": " + what);
  };
  const char* at = static_cast<const char*>(message);
  if (bytes < kHeadBytes ||
      (std::memcmp(at, kMagic, sizeof(kMagic)) != 0 &&
       std::memcmp(at, kMagicReversed, sizeof(kMagicReversed)) != 0)) {
    return wrong("expected HCTR and the size of a row at the beginning");
  }
  uint32_t value_bytes;
  std::memcpy(&value_bytes, at + sizeof(kMagic), sizeof(value_bytes));
  if (value_bytes == 0 || value_bytes % sizeof(float) != 0 ||
      value_bytes / sizeof(float) > kMaxWidth) {
    return wrong("a row has " + std::to_string(value_bytes) + " bytes");
  }
  const int width = static_cast<int>(value_bytes / sizeof(float));
  const size_t record = sizeof(int64_t) + value_bytes;
  if ((bytes - kHeadBytes) % record != 0) {
    return wrong("the last row of " + std::to_string(value_bytes) +
                 " bytes is truncated");
  }
  if (!batch->keys.empty() && batch->width != width) {
    return wrong("a width of " + std::to_string(width) + " floats after " +
                 std::to_string(batch->width));
  }
  const size_t count = (bytes - kHeadBytes) / record;
  const size_t before = batch->keys.size();
  // First, so that without memory the batch stays as it is.
  MakeRoom(before + count, &batch->keys);
  MakeRoom((before + count) * width, &batch->rows);
  batch->width = width;
  batch->keys.resize(before + count);
  batch->rows.resize((before + count) * width);
  at += kHeadBytes;
  for (size_t i = before; i < before + count; ++i, at += record) {
    std::memcpy(&batch->keys[i], at, sizeof(int64_t));
    std::memcpy(&batch->rows[i * width], at + sizeof(int64_t), value_bytes);
  }
  return ev::Status::OK();
}

int GroupOf(int64_t key) {
  return static_cast<int>(ev::MixKey(key) % kNumGroups);
}

ev::Status CheckUpdate(const std::string& tag, int width) {
  return CheckTable("of the receiver of updates", tag, width);
}

}  // namespace hps
