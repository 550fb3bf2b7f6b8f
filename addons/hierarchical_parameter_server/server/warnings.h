// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Warnings for the process's log. The server has no log of its own:
// TensorFlow's ops fetch the lines and write them to TensorFlow's log.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_WARNINGS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_WARNINGS_H_

#include <string>
#include <vector>

namespace hps {

// Adds a line. Of more than 100 lines the oldest is dropped. Thread-safe.
void Warn(std::string line);

// Returns and removes the lines, oldest first. Takes no lock if there are none.
// Thread-safe.
std::vector<std::string> TakeWarnings();

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_WARNINGS_H_
