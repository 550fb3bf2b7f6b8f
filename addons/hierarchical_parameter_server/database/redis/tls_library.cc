// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/redis/tls_library.h"

#include "addons/hierarchical_parameter_server/database/opened_library.h"

namespace hps {
namespace {

struct Loaded {
  ev::Status status;
  TlsLibrary library;
};

Loaded Load() {
  Loaded loaded;
  OpenedLibrary file("TLS", "OpenSSL (package libssl3)", "HPS_SSL_LIBRARY",
                     {"libssl.so.3", "libssl.so.1.1"});
  TlsLibrary* t = &loaded.library;
  file.Find("TLS_client_method", &t->client_method);
  file.Find("SSL_CTX_new", &t->context_new);
  file.Find("SSL_CTX_free", &t->context_free);
  file.Find("SSL_CTX_load_verify_locations", &t->load_verify_locations);
  file.Find("SSL_CTX_use_certificate_chain_file",
            &t->use_certificate_chain_file);
  file.Find("SSL_CTX_use_PrivateKey_file", &t->use_private_key_file);
  file.Find("SSL_CTX_check_private_key", &t->check_private_key);
  file.Find("SSL_CTX_set_verify", &t->set_verify);
  file.Find("SSL_new", &t->session_new);
  file.Find("SSL_free", &t->session_free);
  file.Find("SSL_ctrl", &t->session_control);
  file.Find("SSL_set1_host", &t->set_host);
  file.Find("SSL_set_bio", &t->set_bio);
  file.Find("SSL_do_handshake", &t->handshake);
  file.Find("SSL_read", &t->read);
  file.Find("SSL_write", &t->write);
  file.Find("SSL_get_error", &t->get_error);
  file.Find("SSL_get_verify_result", &t->get_verify_result);
  file.Find("X509_verify_cert_error_string", &t->verify_error_string);
  file.Find("BIO_s_mem", &t->bio_memory);
  file.Find("BIO_new", &t->bio_new);
  file.Find("BIO_read", &t->bio_read);
  file.Find("BIO_write", &t->bio_write);
  file.Find("BIO_ctrl", &t->bio_control);
  file.Find("ERR_get_error", &t->error_next);
  file.Find("ERR_error_string_n", &t->error_string);
  file.Find("ERR_clear_error", &t->error_clear);
  file.Find("SSL_set_connect_state", &t->set_connect_state);
  loaded.status = file.status();
  return loaded;
}

}  // namespace

ev::Status TlsLibrary::Get(const TlsLibrary** library) {
  static const Loaded* const loaded = new Loaded(Load());
  *library = &loaded->library;
  return loaded->status;
}

std::string TlsLibrary::TakeError() const {
  const unsigned long error = error_next();
  error_clear();
  if (error == 0) return "no details from OpenSSL";
  char words[256];
  error_string(error, words, sizeof(words));
  return words;
}

}  // namespace hps
