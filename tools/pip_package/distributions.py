# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names of the distributions, and the version range that one requires of another.

These names were free on the Python package index. `sparse-operation-kit`, the name of
SOK's import, belongs to another project on that index; with that name pip would replace
this distribution by it.
"""

# Contains embedding_variable and sparse_operation_kit.
SOK = "sok-stock-tf"
# Contains hierarchical_parameter_server.
HPS = SOK + "-hps"
# Contains hugectr.
HUGECTR = SOK + "-hugectr"


# TensorFlow's minor version -> (Requires-Python, the Pythons of classifiers, what the wheel
# requires). These Pythons have wheels of that TensorFlow on its index.
_TENSORFLOW = {
    # Declares no upper bound of protobuf, but cannot be imported with newer versions.
    "1.15": (">=3.7,<3.8", ("3.7",), ["protobuf<3.21", "tensorflow<1.16,>=1.15"]),
    "2.11": (">=3.7,<3.11", ("3.7", "3.8", "3.9", "3.10"), ["tensorflow<2.12,>=2.11"]),
    "2.15": (">=3.9,<3.12", ("3.9", "3.10", "3.11"), ["tensorflow<2.16,>=2.15"]),
    "2.21": (">=3.10,<3.14", ("3.10", "3.11", "3.12", "3.13"),
             ["tensorflow<2.22,>=2.21"]),
}

# The Pythons that have wheels of one of these, for a distribution without a library for one
# TensorFlow.
PYTHONS = ("3.7", "3.8", "3.9", "3.10", "3.11", "3.12", "3.13")


def wheel_version(version, tensorflow):
  """Returns the version of a wheel with a library for one version of TensorFlow.

  The library works with one minor version, so there is a wheel for each. That for 1.15 has
  the plain version; others have a local one, which pip shows: "0.1.0+tf2.15".

  Args:
    version: string, of this product.
    tensorflow: string, a minor version such as "2.15".
  """
  return version if tensorflow == "1.15" else "%s+tf%s" % (version, tensorflow)


def metadata_fields(tensorflow):
  """Returns the (field, value) pairs of METADATA that depend on TensorFlow's version."""
  requires_python, pythons, requirements = _TENSORFLOW[tensorflow]
  return ([("Classifier", "Programming Language :: Python :: " + python)
           for python in pythons] +
          [("Requires-Python", requires_python)] +
          [("Requires-Dist", requirement) for requirement in requirements])


def compatible(version):
  """Returns the versions that work with a version: "0.1.3" gives "<0.2,>=0.1"."""
  major, minor = [int(part) for part in version.split(".")[:2]]
  return "<%d.%d,>=%d.%d" % (major, minor + 1, major, minor)
