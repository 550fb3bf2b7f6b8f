// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Loads the CUDA library of an op library: a shared library with its GPU code,
// in the same folder. It is loaded when a GPU is first used, never at import.
//
// THE BORDER. Statuses, std::string, vtables and function pointers cross it:
// one build makes both files, with one compiler and one ABI, and the build id
// proves that they belong together before anything else is read. Neither file
// exports a symbol of this project except the one function of the CUDA library,
// so no symbol of one binds to the other's; each has its own copy of the engine
// code that both use. State that must exist only once in the process, such as
// memory pools, is passed to the CUDA library when it is opened.
//
// A program into which GPU code, or the tests' stand-in for it, is linked needs
// no CUDA library and registers no loader.

#ifndef KERNELS_ENGINE_BASE_GPU_LIBRARY_H_
#define KERNELS_ENGINE_BASE_GPU_LIBRARY_H_

#include <string>

#include "kernels/engine/base/status.h"

namespace ev {

// The first part of what a CUDA library's function returns; each op library
// derives its own type from it, with the functions that the two exchange.
struct GpuLibrary {
  const char* build_id;
};

// The function's name and type.
constexpr char kGpuLibraryFunction[] = "ev_cuda_library";
using GpuLibraryFunction = const GpuLibrary* (*)();

// Path of the shared library or program that contains 'address'; made absolute
// with the current folder, so call it while the file is being loaded.
std::string FileOf(const void* address);

// Loads the file 'name' from the folder of 'op_library'; it stays loaded.
// NotFound: there is no such file; the message is the path. Internal: it cannot
// be loaded, or has another build id than 'build_id'.
Status OpenGpuLibrary(const std::string& op_library, const std::string& name,
                      const char* build_id, const GpuLibrary** library);

// Opens the CUDA library and registers the factories that it contains. Errors
// are those of OpenGpuLibrary.
using GpuLibraryLoader = Status (*)();

// Called by a static initializer of an op library. Returns true.
bool RegisterGpuLibrary(GpuLibraryLoader loader);

// Runs the loader at the first call; later calls return the same result.
// Thread-safe. FailedPrecondition if there is no loader or no library; the
// message is 'without', followed by the path that was tried if there is a
// loader. Internal: as for OpenGpuLibrary.
Status LoadGpuLibrary(const std::string& without);

}  // namespace ev

#endif  // KERNELS_ENGINE_BASE_GPU_LIBRARY_H_
