// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// A library without functions. As libcudnn.so.7 it lets TensorFlow make its GPU
// devices, which asks only that the name opens; each op that needs cuDNN then
// fails by itself, with TensorFlow's own error. A newer cuDNN under that name
// would have the functions, but not with cuDNN 7's meaning. As
// libcublas_behind.so it is what libcublas.so.10.0 is linked to when the wheel
// is built.
