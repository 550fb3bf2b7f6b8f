// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// OpenSSL's functions, loaded when the first connection uses TLS: OpenSSL is
// not needed to build or to start the program. The declarations follow
// OpenSSL's documentation and are the same in 1.1 and 3.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_TLS_LIBRARY_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_TLS_LIBRARY_H_

#include <cstddef>
#include <string>

#include "kernels/engine/base/status.h"

namespace hps {

struct TlsLibrary {
  struct Method;
  struct Context;
  struct Session;
  struct Bio;
  struct BioMethod;
  enum Error { kZeroReturn = 6, kWantRead = 2, kWantWrite = 3 };
  enum { kPem = 1, kVerifyPeer = 1, kSetServerName = 55, kBioPending = 10 };

  const Method* (*client_method)();
  Context* (*context_new)(const Method* method);
  void (*context_free)(Context* context);
  int (*load_verify_locations)(Context* context, const char* file,
                               const char* folder);
  int (*use_certificate_chain_file)(Context* context, const char* file);
  int (*use_private_key_file)(Context* context, const char* file, int type);
  int (*check_private_key)(const Context* context);
  void (*set_verify)(Context* context, int mode, void* callback);
  Session* (*session_new)(Context* context);
  void (*session_free)(Session* session);
  long (*session_control)(Session* session, int command, long number,
                          void* pointer);
  int (*set_host)(Session* session, const char* name);
  void (*set_bio)(Session* session, Bio* read, Bio* write);
  int (*handshake)(Session* session);
  int (*read)(Session* session, void* to, int bytes);
  int (*write)(Session* session, const void* from, int bytes);
  int (*get_error)(const Session* session, int result);
  long (*get_verify_result)(const Session* session);
  const char* (*verify_error_string)(long result);
  const BioMethod* (*bio_memory)();
  Bio* (*bio_new)(const BioMethod* method);
  int (*bio_read)(Bio* bio, void* to, int bytes);
  int (*bio_write)(Bio* bio, const void* from, int bytes);
  long (*bio_control)(Bio* bio, int command, long number, void* pointer);
  unsigned long (*error_next)();
  void (*error_string)(unsigned long error, char* to, size_t bytes);
  void (*error_clear)();
  void (*set_connect_state)(Session* session);

  // Loads the library named by HPS_SSL_LIBRARY, else libssl.so.3, else
  // libssl.so.1.1, once. FailedPrecondition: none was found; the message lists
  // what was tried.
  static ev::Status Get(const TlsLibrary** library);

  // Returns the calling thread's oldest OpenSSL error and clears all.
  std::string TakeError() const;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_TLS_LIBRARY_H_
