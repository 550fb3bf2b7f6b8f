# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds sok_stock_tf-<version>-<tag>.whl in a folder, for the configured TensorFlow.

  bazel build //tools/pip_package:build_sok
  bazel-bin/tools/pip_package/build_sok [OUT_DIR]        # default: dist

The CUDA library is in the wheel if ./configure found nvcc, unless --without_cuda is given.
The target build_sok_without_cuda is the same program and does not depend on that library.
"""

import build_wheel
import distributions

WHEEL = build_wheel.Wheel(
    name=distributions.SOK,
    summary="Embedding variables and SparseOperationKit's pooled lookup for stock "
            "TensorFlow %s",
    page="README.md",
    packages={
        "embedding_variable": "python/embedding_variable",
        "sparse_operation_kit": "addons/sparse_operation_kit/python/sparse_operation_kit",
    },
    # A library is shipped in the package that uses it.
    libraries={
        "embedding_variable": ["kernels/tf/libembedding_variable.so",
                               "kernels/tf/tensorflow_version.txt"],
        "embedding_variable/gpu": ["kernels/cuda10/libev_cublas10.so",
                                   "kernels/cuda10/libev_cudart10.so",
                                   "kernels/cuda10/libev_nothing.so"],
    },
    # The op library, in the same folder, loads it at the first use of a GPU.
    cuda_libraries={"embedding_variable": "kernels/tf/libembedding_variable_cuda.so"},
    built_for="kernels/tf",
    requires=lambda version: [
        ("Requires-Dist", "absl-py"),
        ("Provides-Extra", "horovod"),
        ("Requires-Dist", "horovod>=0.28.1; extra == 'horovod'"),
        ("Provides-Extra", "serving"),
        ("Requires-Dist", distributions.SERVING + "[fast]" + distributions.compatible(version) +
         "; extra == 'serving'"),
    ])

if __name__ == "__main__":
  build_wheel.main(WHEEL, __file__)
