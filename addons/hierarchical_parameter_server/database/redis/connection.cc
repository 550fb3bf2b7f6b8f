// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/redis/connection.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <utility>

#include "kernels/engine/base/tasks.h"

namespace hps {
namespace {

ev::Status PasswordOf(const RedisOptions& options, std::string* password) {
  if (!options.password_file.empty()) {
    std::ifstream file(options.password_file);
    if (!std::getline(file, *password)) {
      return ev::InvalidArgument("password_file '" + options.password_file +
                                 "' cannot be read or is empty");
    }
    if (!password->empty() && password->back() == '\r') password->pop_back();
    return ev::Status::OK();
  }
  if (!options.password_env.empty()) {
    const char* found = std::getenv(options.password_env.c_str());
    if (found == nullptr) {
      return ev::InvalidArgument(
          "password_env: there is no environment variable " +
          options.password_env);
    }
    *password = found;
    return ev::Status::OK();
  }
  *password = options.password;
  return ev::Status::OK();
}

int64_t NextId() {
  static std::atomic<int64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Connection::Connection(std::unique_ptr<ByteStream> stream)
    : id_(NextId()), stream_(std::move(stream)), reader_(stream_.get()) {}

ev::Status Connection::Open(const std::string& address,
                            const RedisOptions& options, TlsContext* tls,
                            const Deadline& deadline,
                            std::unique_ptr<Connection>* connection) {
  std::string password;
  EV_RETURN_IF_ERROR(PasswordOf(options, &password));
  // Uses at most half of the time, so that a hanging server leaves time to
  // query others for the moved slots.
  const int64_t most = std::max(deadline.limit_ms() / 2, int64_t{1});
  const Deadline soon =
      Deadline::InMs(std::min(options.connect_timeout_ms, most))
          .OrEarlier(deadline);
  std::unique_ptr<ByteStream> stream;
  EV_RETURN_IF_ERROR(OpenSocket(address, soon, &stream));
  if (tls != nullptr) {
    std::unique_ptr<ByteStream> plain = std::move(stream);
    EV_RETURN_IF_ERROR(tls->Wrap(address, std::move(plain), soon, &stream));
  }
  std::unique_ptr<Connection> made(new Connection(std::move(stream)));
  const bool is_default =
      options.user_name.empty() || options.user_name == "default";
  if (!password.empty() || !is_default) {
    std::vector<std::string> words = {"AUTH"};
    if (!is_default) words.push_back(options.user_name);
    words.push_back(password);
    RespReply reply;
    EV_RETURN_IF_ERROR(made->Call(words, soon, &reply));
    if (reply.type == RespHead::kError) {
      const std::string message = address + ": user '" + options.user_name +
                                  "' is refused: " + reply.text;
      // A server that is still loading its files replies so to AUTH too.
      return reply.text.compare(0, 7, "LOADING") == 0
                 ? ev::Unavailable(message)
                 : ev::FailedPrecondition(message);
    }
  }
  *connection = std::move(made);
  return ev::Status::OK();
}

ev::Status Connection::Call(const std::vector<std::string>& words,
                            const Deadline& deadline, RespReply* reply) {
  const std::string command = RespCommand(words);
  EV_RETURN_IF_ERROR(stream_->Write(command.data(), command.size(), deadline));
  reader_.set_deadline(deadline);
  return reader_.Reply(reply);
}

ConnectionPool::ConnectionPool(std::string address, const RedisOptions* options,
                               std::shared_ptr<TlsContext> tls)
    : address_(std::move(address)), options_(options), tls_(std::move(tls)) {}

ev::Status ConnectionPool::Take(const Deadline& deadline,
                                std::unique_ptr<Connection>* connection) {
  {
    std::unique_lock<std::mutex> lock(mutex_);
    while (idle_.empty() && num_lent_ >= options_->num_node_connections) {
      const int64_t left = deadline.LeftMs();
      if (left == 0) {
        return ev::Unavailable(
            address_ + ": timed out while all " +
            std::to_string(options_->num_node_connections) +
            " connections (num_node_connections) are in use");
      }
      // Waits on the system clock, which every platform supports, in short
      // intervals, so that a change of that clock matters little.
      came_back_.wait_until(
          lock, std::chrono::system_clock::now() +
                    std::chrono::milliseconds(std::min(left, int64_t{50})));
    }
    ++num_lent_;
    if (!idle_.empty()) {
      *connection = std::move(idle_.back());
      idle_.pop_back();
      return ev::Status::OK();
    }
  }
  const ev::Status status = ev::CatchBadAlloc([&] {
    return Connection::Open(address_, *options_, tls_.get(), deadline,
                            connection);
  });
  if (!status.ok()) {
    std::lock_guard<std::mutex> lock(mutex_);
    --num_lent_;
    came_back_.notify_one();
  }
  return status;
}

void ConnectionPool::GiveBack(std::unique_ptr<Connection> connection) {
  std::lock_guard<std::mutex> lock(mutex_);
  --num_lent_;
  idle_.push_back(std::move(connection));
  came_back_.notify_one();
}

void ConnectionPool::GiveUp() {
  std::vector<std::unique_ptr<Connection>> closed;
  std::lock_guard<std::mutex> lock(mutex_);
  --num_lent_;
  closed.swap(idle_);
  came_back_.notify_one();
}

}  // namespace hps
