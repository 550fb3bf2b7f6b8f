// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A carrier "memory" beside another one, for the few bytes that tell ranks of
// one host what comes next. NCCL has some 50 us for a message of 8 bytes, which
// goes up, between the GPUs and down; there are two before each transfer.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_CONTROL_CARRIER_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_CONTROL_CARRIER_H_

#include <memory>

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"
#include "kernels/engine/base/status.h"

namespace sok {

// Collective, by AllToAll of 'carrier', whose failures it returns. *control is
// null on all ranks where one of them cannot have it (ranks of several hosts, a
// short /dev/shm, a program without the carrier "memory") or does not want it.
ev::Status MakeControlCarrier(Carrier* carrier, bool is_wanted,
                              std::unique_ptr<Carrier>* control);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_CONTROL_CARRIER_H_
