// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The producers of this process, by number: what a framework's ops send updates
// with. C++14 reads this header.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_PRODUCERS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_PRODUCERS_H_

#include <cstdint>
#include <string>

#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace hps {

// type and target are those of update_source: "kafka_message_queue" and its
// brokers, "directory" and its path. InvalidArgument: another type. Otherwise
// the producer's own errors. Thread-safe, as are all below.
ev::Status OpenProducer(const std::string& type, const std::string& target,
                        int64_t* number);

// All: NotFound when there is no producer of the number.
ev::Status SendRows(int64_t number, const std::string& tag, int64_t width,
                    ev::Span<const int64_t> keys, const float* rows);
ev::Status FlushRows(int64_t number, int64_t timeout_ms);
// Calls that run end first.
ev::Status CloseProducer(int64_t number);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_PRODUCERS_H_
