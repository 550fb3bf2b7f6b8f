// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The caches of a server's tables: one device for all, and one cache for each
// table whose model enables it, sized by the model's settings.

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
  // Creates empty caches for a model's tables; call before the first lookup.
  // Without a GPU the tables get none, which is noted once in *notes.
  // ResourceExhausted: not enough device memory; no table has a cache then.
  ev::Status Attach(const ModelConfig& model,
                    const std::vector<std::shared_ptr<ServedTable>>& tables,
                    std::vector<std::string>* notes);
  // Fills the caches that hold the whole table or are preloaded. Lookups and
  // updates may run meanwhile. Rows that cannot be read are reported in *notes
  // and cached when they are looked up.
  void Fill(const ModelConfig& model,
            const std::vector<std::shared_ptr<ServedTable>>& tables,
            KeyBits bits, ev::Parallel* parallel,
            std::vector<std::string>* notes);

  // For models with a hit-rate threshold; created on first use.
  std::shared_ptr<Background> background();

 private:
  ev::Status Device(std::shared_ptr<DeviceCache>* device,
                    std::vector<std::string>* notes);

  std::mutex mu_;
  std::shared_ptr<DeviceCache> device_;     // guarded by mu_
  bool has_logged_ = false;                 // guarded by mu_
  std::shared_ptr<Background> background_;  // guarded by mu_
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_CACHES_H_
