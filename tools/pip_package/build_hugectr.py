# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds sok_stock_tf_hugectr-<version>-<tag>.whl in a folder.

  bazel build //tools/pip_package:build_hugectr
  bazel-bin/tools/pip_package/build_hugectr [OUT_DIR]        # default: dist
"""

import build_wheel
import distributions


def _requires(version):
  return [
      # pyarrow 26 needs NumPy 2 without requiring it. TensorFlow up to 2.15 needs NumPy 1, and
      # has no wheel for Python 3.12.
      ("Requires-Dist", "pyarrow<26,>=6; python_version < '3.12'"),
      ("Requires-Dist", "pyarrow>=6; python_version >= '3.12'"),
      # Before 14.0.1 pyarrow executes code that a file contains.
      ("Requires-Dist", "pyarrow-hotfix>=0.7"),
      # Requires the same minor version, because it calls internal modules of SOK.
      ("Requires-Dist", distributions.SOK + distributions.compatible(version)),
      ("Provides-Extra", "horovod"),
      ("Requires-Dist", distributions.SOK + "[horovod]; extra == 'horovod'"),
      ("Provides-Extra", "inference"),
      ("Requires-Dist", distributions.HPS + distributions.compatible(version) +
       "; extra == 'inference'"),
  ]


WHEEL = build_wheel.Wheel(
    name=distributions.HUGECTR,
    summary="HugeCTR's trainer on stock TensorFlow: its Python API, and its JSON with Session",
    page="addons/hugectr/README.md",
    packages={"hugectr": "addons/hugectr/python/hugectr",
              "hugectr2onnx": "addons/hugectr/python/hugectr2onnx"},
    # In the package of the module that loads it.
    libraries={"hugectr/data": ["addons/hugectr/reader/libhugectr_reader.so"]},
    cuda_libraries={},
    built_for=None,
    requires=_requires)

if __name__ == "__main__":
  build_wheel.main(WHEEL, __file__)
