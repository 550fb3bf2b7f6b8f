// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The caches of a server's tables: one device for all of them, a cache for each
// table whose model asks for one, of the size that its model says.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_CACHES_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_CACHES_H_

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/device_cache.h"
#include "addons/hierarchical_parameter_server/config/config.h"
#include "addons/hierarchical_parameter_server/files/table_directory.h"
#include "addons/hierarchical_parameter_server/server/background.h"
#include "addons/hierarchical_parameter_server/server/served_table.h"
#include "kernels/engine/base/parallel.h"
#include "kernels/engine/base/status.h"

namespace hps {

// Thread-safe.
class Caches {
 public:
  // Gives the tables of a model their caches, empty, before the first lookup.
  // Without a GPU tables stay without, which *notes tells once.
  // ResourceExhausted: no memory on the device; tables then have no cache.
  ev::Status Attach(const ModelConfig& model,
                    const std::vector<std::shared_ptr<ServedTable>>& tables,
                    std::vector<std::string>* notes);
  // Brings rows up into caches that hold the whole table, or that are to be
  // filled at the start. Lookups and updates may go on meanwhile. What cannot
  // be read is told by *notes, and comes up when it is looked up.
  void Fill(const ModelConfig& model,
            const std::vector<std::shared_ptr<ServedTable>>& tables,
            KeyBits bits, ev::Parallel* parallel,
            std::vector<std::string>* notes);

  // For models whose answers need not be exact; made when one asks for it.
  std::shared_ptr<Background> background();

 private:
  ev::Status Device(std::shared_ptr<DeviceCache>* device,
                    std::vector<std::string>* notes);

  std::mutex mu_;
  std::shared_ptr<DeviceCache> device_;     // guarded by mu_
  bool has_told_ = false;                   // guarded by mu_
  std::shared_ptr<Background> background_;  // guarded by mu_
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_CACHES_H_
