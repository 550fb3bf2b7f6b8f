// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Rows of a table as a message of a queue:
//
//   4 bytes "HCTR" | u32 value size in bytes | key value | key value | ...
//
// with int64 keys and float32 values as they are in memory (little-endian). A
// message without a byte is a beacon, and says nothing.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_UPDATE_MESSAGE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_UPDATE_MESSAGE_H_

#include <cstdint>
#include <string>

#include "addons/hierarchical_parameter_server/source/update_source.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Appends to a message, which begins with its head if it is empty.
// REQUIRES: the message has rows of the same width.
void AppendToMessage(int64_t key, const float* row, int width,
                     std::string* message);

// Appends the message's rows to the batch, of which the tag is set. A batch
// that has rows keeps its width. DataLoss: it is no such message, or has
// another width; the batch is as it was.
ev::Status ReadMessage(const void* message, size_t bytes, UpdateBatch* batch);

// Keys go in eight groups, and a group always to the same part of a queue, so
// that updates of a key keep their order.
constexpr int kNumGroups = 8;
int GroupOf(int64_t key);

// InvalidArgument unless a table may have the tag and the width.
ev::Status CheckUpdate(const std::string& tag, int width);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_UPDATE_MESSAGE_H_
