// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/redis/tls_stream.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "addons/hierarchical_parameter_server/database/redis/tls_library.h"

namespace hps {
namespace {

constexpr size_t kPieceBytes = 64 << 10;

class Context : public TlsContext,
                public std::enable_shared_from_this<Context> {
 public:
  explicit Context(const TlsLibrary* library) : library_(library) {}
  ~Context() override {
    if (context_ != nullptr) library_->context_free(context_);
  }
  ev::Status Open(const TlsOptions& options);
  ev::Status Wrap(const std::string& address, std::unique_ptr<ByteStream> plain,
                  const Deadline& deadline,
                  std::unique_ptr<ByteStream>* wrapped) override;
  TlsLibrary::Context* get() const { return context_; }

 private:
  ev::Status Bad(const std::string& what, const std::string& file) const {
    return ev::InvalidArgument("TLS: " + what + " '" + file +
                               "' cannot be used: " + library_->TakeError());
  }

  const TlsLibrary* const library_;
  TlsLibrary::Context* context_ = nullptr;
  std::string server_name_;
};

class TlsStream : public ByteStream {
 public:
  TlsStream(const TlsLibrary* library, std::shared_ptr<Context> context,
            std::string address, std::unique_ptr<ByteStream> plain)
      : library_(library),
        context_(std::move(context)),
        address_(std::move(address)),
        plain_(std::move(plain)),
        piece_(kPieceBytes) {}
  ~TlsStream() override {
    if (session_ != nullptr) library_->session_free(session_);
  }

  ev::Status Handshake(const std::string& server_name,
                       const Deadline& deadline) {
    session_ = library_->session_new(context_->get());
    in_ = library_->bio_new(library_->bio_memory());
    out_ = library_->bio_new(library_->bio_memory());
    if (session_ == nullptr || in_ == nullptr || out_ == nullptr) {
      return Error("no memory");
    }
    library_->set_bio(session_, in_, out_);  // the session frees both
    library_->set_connect_state(session_);
    if (!server_name.empty()) {
      constexpr long kHostName = 0;
      library_->session_control(session_, TlsLibrary::kSetServerName, kHostName,
                                const_cast<char*>(server_name.c_str()));
      if (library_->set_host(session_, server_name.c_str()) != 1) {
        return Error("the server's name '" + server_name + "' is none");
      }
    }
    for (;;) {
      library_->error_clear();
      const int result = library_->handshake(session_);
      const ev::Status sent = SendOut(deadline);
      if (result == 1) return sent;
      if (library_->get_error(session_, result) != TlsLibrary::kWantRead) {
        return HandshakeError();
      }
      EV_RETURN_IF_ERROR(sent);
      EV_RETURN_IF_ERROR(TakeIn(deadline));
    }
  }

  ev::Status Write(const char* from, size_t bytes,
                   const Deadline& deadline) override {
    while (bytes > 0) {
      const int now = static_cast<int>(std::min(bytes, kPieceBytes));
      library_->error_clear();
      const int result = library_->write(session_, from, now);
      EV_RETURN_IF_ERROR(SendOut(deadline));
      if (result > 0) {
        from += result;
        bytes -= result;
      } else {
        EV_RETURN_IF_ERROR(Wanted(result, deadline));
      }
    }
    return ev::Status::OK();
  }

  ev::Status Read(char* to, size_t bytes, const Deadline& deadline,
                  size_t* got) override {
    for (;;) {
      library_->error_clear();
      const int result = library_->read(
          session_, to, static_cast<int>(std::min(bytes, kPieceBytes)));
      EV_RETURN_IF_ERROR(SendOut(deadline));
      if (result > 0) {
        *got = result;
        return ev::Status::OK();
      }
      EV_RETURN_IF_ERROR(Wanted(result, deadline));
    }
  }

 private:
  ev::Status Error(const std::string& what) const {
    return ev::Unavailable(address_ + ": TLS: " + what);
  }

  ev::Status HandshakeError() const {
    const long check = library_->get_verify_result(session_);
    if (check != 0) {
      // Not Unavailable: a retry would fail the same way.
      return ev::FailedPrecondition(
          address_ + ": TLS: the server's certificate is not accepted (" +
          library_->verify_error_string(check) +
          "; tls_ca_certificate and tls_server_name_identification say "
          "what is)");
    }
    return Error("no handshake: " + library_->TakeError());
  }

  // Handles a read or write without progress: OK if it may be retried.
  ev::Status Wanted(int result, const Deadline& deadline) {
    const int why = library_->get_error(session_, result);
    if (why == TlsLibrary::kWantRead) return TakeIn(deadline);
    if (why == TlsLibrary::kZeroReturn) {
      return Error("the server closed the connection");
    }
    return Error(library_->TakeError());
  }

  ev::Status SendOut(const Deadline& deadline) {
    while (library_->bio_control(out_, TlsLibrary::kBioPending, 0, nullptr) >
           0) {
      const int bytes = library_->bio_read(out_, piece_.data(),
                                           static_cast<int>(piece_.size()));
      if (bytes <= 0) break;
      EV_RETURN_IF_ERROR(plain_->Write(piece_.data(), bytes, deadline));
    }
    return ev::Status::OK();
  }

  ev::Status TakeIn(const Deadline& deadline) {
    size_t got = 0;
    EV_RETURN_IF_ERROR(
        plain_->Read(piece_.data(), piece_.size(), deadline, &got));
    const int taken =
        library_->bio_write(in_, piece_.data(), static_cast<int>(got));
    if (taken != static_cast<int>(got)) return Error("no memory");
    return ev::Status::OK();
  }

  const TlsLibrary* const library_;
  const std::shared_ptr<Context> context_;
  const std::string address_;
  const std::unique_ptr<ByteStream> plain_;
  std::vector<char> piece_;
  TlsLibrary::Session* session_ = nullptr;
  TlsLibrary::Bio* in_ = nullptr;
  TlsLibrary::Bio* out_ = nullptr;
};

ev::Status Context::Open(const TlsOptions& options) {
  context_ = library_->context_new(library_->client_method());
  if (context_ == nullptr) {
    return ev::Internal("TLS: no context: " + library_->TakeError());
  }
  server_name_ = options.server_name;
  struct stat about;
  const char* const ca = options.ca_certificate.c_str();
  if (stat(ca, &about) != 0) {
    return ev::InvalidArgument("TLS: tls_ca_certificate '" +
                               options.ca_certificate + "' is not there");
  }
  const bool is_folder = S_ISDIR(about.st_mode);
  if (library_->load_verify_locations(context_, is_folder ? nullptr : ca,
                                      is_folder ? ca : nullptr) != 1) {
    return Bad("tls_ca_certificate", options.ca_certificate);
  }
  library_->set_verify(context_, TlsLibrary::kVerifyPeer, nullptr);
  if (options.client_certificate.empty() && options.client_key.empty()) {
    return ev::Status::OK();
  }
  if (library_->use_certificate_chain_file(
          context_, options.client_certificate.c_str()) != 1) {
    return Bad("tls_client_certificate", options.client_certificate);
  }
  if (library_->use_private_key_file(context_, options.client_key.c_str(),
                                     TlsLibrary::kPem) != 1 ||
      library_->check_private_key(context_) != 1) {
    return Bad("tls_client_key", options.client_key);
  }
  return ev::Status::OK();
}

ev::Status Context::Wrap(const std::string& address,
                         std::unique_ptr<ByteStream> plain,
                         const Deadline& deadline,
                         std::unique_ptr<ByteStream>* wrapped) {
  auto stream = std::make_unique<TlsStream>(library_, shared_from_this(),
                                            address, std::move(plain));
  EV_RETURN_IF_ERROR(stream->Handshake(server_name_, deadline));
  *wrapped = std::move(stream);
  return ev::Status::OK();
}

}  // namespace

ev::Status TlsContext::Make(const TlsOptions& options,
                            std::shared_ptr<TlsContext>* context) {
  const TlsLibrary* library = nullptr;
  EV_RETURN_IF_ERROR(TlsLibrary::Get(&library));
  auto made = std::make_shared<Context>(library);
  EV_RETURN_IF_ERROR(made->Open(options));
  *context = std::move(made);
  return ev::Status::OK();
}

}  // namespace hps
