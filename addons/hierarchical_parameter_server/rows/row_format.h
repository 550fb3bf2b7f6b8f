// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Names of kernels/engine/base/row_format.h.

#ifndef ADDONS_HIERARCHICAL_PARAMETER_SERVER_ROWS_ROW_FORMAT_H_
#define ADDONS_HIERARCHICAL_PARAMETER_SERVER_ROWS_ROW_FORMAT_H_

#include "kernels/engine/base/row_format.h"

namespace hps {

using ev::RowFormat;
using ev::RowType;
using ev::UnpackedFloat16;
using ev::UnpackedUint8;

}  // namespace hps

#endif  // ADDONS_HIERARCHICAL_PARAMETER_SERVER_ROWS_ROW_FORMAT_H_
