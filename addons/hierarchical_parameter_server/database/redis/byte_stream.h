// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A byte stream to a server, over TCP or a Unix socket, with or without TLS.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_BYTE_STREAM_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_BYTE_STREAM_H_

#include <cstddef>
#include <memory>
#include <string>

#include "addons/hierarchical_parameter_server/database/redis/deadline.h"
#include "kernels/engine/base/status.h"

namespace hps {

// For use by one thread at a time. Unusable after an error.
class ByteStream {
 public:
  virtual ~ByteStream() {}

  // Sends all bytes.
  virtual ev::Status Write(const char* from, size_t bytes,
                           const Deadline& deadline) = 0;
  // Receives between 1 and `bytes` bytes. The end of the stream raises an
  // error.
  virtual ev::Status Read(char* to, size_t bytes, const Deadline& deadline,
                          size_t* got) = 0;
};

// Connects to "host:port", "[IPv6 address]:port" or "unix:/path".
// InvalidArgument: another form of address. Unavailable: no connection before
// the deadline; the message has the address and the system's error. Resolving a
// host name is bounded only by the system's own limit.
ev::Status OpenSocket(const std::string& address, const Deadline& deadline,
                      std::unique_ptr<ByteStream>* stream);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_BYTE_STREAM_H_
