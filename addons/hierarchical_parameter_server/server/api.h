// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What a framework's ops ask of the server: the one header of the rooms below
// that C++14 reads.

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

// Starts the server of this process; registry.h says when that is an error.
// What was accepted once is accepted as long as that server runs, without
// another look at the file: a graph starts with every step. Thread-safe.
class Starter {
 public:
  Starter();
  ~Starter();
  Starter(const Starter&) = delete;
  Starter& operator=(const Starter&) = delete;

  // *notes: what the first start found worth telling.
  ev::Status Start(const std::string& config_file, int64_t global_batch_size,
                   int64_t num_replicas, ev::Parallel* parallel,
                   std::vector<std::string>* notes);

 private:
  struct Accepted;
  std::shared_ptr<Accepted> accepted_;  // by atomic_load and atomic_store
};

// A layer's table: found once, and again after the server's models changed.
// Thread-safe.
class LayerTable {
 public:
  LayerTable(const std::string& model, int64_t table_id, int64_t width);
  ~LayerTable();
  LayerTable(const LayerTable&) = delete;
  LayerTable& operator=(const LayerTable&) = delete;

  // Whether a lookup of so many ids of 32 or 64 bits can be: before room is
  // made for its rows. Errors: those of ParameterServer::Find;
  // FailedPrecondition: no server runs; InvalidArgument: too many ids, or of
  // another size than supportlonglong says.
  ev::Status Check(int64_t num_keys, bool long_keys);
  // rows + i * width = the row of keys[i]. Errors: as Check, and a tier's.
  ev::Status Lookup(ev::Span<const int64_t> keys, float* rows,
                    ev::Parallel* parallel);
  ev::Status Lookup(ev::Span<const int32_t> keys, float* rows,
                    ev::Parallel* parallel);
  // The same with ids, or rows, or both in the memory of a framework's GPU
  // device (CacheBatch of device_cache.h says where, and gives the stream):
  // ids are taken when the stream has come so far, and what the stream is given
  // after the call finds the rows. Through the GPU cache, or without one.
  // Errors: also FailedPrecondition, no GPU that this library can use.
  ev::Status LookupOnDevice(const CacheBatch& batch, ev::Parallel* parallel);

 private:
  struct Found;
  ev::Status Get(std::shared_ptr<Found>* found);
  ev::Status GetTable(std::shared_ptr<ServedTable>* table);

  const std::string model_;
  const int64_t table_id_, width_;
  std::shared_ptr<Found> found_;  // by atomic_load and atomic_store
};

// Commands for the running server. *answer: text, JSON where so said.
//   metrics                 JSON
//   health                  JSON: "volatile" and "persistent", each null or
//   what
//                           is known about a tier that may be away
//   notes                   JSON, a list of strings
//   stop                    ends the server; no error when none runs
//   add_models PATH         all models of a configuration file, or none
//   reload_model NAME
//   remove_model NAME
//   loaded_rows             a number: rows that were loaded so far
//   check PATH              JSON: errors, notes, plan; runs without a server
//   connect PATH            JSON: a list of tiers that were tried to be
//   reached,
//                           each with "tier", "what", "milliseconds" and
//                           "error"
//                           ("" where it was reached); runs without a server
ev::Status RunCommand(const std::string& command, const std::string& argument,
                      ev::Parallel* parallel, std::string* answer);

// Warnings for the process's log since the last call, the oldest first. Costs a
// load of one atomic where there are none. Thread-safe.
std::vector<std::string> TakeLogLines();

// Rows from outside, into both tiers.
ev::Status PushRows(const std::string& tag, int64_t width,
                    ev::Span<const int64_t> keys, const float* rows);

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_API_H_
