#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the wheel for this machine in a folder and removes older ones from it. Without a
# GPU it leaves out the CUDA library, so that the build does not wait for nvcc.
# Args: folder.

set -eu

folder="$1"
builder=build_sok
flags=()
# Device files of a GPU under Linux and under Windows.
if [[ -z "$(compgen -G '/dev/nvidia[0-9]*')" && ! -e /dev/dxg ]]; then
  builder=build_sok_without_cuda
  flags=(--without_cuda)
  if grep -q 'SOK_NVCC=.' .bazelrc.user; then
    echo 'no GPU on this machine: the CUDA library is not built; make wheel builds it' >&2
  fi
fi
bazel build "//tools/pip_package:${builder}"
rm -f "${folder}"/sok_stock_tf-*.whl
"bazel-bin/tools/pip_package/${builder}" "${flags[@]}" "${folder}"
