# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names of the distributions, and the version range that one requires of another.

These names were free on the Python package index. `sparse-operation-kit`, the name of
SOK's import, belongs to another project on that index; with that name pip would replace
this distribution by it.
"""

import json
import os

# Contains embedding_variable and sparse_operation_kit.
SOK = "sok-stock-tf"
# Contains hierarchical_parameter_server.
HPS = SOK + "-hps"
# Contains hugectr.
HUGECTR = SOK + "-hugectr"
# Contains embedding_variable_serving.
SERVING = SOK + "-serving"

# TensorFlow 1.15 declares no upper bound of protobuf, but cannot be imported with newer
# versions.
_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
with open(os.path.join(_ROOT, "python", "embedding_variable",
                       "tensorflow_versions.json")) as _f:
  _TENSORFLOW = json.load(_f)


def wheel_version(version, tensorflow):
  """Returns the version of a wheel with a library for one version of TensorFlow.

  The library works with one minor version, so there is a wheel for each. That for 1.15 has
  the plain version; others have a local one, which pip shows: "0.1.0+tf2.15".

  Args:
    version: string, of this product.
    tensorflow: string, a minor version such as "2.15".
  """
  return version if tensorflow == "1.15" else "%s+tf%s" % (version, tensorflow)


def requirements(tensorflow):
  """Returns what a wheel for a minor version of TensorFlow requires."""
  return _TENSORFLOW[tensorflow]["also_requires"] + ["tensorflow" + compatible(tensorflow)]


def python_fields(tensorflow=None):
  """Returns the (field, value) pairs of METADATA about Python.

  Args:
    tensorflow: string, a minor version: the Pythons that have a wheel of it. None: those
      that have a wheel of any supported version.
  """
  wanted = [tensorflow] if tensorflow else _TENSORFLOW
  pythons = {python for version in wanted for python in _TENSORFLOW[version]["pythons"]}
  pythons = sorted(pythons, key=lambda python: int(python.split(".")[1]))
  after = int(pythons[-1].split(".")[1]) + 1
  return ([("Classifier", "Programming Language :: Python :: " + python)
           for python in pythons] +
          [("Requires-Python", ">=%s,<3.%d" % (pythons[0], after))])


def compatible(version):
  """Returns the versions that work with a version: "0.1.3" gives "<0.2,>=0.1"."""
  major, minor = [int(part) for part in version.split(".")[:2]]
  return "<%d.%d,>=%d.%d" % (major, minor + 1, major, minor)
