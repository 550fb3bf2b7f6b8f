// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A library that is opened by its name while the program runs, so that what
// does not use it neither links it nor needs it installed.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_OPENED_LIBRARY_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_OPENED_LIBRARY_H_

#include <string>
#include <vector>

#include "kernels/engine/base/status.h"

namespace hps {

// Never closed: what it gave out stays valid.
class OpenedLibrary {
 public:
  // Opens the file that the environment variable names, else the first of
  // `names` that there is. `user` and `package` are words for the error: what
  // needs the library, and where it is from.
  OpenedLibrary(std::string user, std::string package, const char* variable,
                std::vector<std::string> names);

  // Finds a function, or leaves null and an error in status().
  template <typename F>
  void Find(const char* name, F** function) {
    *function = reinterpret_cast<F*>(Symbol(name));
  }

  // Finds a function that older versions have not; null is no error.
  template <typename F>
  void FindIfThere(const char* name, F** function) {
    *function = reinterpret_cast<F*>(SymbolIfThere(name));
  }

  // FailedPrecondition, with what was tried, when the library or one of its
  // functions was not found.
  const ev::Status& status() const { return status_; }

 private:
  void* Symbol(const char* name);
  void* SymbolIfThere(const char* name);

  const std::string user_;
  const std::string package_;
  std::string path_;
  void* handle_ = nullptr;
  ev::Status status_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_OPENED_LIBRARY_H_
