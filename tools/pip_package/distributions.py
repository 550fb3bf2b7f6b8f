# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Names of the distributions, and the range in which one requires another.

The names were free on the Python package index. `sparse-operation-kit`, the name of
SOK's import, belongs to another project there: pip would upgrade to that one.
"""

# embedding_variable and sparse_operation_kit.
SOK = "sok-stock-tf"
# hierarchical_parameter_server.
HPS = SOK + "-hps"
# hugectr.
HUGECTR = SOK + "-hugectr"


def compatible(version):
  """Returns the versions that work with a version: "0.1.3" gives "<0.2,>=0.1"."""
  major, minor = [int(part) for part in version.split(".")[:2]]
  return "<%d.%d,>=%d.%d" % (major, minor + 1, major, minor)
