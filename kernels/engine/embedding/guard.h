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

inline std::string Described(const char* who) { return who; }
inline std::string Described(const EmbeddingTable::Impl& table) {
  return table.QuotedName();
}
template <typename Describe>  // std::string()
auto Described(const Describe& describe) -> decltype(describe()) {
  return describe();
}

// Runs body(). An error describes the first argument, whose string is made only
// then, since a string needs memory too.
template <typename Who, typename Body>  // Status()
Status NoThrow(const Who& who, const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted("out of memory, " + Described(who));
  }
}

}  // namespace ev

#endif  // KERNELS_ENGINE_EMBEDDING_GUARD_H_
