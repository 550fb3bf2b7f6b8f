# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds sok_stock_tf_hps-<version>-<tag>.whl in a folder.

  bazel build //tools/pip_package:build_hps
  bazel-bin/tools/pip_package/build_hps [OUT_DIR]        # default: dist

The CUDA library is in the wheel if ./configure found nvcc.
"""

import build_wheel
import distributions

_ADDON = "addons/hierarchical_parameter_server/"
_PACKAGE = "hierarchical_parameter_server"

WHEEL = build_wheel.Wheel(
    name=distributions.HPS,
    summary="Embedding tables served inside a TensorFlow %s graph",
    page=_ADDON + "README.md",
    packages={_PACKAGE: _ADDON + "python/" + _PACKAGE},
    libraries={_PACKAGE: [_ADDON + "tf/libhierarchical_parameter_server.so",
                          _ADDON + "tf/tensorflow_version.txt"]},
    # The op library loads it for a cache in GPU memory.
    cuda_libraries={_PACKAGE: _ADDON + "tf/libhierarchical_parameter_server_cuda.so"},
    built_for=_ADDON + "tf",
    requires=lambda version: [])

if __name__ == "__main__":
  build_wheel.main(WHEEL, __file__)
