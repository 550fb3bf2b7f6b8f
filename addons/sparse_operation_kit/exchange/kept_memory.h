// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_KEPT_MEMORY_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_KEPT_MEMORY_H_

namespace sok {

// From now on what ops of a lookup over ranks hand to each other lies in memory
// that is kept (base/transfer_memory.h), huge pages of this process unless a
// device has pinned ones. It is tens of megabytes, which malloc takes from the
// system and gives back in every step: each page of it would fault again.
// Thread-safe; once is enough.
void KeepMessages();

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_KEPT_MEMORY_H_
