// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Maps keys to the nodes of a Redis cluster. A key's slot is the CRC16 (XMODEM)
// of its part in braces, modulo 16,384, and each slot belongs to one master.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_CLUSTER_SLOTS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_CLUSTER_SLOTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/database/redis/resp.h"
#include "kernels/engine/base/status.h"

namespace hps {

constexpr int kNumSlots = 16384;

uint16_t Crc16(const char* bytes, size_t size);

// Returns the slot of a key: the hash of the part between its first '{' and the
// next '}' if that is not empty, otherwise of the whole key.
int SlotOf(const std::string& key);

struct Topology {
  // Addresses of the masters, "host:port".
  std::vector<std::string> nodes;
  // Index into `nodes` for each slot; -1: no node has it.
  std::vector<int> node_of_slot;

  // A single server with all slots.
  static Topology Single(const std::string& address);
};

// Parses the reply to CLUSTER SLOTS. Nodes listed without a host get the host
// of the server that replied, the second argument.
ev::Status ParseTopology(const RespReply& reply, const std::string& asked,
                         Topology* topology);

// A parsed "MOVED 3999 127.0.0.1:6381" or "ASK 3999 127.0.0.1:6381".
struct Redirection {
  enum Kind { kNone, kMoved, kAsk };
  Kind kind = kNone;
  int slot = -1;
  std::string address;
};
Redirection ParseRedirection(const std::string& error,
                             const std::string& asked);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_REDIS_CLUSTER_SLOTS_H_
