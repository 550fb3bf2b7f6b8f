# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: TensorFlow's mixed-precision graph rewrite computes dot products in float16.

Why: the rewrite casts the inputs of the ops of a list, above all matrix products, and
leaves ops that it does not know in float32. `dot_interaction` is such a product. The
rewrite reads additions to its lists from environment variables, once.

Lookups are not on the list: every consumer of a float16 lookup would get rounded rows,
not only matrix products.
"""

import os

_VARIABLE = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_WHITELIST_ADD"
_OPS = ("EvDotInteraction", "EvDotInteractionGrad")


def install():
  """Adds our ops to those that the environment names."""
  named = [op for op in os.environ.get(_VARIABLE, "").split(",") if op]
  os.environ[_VARIABLE] = ",".join(named + [op for op in _OPS if op not in named])
