// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Which node of a Redis cluster has which key: a key's slot is CRC16 (XMODEM)
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

// Of the whole key, or of what is between its first '{' and the next '}' if
// that is not empty.
int SlotOf(const std::string& key);

struct Topology {
  // Masters, "host:port".
  std::vector<std::string> nodes;
  // For each slot an index of nodes; -1: no node has it.
  std::vector<int> node_of_slot;

  // One server that has every slot.
  static Topology Single(const std::string& address);
};

// From the reply to CLUSTER SLOTS. `asked` is the address of the server that
// answered: a node without a name of its own is at that host.
ev::Status ParseTopology(const RespReply& reply, const std::string& asked,
                         Topology* topology);

// What "MOVED 3999 127.0.0.1:6381" and "ASK 3999 127.0.0.1:6381" say.
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
