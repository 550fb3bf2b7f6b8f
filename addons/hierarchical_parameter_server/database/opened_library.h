// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A shared library opened by name at run time. Programs that never use it need
// not link it or have it installed.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_OPENED_LIBRARY_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_OPENED_LIBRARY_H_

#include <string>
#include <vector>

#include "kernels/engine/base/status.h"

namespace hps {

// The library is never closed, so its functions stay valid.
class OpenedLibrary {
 public:
  // Opens the file that the environment variable names. If it is not set, opens
  // the first of `names` that can be loaded. `user` and `package` appear in the
  // error: what needs the library, and the package that provides it.
  OpenedLibrary(std::string user, std::string package, const char* variable,
                std::vector<std::string> names);

  // Finds a function, or sets null and an error in status().
  template <typename F>
  void Find(const char* name, F** function) {
    *function = reinterpret_cast<F*>(Symbol(name));
  }

  // Finds a function that older versions lack; null is not an error.
  template <typename F>
  void FindOptional(const char* name, F** function) {
    *function = reinterpret_cast<F*>(OptionalSymbol(name));
  }

  // FailedPrecondition: the library or a required function was not found; the
  // message has the first and the last error.
  const ev::Status& status() const { return status_; }

 private:
  void* Symbol(const char* name);
  void* OptionalSymbol(const char* name);

  const std::string user_;
  const std::string package_;
  std::string path_;
  void* handle_ = nullptr;
  ev::Status status_;
};

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_DATABASE_OPENED_LIBRARY_H_
