// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/database/opened_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <utility>

namespace hps {

OpenedLibrary::OpenedLibrary(std::string user, std::string package,
                             const char* variable,
                             std::vector<std::string> names)
    : user_(std::move(user)), package_(std::move(package)) {
  const char* named = std::getenv(variable);
  if (named != nullptr && *named != '\0') names = {named};
  std::string tried;
  for (const std::string& name : names) {
    handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ != nullptr) {
      path_ = name;
      return;
    }
    const char* why = dlerror();
    // The first and the last error are enough to show the search.
    if (&name == &names.front() || &name == &names.back()) {
      tried += "; " + (why == nullptr ? name : std::string(why));
    }
  }
  status_ = ev::FailedPrecondition(
      user_ + " needs " + package_ +
      ", which was not found (install it, put it into LD_LIBRARY_PATH, or name "
      "its file in " +
      variable + ")" + tried);
}

void* OpenedLibrary::OptionalSymbol(const char* name) {
  return handle_ == nullptr ? nullptr : dlsym(handle_, name);
}

void* OpenedLibrary::Symbol(const char* name) {
  void* symbol = OptionalSymbol(name);
  if (symbol == nullptr && status_.ok()) {
    status_ = ev::FailedPrecondition(user_ + " needs " + package_ + ", and " +
                                     path_ + " has no " + name);
  }
  return symbol;
}

}  // namespace hps
