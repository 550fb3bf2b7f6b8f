// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// TLS over a byte stream. OpenSSL works on memory buffers and never uses the
// socket, so socket waits keep their deadlines and no signals are raised.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_TLS_STREAM_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_TLS_STREAM_H_

#include <memory>
#include <string>

#include "addons/hierarchical_parameter_server/database/redis/byte_stream.h"
#include "kernels/engine/base/status.h"

namespace hps {

struct TlsOptions {
  bool enabled = false;
  // File or folder of certificates to verify the server's certificate with.
  std::string ca_certificate;
  // The client's certificate; both are empty if the server requires none.
  std::string client_certificate;
  std::string client_key;
  // Server name to send (SNI) and to find in the server's certificate; if
  // empty, none is sent and any name is accepted.
  std::string server_name;
};

// State shared by all connections: the certificates, read once.
class TlsContext {
 public:
  // FailedPrecondition: OpenSSL was not found. InvalidArgument: a file cannot
  // be read, or the key does not match the certificate; the message names the
  // file.
  static ev::Status Make(const TlsOptions& options,
                         std::shared_ptr<TlsContext>* context);
  virtual ~TlsContext() {}
  // Takes ownership of the stream and performs the handshake. `address` is for
  // messages.
  virtual ev::Status Wrap(const std::string& address,
                          std::unique_ptr<ByteStream> plain,
                          const Deadline& deadline,
                          std::unique_ptr<ByteStream>* wrapped) = 0;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_TLS_STREAM_H_
