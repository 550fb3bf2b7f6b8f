// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_KEPT_MEMORY_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_KEPT_MEMORY_H_

namespace sok {

// Makes the ops of a lookup over ranks keep the memory of their messages and
// reuse it (base/transfer_memory.h): huge pages, or pinned memory if a device
// provides it. Messages are tens of megabytes; with malloc, every step would
// map them anew and fault on each page.
// Thread-safe; one call is enough.
void KeepMessages();

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_KEPT_MEMORY_H_
