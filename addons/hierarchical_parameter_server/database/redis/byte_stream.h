// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Bytes to a server and back, over TCP or a Unix socket, with or without TLS.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_BYTE_STREAM_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_BYTE_STREAM_H_

#include <cstddef>
#include <memory>
#include <string>

#include "addons/hierarchical_parameter_server/database/redis/deadline.h"
#include "kernels/engine/base/status.h"

namespace hps {

// One thread at a time. After an error the stream is of no more use.
class ByteStream {
 public:
  virtual ~ByteStream() {}

  // Sends all bytes.
  virtual ev::Status Write(const char* from, size_t bytes,
                           const Deadline& deadline) = 0;
  // Receives at least one byte and at most `bytes`. The end of the stream is an
  // error.
  virtual ev::Status Read(char* to, size_t bytes, const Deadline& deadline,
                          size_t* got) = 0;
};

// Connects to "host:port", "[IPv6 address]:port" or "unix:/path".
// InvalidArgument for an address of another form; Unavailable, with the address
// and the system's words, when there is no connection before the deadline. The
// look-up of a host's name has the system's own bound.
ev::Status OpenSocket(const std::string& address, const Deadline& deadline,
                      std::unique_ptr<ByteStream>* stream);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_BYTE_STREAM_H_
