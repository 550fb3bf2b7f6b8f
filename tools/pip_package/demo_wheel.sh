#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Leaves the wheel that this machine can use in a folder, which held none else: without
# the CUDA library if there is no GPU, so that nothing waits for nvcc. Args: folder.

set -eu

folder="$1"
builder=build_sok
# A GPU's device file, or that of a GPU under Windows.
if [[ -z "$(compgen -G '/dev/nvidia[0-9]*')" && ! -e /dev/dxg ]]; then
  builder=build_sok_without_cuda
  echo 'no GPU on this machine: the CUDA library is not built; make wheel builds it' >&2
fi
bazel build "//tools/pip_package:${builder}"
rm -f "${folder}"/sok_stock_tf-*.whl
"bazel-bin/tools/pip_package/${builder}" "${folder}"
