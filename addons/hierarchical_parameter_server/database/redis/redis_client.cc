// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/redis/redis_client.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

namespace hps {
namespace {

// Most bytes of commands that a connection sends ahead of their replies.
constexpr size_t kMostBytesAhead = 1 << 20;
constexpr int64_t kFirstPauseMs = 10;
constexpr int64_t kLongestPauseMs = 250;
constexpr int64_t kRefreshPollMs = 2;

bool StartsWith(const std::string& text, const char* prefix) {
  return text.compare(0, std::char_traits<char>::length(prefix), prefix) == 0;
}

// Returns whether a retry may succeed: the server was not reached or not ready,
// or its reply broke Redis's protocol.
bool MayPass(const ev::Status& status) {
  return status.code() == ev::StatusCode::kUnavailable ||
         status.code() == ev::StatusCode::kInternal;
}

// Returns whether a server's error is temporary.
bool IsPassing(const std::string& error) {
  for (const char* prefix : {"LOADING", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN",
                             "READONLY", "BUSY ", "NOREPLICAS"}) {
    if (StartsWith(error, prefix)) return true;
  }
  return false;
}

void Pause(int attempts, const Deadline& deadline) {
  const int64_t pause =
      std::min(kLongestPauseMs, kFirstPauseMs << std::min(attempts, 6));
  std::this_thread::sleep_for(
      std::chrono::milliseconds(std::min(pause, deadline.LeftMs())));
}

}  // namespace

// A pending request, and the node that an ASK redirection named.
struct RedisClient::Work {
  RedisRequest* request;
  std::string ask;
};

struct RedisClient::Attempt {
  // Set to refresh the topology, and to pause, before the next attempt.
  bool is_moved = false;
  bool is_broken = false;
  // error of the last pending request
  ev::Status why;
  // The last error reply of a server; "": none.
  std::string reply;
};

ev::Status RedisClient::Open(const RedisOptions& options,
                             std::unique_ptr<RedisClient>* client) {
  if (options.addresses.empty()) {
    return ev::InvalidArgument("address: expected at least one, got none");
  }
  std::unique_ptr<RedisClient> made(new RedisClient(options));
  if (options.tls.enabled) {
    EV_RETURN_IF_ERROR(TlsContext::Make(options.tls, &made->tls_));
  }
  const Deadline deadline = Deadline::InMs(options.timeout_ms);
  for (int attempts = 0;; ++attempts) {
    const ev::Status status = made->Refresh(0, deadline);
    if (status.ok()) break;
    if (!MayPass(status)) return status;
    Pause(attempts, deadline);
    if (deadline.HasCome()) return status;
  }
  *client = std::move(made);
  return ev::Status::OK();
}

RedisClient::Pool RedisClient::PoolOf(const std::string& address) {
  std::lock_guard<std::mutex> lock(mutex_);
  Pool& pool = pools_[address];
  if (pool == nullptr) {
    pool = std::make_shared<ConnectionPool>(address, &options_, tls_);
  }
  return pool;
}

bool RedisClient::is_cluster() {
  std::lock_guard<std::mutex> lock(mutex_);
  return is_cluster_;
}

std::shared_ptr<const Topology> RedisClient::CurrentTopology(int64_t* number) {
  std::lock_guard<std::mutex> lock(mutex_);
  *number = topology_number_;
  return topology_;
}

ev::Status RedisClient::Learn(const std::string& address,
                              const Deadline& deadline, Topology* topology,
                              bool* is_cluster) {
  Lease lease;
  EV_RETURN_IF_ERROR(lease.Take(PoolOf(address), deadline));
  RespReply reply;
  EV_RETURN_IF_ERROR(lease->Call(
      {"CLUSTER", "SLOTS"},
      Deadline::InMs(options_.connect_timeout_ms).OrEarlier(deadline), &reply));
  lease.Done();
  *is_cluster = reply.type != RespHead::kError;
  if (*is_cluster) return ParseTopology(reply, address, topology);
  if (IsPassing(reply.text)) {
    return ev::Unavailable(address + ": " + reply.text);
  }
  if (reply.text.find("cluster support disabled") == std::string::npos) {
    return ev::FailedPrecondition(address + ": CLUSTER SLOTS: " + reply.text);
  }
  if (options_.addresses.size() > 1) {
    return ev::FailedPrecondition(
        address + " is no node of a cluster, and address names " +
        std::to_string(options_.addresses.size()) +
        " servers: expected nodes of one cluster, or one server");
  }
  *topology = Topology::Single(address);
  return ev::Status::OK();
}

ev::Status RedisClient::Reach() {
  const Deadline deadline = Deadline::InMs(options_.timeout_ms);
  int64_t number = 0;
  const auto topology = CurrentTopology(&number);
  for (const std::string& node : topology->nodes) {
    Lease lease;
    EV_RETURN_IF_ERROR(lease.Take(PoolOf(node), deadline));
    RespReply reply;
    EV_RETURN_IF_ERROR(lease->Call({"PING"}, deadline, &reply));
    lease.Done();
    if (reply.type != RespHead::kError) continue;
    const std::string message = node + ": PING: " + reply.text;
    return IsPassing(reply.text) ? ev::Unavailable(message)
                                 : ev::FailedPrecondition(message);
  }
  return ev::Status::OK();
}

ev::Status RedisClient::Refresh(int64_t seen, const Deadline& deadline) {
  // One thread queries; the others wait for its result, until their own
  // deadlines.
  std::unique_lock<std::mutex> refresh(refresh_mutex_, std::try_to_lock);
  while (!refresh.owns_lock()) {
    if (deadline.HasCome()) {
      return ev::Unavailable(
          options_.addresses[0] +
          ": timed out while another call queries the cluster's nodes");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(kRefreshPollMs));
    refresh.try_lock();
  }
  int64_t number = 0;
  const auto known = CurrentTopology(&number);
  if (number > seen) return ev::Status::OK();
  std::vector<std::string> addresses = options_.addresses;
  if (known != nullptr) {
    for (const std::string& node : known->nodes) {
      if (std::find(addresses.begin(), addresses.end(), node) ==
          addresses.end()) {
        addresses.push_back(node);
      }
    }
  }
  ev::Status status;
  for (size_t i = 0; i < addresses.size(); ++i) {
    // Splits the time, so that a hanging server leaves some for the next ones.
    const int64_t left = static_cast<int64_t>(addresses.size() - i);
    const Deadline share =
        Deadline::InMs(std::max(deadline.LeftMs() / left, int64_t{1}))
            .OrEarlier(deadline);
    Topology topology;
    bool is_cluster = false;
    status = Learn(addresses[i], share, &topology, &is_cluster);
    if (status.ok()) {
      std::lock_guard<std::mutex> lock(mutex_);
      topology_ = std::make_shared<const Topology>(std::move(topology));
      is_cluster_ = is_cluster;
      ++topology_number_;
      return status;
    }
    if (!MayPass(status)) return status;
    if (deadline.HasCome()) return status;
  }
  return status;
}

ev::Status RedisClient::OnError(const std::string& error,
                                const std::string& address, Work* work,
                                Attempt* attempt) {
  const Redirection to = ParseRedirection(error, address);
  if (to.kind != Redirection::kNone || IsPassing(error)) {
    attempt->why = ev::Unavailable(address + ": " + error);
    attempt->reply = attempt->why.message();
    if (to.kind == Redirection::kAsk) {
      work->ask = to.address;
    } else {
      attempt->is_moved = true;
      attempt->is_broken = attempt->is_broken || to.kind == Redirection::kNone;
    }
    return ev::Status::OK();
  }
  if (StartsWith(error, "OOM")) {
    return ev::ResourceExhausted(address + ": " + error);
  }
  return ev::FailedPrecondition(address + ": " + error);
}

// The work for one node.
struct RedisClient::NodeWork {
  std::vector<Work*> work;
  size_t sent = 0;
  size_t done = 0;
  std::deque<size_t> sizes;  // of commands sent ahead
  size_t bytes_ahead = 0;
  Lease lease;
  bool is_broken = false;

  // Sends commands ahead, up to kMostBytesAhead. buffer: memory for them.
  ev::Status Send(const Deadline& deadline, std::string* buffer) {
    buffer->clear();
    while (sent < work.size() &&
           (sizes.empty() || bytes_ahead < kMostBytesAhead)) {
      const size_t before = buffer->size();
      RespWriter writer(buffer);
      const Work& next = *work[sent++];
      if (!next.ask.empty()) {
        writer.Begin(1);
        writer.Word("ASKING");
      }
      next.request->Encode(&writer);
      sizes.push_back(buffer->size() - before);
      bytes_ahead += buffer->size() - before;
    }
    if (buffer->empty()) return ev::Status::OK();
    return lease->stream()->Write(buffer->data(), buffer->size(), deadline);
  }

  // Returns whether the connection is among those that the requests have used.
  bool IsKnown() const {
    return std::all_of(work.begin(), work.end(), [this](const Work* one) {
      const KnownConnections* const known = one->request->known();
      return known == nullptr || known->Has(lease->id());
    });
  }
};

ev::Status RedisClient::TryOnce(const Topology& topology,
                                const Deadline& deadline, bool only_known,
                                std::vector<Work>* pending, Attempt* attempt) {
  // Sorted by address: threads that need connections of several nodes take
  // them in the same order, which avoids deadlock.
  std::map<std::string, NodeWork> nodes;
  std::vector<Work> left;
  for (Work& work : *pending) {
    if (!work.ask.empty()) {
      nodes[work.ask].work.push_back(&work);
      continue;
    }
    const int node = topology.node_of_slot[work.request->slot()];
    if (node < 0) {
      attempt->why = ev::Unavailable("no node of the cluster has slot " +
                                     std::to_string(work.request->slot()));
      attempt->is_moved = attempt->is_broken = true;
      left.push_back(work);
      continue;
    }
    nodes[topology.nodes[node]].work.push_back(&work);
  }

  ev::Status refused;
  const auto broke = [&](NodeWork* node, const ev::Status& status) {
    node->is_broken = true;
    attempt->why = status;
    attempt->is_moved = attempt->is_broken = true;
    for (size_t i = node->done; i < node->work.size(); ++i) {
      left.push_back({node->work[i]->request, ""});
    }
    node->lease.Drop();
    if (!MayPass(status)) refused = status;
  };
  std::string buffer;
  const auto take_one = [&](NodeWork* node, const std::string& address) {
    Work* work = node->work[node->done];
    RespReader* const reader = node->lease->reader();
    RespHead head;
    if (!work->ask.empty()) {
      EV_RETURN_IF_ERROR(reader->Head(&head));  // reply to ASKING
      work->ask.clear();
    }
    EV_RETURN_IF_ERROR(reader->Head(&head));
    if (head.type == RespHead::kError) {
      const ev::Status status = OnError(head.text, address, work, attempt);
      if (status.ok()) {
        left.push_back(*work);
      } else {
        refused = status;
      }
    } else {
      EV_RETURN_IF_ERROR(work->request->Take(head, reader));
      work->request->CameBy(node->lease->id());
    }
    ++node->done;
    node->bytes_ahead -= node->sizes.front();
    node->sizes.pop_front();
    return ev::Status::OK();
  };

  for (auto& entry : nodes) {
    NodeWork* const node = &entry.second;
    const ev::Status status = node->lease.Take(PoolOf(entry.first), deadline);
    if (!status.ok()) broke(node, status);
  }
  if (only_known) {
    bool all_known = left.empty();
    for (auto& entry : nodes) {
      all_known = all_known && entry.second.IsKnown();
    }
    if (!all_known) {
      for (auto& entry : nodes) {
        if (!entry.second.is_broken) entry.second.lease.Done();
      }
      return refused;
    }
  }
  for (auto& entry : nodes) {
    NodeWork* const node = &entry.second;
    if (node->is_broken) continue;
    node->lease->reader()->set_deadline(deadline);
    const ev::Status status = node->Send(deadline, &buffer);
    if (!status.ok()) broke(node, status);
  }
  for (bool is_more = true; is_more;) {
    is_more = false;
    for (auto& entry : nodes) {
      NodeWork* const node = &entry.second;
      if (node->is_broken || node->done == node->work.size()) continue;
      ev::Status status = take_one(node, entry.first);
      if (status.ok() &&
          (node->sizes.size() < 2 || node->bytes_ahead < kMostBytesAhead / 2)) {
        status = node->Send(deadline, &buffer);
      }
      if (!status.ok()) {
        broke(node, status);
      } else if (node->done == node->work.size()) {
        node->lease.Done();
      } else {
        is_more = true;
      }
    }
  }
  pending->swap(left);
  return refused;
}

ev::Status RedisClient::OutOfTime(const Attempt& attempt, int attempts,
                                  const Deadline& deadline) {
  std::string message = attempt.why.message();
  if (!attempt.reply.empty() && attempt.reply != message) {
    message += "; the last error reply was: " + attempt.reply;
  }
  return ev::Status(attempt.why.code(),
                    message + " (attempt " + std::to_string(attempts) + " in " +
                        std::to_string(deadline.limit_ms()) + " ms)");
}

ev::Status RedisClient::RunOnKnown(ev::Span<RedisRequest* const> requests,
                                   bool* is_done) {
  const Deadline deadline = Deadline::InMs(options_.timeout_ms);
  std::vector<Work> pending;
  pending.reserve(requests.size());
  for (RedisRequest* request : requests) pending.push_back({request, ""});
  int64_t number = 0;
  const auto topology = CurrentTopology(&number);
  Attempt attempt;
  *is_done = false;
  EV_RETURN_IF_ERROR(TryOnce(*topology, deadline, true, &pending, &attempt));
  *is_done = pending.empty();
  // The deadline has passed, so another attempt is useless.
  return !*is_done && attempt.is_broken && deadline.HasCome()
             ? OutOfTime(attempt, 1, deadline)
             : ev::Status::OK();
}

ev::Status RedisClient::Run(ev::Span<RedisRequest* const> requests) {
  return Run(requests, Deadline::InMs(options_.timeout_ms));
}

ev::Status RedisClient::Run(ev::Span<RedisRequest* const> requests,
                            const Deadline& deadline) {
  std::vector<Work> pending;
  pending.reserve(requests.size());
  for (RedisRequest* request : requests) pending.push_back({request, ""});
  std::string reply;
  for (int attempts = 1; !pending.empty(); ++attempts) {
    int64_t number = 0;
    const auto topology = CurrentTopology(&number);
    Attempt attempt;
    attempt.reply = reply;
    EV_RETURN_IF_ERROR(TryOnce(*topology, deadline, false, &pending, &attempt));
    if (pending.empty()) break;
    reply = attempt.reply;
    // No pause after the first failure: an idle connection may just have been
    // closed.
    if (attempt.is_broken && attempts > 1) Pause(attempts - 2, deadline);
    // Without another attempt, whose only error would be that time is up.
    if (deadline.HasCome()) return OutOfTime(attempt, attempts, deadline);
    if (attempt.is_moved) {
      const ev::Status status = Refresh(number, deadline);
      if (!status.ok() && !MayPass(status)) return status;
    }
  }
  return ev::Status::OK();
}

}  // namespace hps
