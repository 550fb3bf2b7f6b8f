// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// TLS over a stream of bytes. OpenSSL works on memory and never sees the
// socket: the socket's waits keep their bounds, and no signal comes of it.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_TLS_STREAM_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_TLS_STREAM_H_

#include <memory>
#include <string>

#include "addons/hierarchical_parameter_server/database/redis/byte_stream.h"
#include "kernels/engine/base/status.h"

namespace hps {

struct TlsOptions {
  bool enabled = false;
  // A file or a folder of certificates that the server's is checked against.
  std::string ca_certificate;
  // Of this side; both empty where the server asks for none.
  std::string client_certificate;
  std::string client_key;
  // The name that is asked for, and that the server's certificate must have;
  // empty: none is asked for and any name will do.
  std::string server_name;
};

// What all connections share: the certificates, read once.
class TlsContext {
 public:
  // FailedPrecondition: OpenSSL is not there. InvalidArgument: a file cannot be
  // read or the key is not the certificate's; the message names the file.
  static ev::Status Make(const TlsOptions& options,
                         std::shared_ptr<TlsContext>* context);
  virtual ~TlsContext() {}
  // Takes the stream over and shakes hands. `address` is for messages.
  virtual ev::Status Wrap(const std::string& address,
                          std::unique_ptr<ByteStream> plain,
                          const Deadline& deadline,
                          std::unique_ptr<ByteStream>* wrapped) = 0;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_TLS_STREAM_H_
