// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/redis/cluster_slots.h"

#include <algorithm>
#include <cstdlib>

namespace hps {
namespace {

struct Crc16Table {
  uint16_t of[256];
  constexpr Crc16Table() : of() {
    for (int byte = 0; byte < 256; ++byte) {
      uint32_t crc = static_cast<uint32_t>(byte) << 8;
      for (int bit = 0; bit < 8; ++bit) {
        crc = (crc & 0x8000) != 0 ? (crc << 1) ^ 0x1021 : crc << 1;
      }
      of[byte] = static_cast<uint16_t>(crc);
    }
  }
};
constexpr Crc16Table kCrc16;

std::string HostOf(const std::string& address) {
  const size_t colon = address.rfind(':');
  return address.compare(0, 5, "unix:") == 0 || colon == std::string::npos
             ? "127.0.0.1"
             : address.substr(0, colon);
}

// Adds the brackets that an IPv6 address arrives without.
std::string AddressOf(std::string host, int64_t port,
                      const std::string& asked) {
  if (host.empty() || host == "?") {
    host = HostOf(asked);
  } else if (host.find(':') != std::string::npos && host[0] != '[') {
    host = "[" + host + "]";
  }
  return host + ":" + std::to_string(port);
}

}  // namespace

uint16_t Crc16(const char* bytes, size_t size) {
  uint16_t crc = 0;
  for (size_t i = 0; i < size; ++i) {
    const uint8_t byte = static_cast<uint8_t>(bytes[i]);
    crc = static_cast<uint16_t>(crc << 8) ^ kCrc16.of[(crc >> 8) ^ byte];
  }
  return crc;
}

int SlotOf(const std::string& key) {
  const size_t open = key.find('{');
  if (open != std::string::npos) {
    const size_t close = key.find('}', open + 1);
    if (close != std::string::npos && close > open + 1) {
      return Crc16(key.data() + open + 1, close - open - 1) % kNumSlots;
    }
  }
  return Crc16(key.data(), key.size()) % kNumSlots;
}

Topology Topology::Single(const std::string& address) {
  Topology topology;
  topology.nodes = {address};
  topology.node_of_slot.assign(kNumSlots, 0);
  return topology;
}

ev::Status ParseTopology(const RespReply& reply, const std::string& asked,
                         Topology* topology) {
  const ev::Status broken =
      ev::Internal(asked + ": the reply to CLUSTER SLOTS is malformed");
  if (reply.type != RespHead::kArray) return broken;
  Topology made;
  made.node_of_slot.assign(kNumSlots, -1);
  for (const RespReply& range : reply.elements) {
    // Elements: first slot, last slot, master, replicas.
    if (range.elements.size() < 3) return broken;
    const RespReply& first = range.elements[0];
    const RespReply& last = range.elements[1];
    const RespReply& master = range.elements[2];
    if (first.type != RespHead::kInteger || last.type != RespHead::kInteger ||
        first.number < 0 || last.number < first.number ||
        last.number >= kNumSlots || master.elements.size() < 2 ||
        master.elements[0].type != RespHead::kBytes ||
        master.elements[1].type != RespHead::kInteger) {
      return broken;
    }
    const std::string address =
        AddressOf(master.elements[0].text, master.elements[1].number, asked);
    const auto found = std::find(made.nodes.begin(), made.nodes.end(), address);
    const int node = static_cast<int>(found - made.nodes.begin());
    if (found == made.nodes.end()) made.nodes.push_back(address);
    std::fill(made.node_of_slot.begin() + first.number,
              made.node_of_slot.begin() + last.number + 1, node);
  }
  *topology = std::move(made);
  return ev::Status::OK();
}

Redirection ParseRedirection(const std::string& error,
                             const std::string& asked) {
  Redirection redirection;
  size_t begin = 0;
  if (error.compare(0, 6, "MOVED ") == 0) {
    begin = 6;
  } else if (error.compare(0, 4, "ASK ") == 0) {
    begin = 4;
  } else {
    return redirection;
  }
  const size_t space = error.find(' ', begin);
  if (space == std::string::npos) return redirection;
  const int slot = std::atoi(error.c_str() + begin);
  const std::string to = error.substr(space + 1);
  const size_t colon = to.rfind(':');
  if (colon == std::string::npos || slot < 0 || slot >= kNumSlots) {
    return redirection;
  }
  redirection.kind = begin == 6 ? Redirection::kMoved : Redirection::kAsk;
  redirection.slot = slot;
  redirection.address =
      AddressOf(to.substr(0, colon), std::atoi(to.c_str() + colon + 1), asked);
  return redirection;
}

}  // namespace hps
