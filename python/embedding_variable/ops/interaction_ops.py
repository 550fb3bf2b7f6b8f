# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DLRM's interaction: dot products of all pairs of a sample's vectors."""

import numpy as np

from embedding_variable import _lib
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops

_gen = _lib.load()

_TYPES = (dtypes.float32, dtypes.float16, dtypes.bfloat16)


def dot_interaction(vectors, name=None):
  """Returns the dot products of all pairs of a sample's vectors.

  The interaction of DLRM (Naumov et al., Deep Learning Recommendation Model for
  Personalization and Recommendation Systems, 2019, arXiv:1906.00091).

  Each vector is read once, in place: the vectors are not stacked, and no matrix of all
  products is formed. The same holds for the gradient, which is differentiable too. On
  `/gpu:0` forward and gradient are one launch each, and all tensors are in GPU memory.
  There, up to 128 vectors with N (D + N) up to 24,000 floats are read once; larger
  samples are read in parts, several times. Up to 32 vectors of float16 or bfloat16 are
  read once, and multiplied by tensor cores.

  Vectors of float16 or bfloat16 are summed in float32, and each result is rounded once.
  The same holds for their gradients.

  Args:
    vectors: list of N >= 2 tensors `[B, D]` of float32, float16 or bfloat16, all of one
      type; or one, `[B, N, D]` with a static N, which is split first.
    name: name of the op.

  Returns:
    `[B, N (N - 1) / 2]` of the type of the vectors. The pairs i > j are in the order (1,
      0), (2, 0), (2, 1), (3, 0), ...

  Raises:
    TypeError: a vector has another type, or not the type of the first.
    ValueError: there are fewer than two vectors, N is unknown, or static shapes differ.
      If shapes are known only in a step, the step raises InvalidArgumentError.
  """
  with ops.name_scope(name, "DotInteraction") as scope:
    if isinstance(vectors, (list, tuple)):
      vectors = [ops.convert_to_tensor(v, name="vector") for v in vectors]
    else:
      stacked = ops.convert_to_tensor(vectors, name="vectors")
      _check_type(stacked, _TYPES, "vectors")
      if stacked.shape.ndims is not None and stacked.shape.ndims != 3:
        raise ValueError("vectors: expected a list of [B, D] or shape [B, N, D], got "
                         "shape %s" % stacked.shape)
      if stacked.shape.ndims is None or stacked.shape.dims[1].value is None:
        raise ValueError("the number of vectors must be known: N of [B, N, D], got shape "
                         "%s" % stacked.shape)
      vectors = array_ops.unstack(stacked, axis=1)
    if len(vectors) < 2:
      raise ValueError("pairs need at least 2 vectors, got %d" % len(vectors))
    for i, vector in enumerate(vectors):
      _check_type(vector, _TYPES if i == 0 else [vectors[0].dtype.base_dtype],
                  "vector %d" % i)
    return _gen.ev_dot_interaction(vectors, name=scope)


def _check_type(tensor, types, what):
  if tensor.dtype.base_dtype not in types:
    raise TypeError("%s: expected %s, got %s" %
                    (what, " or ".join(t.name for t in types), tensor.dtype.name))


@ops.RegisterGradient("EvDotInteraction")
def _dot_interaction_grad(op, grad):
  return _gen.ev_dot_interaction_grad(list(op.inputs), grad)


@ops.RegisterGradient("EvDotInteractionGrad")
def _dot_interaction_grad_grad(op, *grads):
  """Returns the second-order gradients: by the vectors, and by the slopes of the pairs."""
  vectors, slopes = list(op.inputs[:-1]), op.inputs[-1]
  n = len(vectors)
  # TensorFlow 1.15 has no such product of bfloat16.
  stacks = [math_ops.cast(array_ops.stack(list(x), axis=1), dtypes.float32)
            for x in (grads, vectors)]
  products = math_ops.matmul(stacks[0], stacks[1], transpose_b=True)
  products += array_ops.transpose(products, [0, 2, 1])
  lower = np.array([i * n + j for i in range(n) for j in range(i)], np.int32)
  by_slopes = array_ops.gather(array_ops.reshape(products, [-1, n * n]), lower, axis=1)
  return (list(_gen.ev_dot_interaction_grad(list(grads), slopes)) +
          [math_ops.cast(by_slopes, slopes.dtype)])
