// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The server's interface for a framework's ops. Of the server's headers only
// this one and producers.h compile as C++14.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_API_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_API_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/device_cache.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace hps {

class ServedTable;

// Starts the server of this process (registry.h describes the errors). Once a
// start was accepted, repeating it with the same arguments is accepted while
// that server runs, without reading the file again: a graph calls it in every
// step. Thread-safe.
class Starter {
 public:
  Starter();
  ~Starter();
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  // *notes: the server's notes, set by the call that starts it.
  ev::Status Start(const std::string& config_file, int64_t global_batch_size,
                   int64_t num_replicas, ev::Parallel* parallel,
                   std::vector<std::string>* notes);

 private:
  struct Accepted;
  // accessed with atomic_load and atomic_store
  std::shared_ptr<Accepted> accepted_;
};

// A layer's table, found once and again after the server's models change.
// Thread-safe.
class LayerTable {
 public:
  LayerTable(const std::string& model, int64_t table_id, int64_t width);
  ~LayerTable();
  LayerTable(const LayerTable&) = delete;
  LayerTable& operator=(const LayerTable&) = delete;

  // Checks, before memory for the rows is allocated, that a lookup of
  // `num_keys` ids of 32 or 64 bits is possible. Errors: those of
  // ParameterServer::Find. FailedPrecondition: no server runs. InvalidArgument:
  // too many ids, or ids of a size other than supportlonglong states.
  ev::Status Check(int64_t num_keys, bool long_keys);
  // rows + i * width = the row of keys[i]. Does not check the size of ids: call
  // Check first. Other errors: those of Check and of the tiers.
  ev::Status Lookup(ev::Span<const int64_t> keys, float* rows,
                    ev::Parallel* parallel);
  ev::Status Lookup(ev::Span<const int32_t> keys, float* rows,
                    ev::Parallel* parallel);
  // The same with ids, rows or both in the memory of a framework's GPU device
  // (see CacheBatch in device_cache.h, which has the stream). Ids are read when
  // the stream reaches this point; work enqueued on the stream after the call
  // sees the rows. Works with and without a GPU cache. Also FailedPrecondition:
  // no GPU that this library can use.
  ev::Status LookupOnDevice(const CacheBatch& batch, ev::Parallel* parallel);

 private:
  struct Found;
  ev::Status Get(std::shared_ptr<Found>* found);
  ev::Status GetTable(std::shared_ptr<ServedTable>* table);

  const std::string model_;
  const int64_t table_id_, width_;
  std::shared_ptr<Found> found_;  // accessed with atomic_load and atomic_store
};

// Runs a command. *answer: text, or JSON where stated.
//   metrics                 JSON
//   health                  JSON: "volatile" and "persistent", each null or
//                           the state of a tier that may be unavailable
//   notes                   JSON, a list of strings
//   stop                    ends the server; no error if none runs
//   add_models PATH         all models of a configuration file, or none
//   reload_model NAME
//   remove_model NAME
//   loaded_rows             a number: rows loaded so far
//   check PATH              JSON: errors, notes, plan; runs without a server
//   connect PATH            JSON: a list of the tiers that were contacted,
//                           each with "tier", "what", "milliseconds" and
//                           "error" ("" if it was reached); runs without a
//                           server
ev::Status RunCommand(const std::string& command, const std::string& argument,
                      ev::Parallel* parallel, std::string* answer);

// Returns the warnings for the process's log since the last call, oldest first.
// Costs one atomic load if there are none. Thread-safe.
std::vector<std::string> TakeLogLines();

// Stores rows in both tiers of a table.
ev::Status PushRows(const std::string& tag, int64_t width,
                    ev::Span<const int64_t> keys, const float* rows);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_API_H_
