# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Builds sok_stock_tf_serving-<version>-py3-none-any.whl in a folder, for all TensorFlows.

  bazel build //tools/pip_package:build_serving
  bazel-bin/tools/pip_package/build_serving [OUT_DIR]        # default: dist
"""

import build_wheel
import distributions


def _requires(version):
  return [
      # TensorFlow 1.15 and 2.11 run on Python 3.7, whose last versions these are.
      ("Requires-Dist", "grpcio>=1.48"),
      ("Requires-Dist", "httptools>=0.6"),
      ("Requires-Dist", "uvicorn>=0.22"),
      ("Requires-Dist", distributions.SOK + distributions.compatible(version)),
      ("Provides-Extra", "fast"),
      ("Requires-Dist", "orjson>=3.9; extra == 'fast'"),
      ("Requires-Dist", "uvloop>=0.18; extra == 'fast'"),
  ]


WHEEL = build_wheel.Wheel(
    name=distributions.SERVING,
    summary="A network server for SavedModels with embedding variables",
    page="addons/serving/README.md",
    packages={"embedding_variable_serving": "addons/serving/python/embedding_variable_serving"},
    libraries={},
    cuda_libraries={},
    built_for=None,
    requires=_requires)

if __name__ == "__main__":
  build_wheel.main(WHEEL, __file__)
