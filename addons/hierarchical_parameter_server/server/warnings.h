// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Warnings for the process's log. The engine has no log of its own:
// TensorFlow's ops take the lines and write them into theirs.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_WARNINGS_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_WARNINGS_H_

#include <string>
#include <vector>

namespace hps {

// Keeps a line until it is taken; the oldest of more than 100 goes.
// Thread-safe.
void Warn(std::string line);

// Returns and forgets the lines, the oldest first. Takes no lock where there
// are none. Thread-safe.
std::vector<std::string> TakeWarnings();

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_SERVER_WARNINGS_H_
