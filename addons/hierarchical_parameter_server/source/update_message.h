// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The format of a queue message with rows of one table:
//
//   4 bytes "HCTR" | u32 value size in bytes | key value | key value | ...
//
// with int64 keys and float32 values in little-endian order. An empty message
// is a beacon without content.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_UPDATE_MESSAGE_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_UPDATE_MESSAGE_H_

#include <cstdint>
#include <string>

#include "addons/hierarchical_parameter_server/source/update_source.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Appends a row to a message, and the header first if the message is empty.
// REQUIRES: the message has rows of the same width.
void AppendToMessage(int64_t key, const float* row, int width,
                     std::string* message);

// Appends the message's rows to the batch, whose tag is set. A batch with rows
// keeps its width. DataLoss: the message is invalid or has another width; the
// batch is unchanged.
ev::Status ReadMessage(const void* message, size_t bytes, UpdateBatch* batch);

// Number of key groups. A group always goes to the same partition of a queue,
// so that updates of a key keep their order.
constexpr int kNumGroups = 8;
int GroupOf(int64_t key);

// InvalidArgument: no table may have this tag or width.
ev::Status CheckUpdate(const std::string& tag, int width);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SOURCE_UPDATE_MESSAGE_H_
