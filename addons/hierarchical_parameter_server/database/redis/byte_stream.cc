// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/redis/byte_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace hps {
namespace {

std::string WordsOf(int error) { return std::strerror(error); }

// Longest single poll, so that a deadline beyond int's range does not overflow.
constexpr int64_t kLongestPollMs = 1000;

class Socket : public ByteStream {
 public:
  explicit Socket(std::string address) : address_(std::move(address)) {}
  ~Socket() override {
    if (file_ >= 0) close(file_);
  }

  ev::Status Connect(const sockaddr* to, socklen_t bytes, int family,
                     const Deadline& deadline) {
    file_ = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (file_ < 0) return Error("socket: " + WordsOf(errno));
    if (family != AF_UNIX) {
      const int on = 1;
      setsockopt(file_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
      setsockopt(file_, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    }
    if (connect(file_, to, bytes) == 0) return ev::Status::OK();
    // A Unix socket with a full queue returns EAGAIN and never signals room;
    // the caller tries again.
    if (errno != EINPROGRESS) return Error("connect: " + WordsOf(errno));
    EV_RETURN_IF_ERROR(WaitFor(POLLOUT, "connect", deadline));
    int error = 0;
    socklen_t length = sizeof(error);
    getsockopt(file_, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) return Error("connect: " + WordsOf(error));
    return ev::Status::OK();
  }

  ev::Status Write(const char* from, size_t bytes,
                   const Deadline& deadline) override {
    while (bytes > 0) {
      const ssize_t sent = send(file_, from, bytes, MSG_NOSIGNAL);
      if (sent >= 0) {
        from += sent;
        bytes -= sent;
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        EV_RETURN_IF_ERROR(WaitFor(POLLOUT, "send", deadline));
      } else if (errno != EINTR) {
        return Error("send: " + WordsOf(errno));
      }
    }
    return ev::Status::OK();
  }

  ev::Status Read(char* to, size_t bytes, const Deadline& deadline,
                  size_t* got) override {
    for (;;) {
      const ssize_t came = recv(file_, to, bytes, 0);
      if (came > 0) {
        *got = came;
        return ev::Status::OK();
      }
      if (came == 0) return Error("the server closed the connection");
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        EV_RETURN_IF_ERROR(WaitFor(POLLIN, "receive", deadline));
      } else if (errno != EINTR) {
        return Error("receive: " + WordsOf(errno));
      }
    }
  }

 private:
  ev::Status Error(const std::string& what) const {
    return ev::Unavailable(address_ + ": " + what);
  }

  ev::Status WaitFor(short event, const char* doing, const Deadline& deadline) {
    for (;;) {
      const int64_t left = deadline.LeftMs();
      pollfd wanted = {file_, event, 0};
      const int ready =
          poll(&wanted, 1, static_cast<int>(std::min(left, kLongestPollMs)));
      // or an error, which the next call reports
      if (ready > 0) return ev::Status::OK();
      if (ready < 0 && errno != EINTR) return Error("poll: " + WordsOf(errno));
      if (left == 0) return Error(std::string(doing) + ": timed out");
    }
  }

  const std::string address_;
  int file_ = -1;
};

ev::Status Malformed(const std::string& address) {
  return ev::InvalidArgument(
      "expected an address host:port, [IPv6 address]:port or unix:/path, got "
      "\"" +
      address + "\"");
}

// Splits at the last colon; an IPv6 address is in brackets.
ev::Status Split(const std::string& address, std::string* host,
                 std::string* port) {
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return Malformed(address);
  *host = address.substr(0, colon);
  *port = address.substr(colon + 1);
  if ((*host)[0] == '[') {
    if (host->size() < 3 || host->back() != ']') return Malformed(address);
    *host = host->substr(1, host->size() - 2);
  } else if (host->find(':') != std::string::npos) {
    return Malformed(address);
  }
  char* end = nullptr;
  const long number = std::strtol(port->c_str(), &end, 10);
  if (port->empty() || *end != '\0' || number < 1 || number > 65535) {
    return Malformed(address);
  }
  return ev::Status::OK();
}

ev::Status OpenUnix(const std::string& address, const Deadline& deadline,
                    std::unique_ptr<ByteStream>* stream) {
  sockaddr_un to;
  std::memset(&to, 0, sizeof(to));
  to.sun_family = AF_UNIX;
  const std::string path = address.substr(std::strlen("unix:"));
  if (path.empty() || path.size() >= sizeof(to.sun_path)) {
    return Malformed(address);
  }
  std::memcpy(to.sun_path, path.c_str(), path.size() + 1);
  auto socket = std::make_unique<Socket>(address);
  EV_RETURN_IF_ERROR(socket->Connect(reinterpret_cast<const sockaddr*>(&to),
                                     sizeof(to), AF_UNIX, deadline));
  *stream = std::move(socket);
  return ev::Status::OK();
}

}  // namespace

ev::Status OpenSocket(const std::string& address, const Deadline& deadline,
                      std::unique_ptr<ByteStream>* stream) {
  if (address.compare(0, 5, "unix:") == 0) {
    return OpenUnix(address, deadline, stream);
  }
  std::string host, port;
  EV_RETURN_IF_ERROR(Split(address, &host, &port));
  addrinfo hints;
  std::memset(&hints, 0, sizeof(hints));
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    return ev::Unavailable(address +
                           ": the host is not found: " + gai_strerror(error));
  }
  ev::Status status = ev::Unavailable(address + ": the host has no address");
  for (addrinfo* one = found; one != nullptr; one = one->ai_next) {
    auto socket = std::make_unique<Socket>(address);
    status = socket->Connect(one->ai_addr, one->ai_addrlen, one->ai_family,
                             deadline);
    if (status.ok()) {
      *stream = std::move(socket);
      break;
    }
  }
  freeaddrinfo(found);
  return status;
}

}  // namespace hps
