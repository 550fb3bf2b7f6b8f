// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

// A library without the function that a CUDA library has.
extern "C" int another_library() { return 0; }
