// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Turns std::bad_alloc, the only exception that the standard library can throw
// in this folder, into a status, so that no exception leaves the engine.

#ifndef KERNELS_ENGINE_EMBEDDING_GUARD_H_
#define KERNELS_ENGINE_EMBEDDING_GUARD_H_

#include <new>
#include <string>

#include "kernels/engine/base/status.h"
#include "kernels/engine/embedding/table_impl.h"

namespace ev {

template <typename Body>  // Status()
Status NoThrow(const std::string& who, const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("out of memory, " + who);
  }
}

template <typename Body>
Status NoThrow(const EmbeddingTable::Impl& table, const Body& body) {
  return NoThrow(table.QuotedName(), body);
}

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_GUARD_H_
