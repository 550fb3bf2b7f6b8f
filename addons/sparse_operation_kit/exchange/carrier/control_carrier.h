// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A carrier "memory" beside another carrier, for the names and sizes that ranks
// of one host exchange before each transfer. NCCL needs some 50 us for such an
// 8-byte message (host to GPU, GPU to GPU, GPU to host), and each transfer
// needs two.

#ifndef ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_CONTROL_CARRIER_H_
#define ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_CONTROL_CARRIER_H_

#include <memory>

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"
#include "kernels/engine/base/status.h"

namespace sok {

// Collective: uses AllToAll of 'carrier' and returns its errors. *control is
// null on all ranks if one of them cannot create it (ranks on several hosts,
// too little /dev/shm, no "memory" carrier in the program) or passes is_wanted
// == false.
ev::Status MakeControlCarrier(Carrier* carrier, bool is_wanted,
                              std::unique_ptr<Carrier>* control);

}  // namespace sok

#endif  // ADDONS_SPARSE_OPERATION_KIT_EXCHANGE_CARRIER_CONTROL_CARRIER_H_
