#!/bin/bash
# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Builds the wheel for this machine in a folder and removes older ones from it. Without a
# GPU it leaves out the CUDA library, so that the build does not wait for nvcc.
# Args: folder, and for another TensorFlow than 1.15 its version, such as 2.15.

set -eu

folder="$1"
bazel=(bazel build)
bazelrc=.bazelrc.user
bin=bazel-bin
if [[ -n "${2:-}" ]]; then
  bazel=(tools/setup/bazel_for.sh "$2" build)
  bazelrc=".build/tf-$2/bazelrc"
  bin=".build/tf-$2/bazel-bin"
fi
builder=build_sok
flags=()
# Device files of a GPU under Linux and under Windows.
if [[ -z "$(compgen -G '/dev/nvidia[0-9]*')" && ! -e /dev/dxg ]]; then
  builder=build_sok_without_cuda
  flags=(--without_cuda)
  if grep -q 'SOK_NVCC=.' "${bazelrc}"; then
    echo 'no GPU on this machine: the CUDA library is not built; make wheel builds it' >&2
  fi
fi
"${bazel[@]}" "//tools/pip_package:${builder}"
rm -f "${folder}"/sok_stock_tf-*.whl
"${bin}/tools/pip_package/${builder}" "${flags[@]}" "${folder}"
