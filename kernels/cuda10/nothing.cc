// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A library without functions, with two uses. As libcudnn.so.7 it lets
// TensorFlow create its GPU devices, which requires only that a library of this
// name can be opened. Each op that needs cuDNN then fails with TensorFlow's own
// error. A newer cuDNN under that name would have the functions, but not with
// cuDNN 7's meaning. As libcublas_behind.so it is the library that
// libcublas.so.10.0 is linked to when the wheel is built.
