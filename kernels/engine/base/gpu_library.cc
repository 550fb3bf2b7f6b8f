// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/base/gpu_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>

#include "kernels/engine/base/printable.h"

namespace ev {
namespace {

// Set before main, so it has no initializer that could run later.
std::atomic<GpuLibraryLoader> the_loader{nullptr};

bool IsAbsent(const std::string& path) {
  struct stat found;
  return stat(path.c_str(), &found) != 0 &&
         (errno == ENOENT || errno == ENOTDIR);
}

Status CannotLoad(const std::string& path, const std::string& why) {
  return Internal("the CUDA library '" + PrintableUtf8(path) +
                  "' cannot be loaded: " + PrintableUtf8(why));
}

std::string LoaderError() {
  const char* const why = dlerror();
  return why == nullptr ? "the system's loader gives no reason" : why;
}

}  // namespace

std::string FileOf(const void* address) {
  Dl_info found;
  if (dladdr(address, &found) == 0 || found.dli_fname == nullptr) return "";
  const std::string path = found.dli_fname;
  char folder[PATH_MAX];
  if (path.empty() || path[0] == '/' || getcwd(folder, PATH_MAX) == nullptr) {
    return path;
  }
  return std::string(folder) + "/" + path;
}

Status OpenGpuLibrary(const std::string& op_library, const std::string& name,
                      const std::string& build_id, const GpuLibrary** library) {
  const std::string path =
      op_library.substr(0, op_library.rfind('/') + 1) + name;
  if (IsAbsent(path)) return NotFound(PrintableUtf8(path));
  dlerror();
  // Not unloaded: objects, and blocks of pinned memory, point into its code.
  void* const handle =
      dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return CannotLoad(path, LoaderError());
  const auto function =
      reinterpret_cast<GpuLibraryFunction>(dlsym(handle, kGpuLibraryFunction));
  if (function == nullptr) return CannotLoad(path, LoaderError());
  const GpuLibrary* const opened = function();
  if (opened->build_id != build_id) {
    return Internal("the CUDA library '" + PrintableUtf8(path) +
                    "' is of build " + PrintableUtf8(opened->build_id) +
                    ", but '" + PrintableUtf8(op_library) + "' is of build " +
                    build_id + "; install both from one wheel");
  }
  *library = opened;
  return Status::OK();
}

bool RegisterGpuLibrary(GpuLibraryLoader loader) {
  the_loader.store(loader);
  return true;
}

Status LoadGpuLibrary(const std::string& without) {
  const GpuLibraryLoader loader = the_loader.load();
  if (loader == nullptr) return FailedPrecondition(without);
  static const Status* const loaded = new Status(loader());
  if (loaded->code() != StatusCode::kNotFound) return *loaded;
  return FailedPrecondition(without + " (there is no " + loaded->message() +
                            ")");
}

}  // namespace ev
