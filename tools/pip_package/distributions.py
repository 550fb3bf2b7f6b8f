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


def compatible(version):
  """Returns the versions that work with a version: "0.1.3" gives "<0.2,>=0.1"."""
  major, minor = [int(part) for part in version.split(".")[:2]]
  return "<%d.%d,>=%d.%d" % (major, minor + 1, major, minor)
