// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The update producers of this process, identified by numbers that a
// framework's ops can pass. This header compiles as C++14.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_PRODUCERS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_PRODUCERS_H_

#include <cstdint>
#include <string>

#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Opens a producer. type and target as in update_source: "kafka_message_queue"
// with brokers, or "directory" with a path. InvalidArgument: another type.
// Otherwise the producer's own errors. All functions of this file are
// thread-safe.
ev::Status OpenProducer(const std::string& type, const std::string& target,
                        int64_t* number);

// All return NotFound if no producer has the number.
ev::Status SendRows(int64_t number, const std::string& tag, int64_t width,
                    ev::Span<const int64_t> keys, const float* rows);
ev::Status FlushRows(int64_t number, int64_t timeout_ms);
// Does not wait for running calls; the last of them destroys the producer. Rows
// that were not flushed: "directory" writes them then, Kafka may drop them.
ev::Status CloseProducer(int64_t number);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_PRODUCERS_H_
