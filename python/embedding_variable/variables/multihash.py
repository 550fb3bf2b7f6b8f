# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`get_multihash_variable`: many rows from two small dense variables.

The row of an id combines row `id // rows(Q)` of variable Q and row `id % rows(R)` of
variable R. This is DeepRec's rule, which its checkpoints depend on. If R has as many
rows as Q, `rows(Q) * rows(Q)` ids have different rows in the memory of `2 * rows(Q)`.
"""

from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import tensor_shape
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import embedding_ops
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import variable_scope
from embedding_variable.tf_names import variables

# Operations that combine a row of Q and a row of R.
OPERATIONS = ("add", "mul", "mult", "concat")


def get_multihash_variable(name,
                           dims,
                           complementary_strategy="Q-R",
                           operation="add",
                           dtype=dtypes.float32,
                           initializer=None,
                           regularizer=None,
                           trainable=None,
                           collections=None,
                           caching_device=None,
                           partitioner=None,
                           validate_shape=True,
                           use_resource=None,
                           custom_getter=None,
                           constraint=None,
                           synchronization=variables.VariableSynchronization.AUTO,
                           aggregation=variables.VariableAggregation.NONE,
                           num_of_partitions=2):
  """Gets or creates the two dense variables `name/multhash_Q` and `name/multhash_R`.

  Args:
    name: string; prefixed with the variable scope's name.
    dims: two shapes `[rows, dim]`, of Q and of R. Ids from 0 to `rows(Q) * rows(Q) - 1`
      have rows. These rows are different combinations if R has at least as many rows as
      Q; with fewer, ids share rows.
    complementary_strategy: "Q-R", quotient and remainder.
    operation: how a row of Q and a row of R are combined: "add", "mul" ("mult") or
      "concat".
    dtype: type of the values.
    initializer: see `tf.get_variable`; applies to both variables, as do the arguments
      below.
    regularizer: see `tf.get_variable`.
    trainable: see `tf.get_variable`.
    collections: see `tf.get_variable`.
    caching_device: see `tf.get_variable`.
    partitioner: see `tf.get_variable`.
    validate_shape: see `tf.get_variable`.
    use_resource: see `tf.get_variable`.
    custom_getter: see `tf.get_variable`.
    constraint: see `tf.get_variable`.
    synchronization: see `tf.get_variable`.
    aggregation: see `tf.get_variable`.
    num_of_partitions: must be 2.

  Returns:
    A `MultiHashVariable`, for `tf.nn.embedding_lookup` and its sparse forms.

  Raises:
    ValueError: `dims` is not two shapes of rank 2, the strategy or operation is
      unknown, or rows of different lengths would be added or multiplied.
  """
  shapes = [tensor_shape.TensorShape(d).as_list() for d in dims]
  if len(shapes) != 2 or num_of_partitions != 2:
    raise ValueError("multihash variable '%s': dims: expected 2 shapes, of Q and R, got %d" %
                     (name, len(shapes) if len(shapes) != 2 else num_of_partitions))
  if any(len(s) != 2 or None in s or min(s) < 1 for s in shapes):
    raise ValueError("multihash variable '%s': each of dims: expected [rows, dim], got %s" %
                     (name, shapes))
  if complementary_strategy != "Q-R":
    raise ValueError("multihash variable '%s': complementary_strategy: expected 'Q-R', "
                     "got %r" % (name, complementary_strategy))
  if operation not in OPERATIONS:
    raise ValueError("multihash variable '%s': operation: expected one of %s, got %r" %
                     (name, ", ".join(OPERATIONS), operation))
  if operation != "concat" and shapes[0][1] != shapes[1][1]:
    raise ValueError("multihash variable '%s': rows to %s: expected one length, got "
                     "%d and %d" % (name, operation, shapes[0][1], shapes[1][1]))
  with variable_scope.variable_scope(name):
    pair = [
        variable_scope.get_variable(
            "multhash_" + letter, shape=shape, dtype=dtype, initializer=initializer,
            regularizer=regularizer, trainable=trainable, collections=collections,
            caching_device=caching_device, partitioner=partitioner,
            validate_shape=validate_shape, use_resource=use_resource,
            custom_getter=custom_getter, constraint=constraint,
            synchronization=synchronization, aggregation=aggregation)
        for letter, shape in zip("QR", shapes)
    ]
    full_name = variable_scope.get_variable_scope().name
  return MultiHashVariable(full_name, pair[0], pair[1], shapes, operation)


class MultiHashVariable(object):
  """Two dense variables that are looked up as one.

  Attributes:
    name: string.
    quotients, remainders: the variables Q and R.
    dim: int, length of a row returned by a lookup.
  """

  def __init__(self, name, quotients, remainders, shapes, operation):
    self.name = name
    self.quotients = quotients
    self.remainders = remainders
    self._q_rows = shapes[0][0]
    self._r_rows = shapes[1][0]
    self._operation = operation
    (_, q_dim), (_, r_dim) = shapes
    self.dim = q_dim + r_dim if operation == "concat" else q_dim

  def lookup(self, ids, partition_strategy="mod", max_norm=None, name=None):
    """Looks up rows.

    Args:
      ids: integers of any shape, in [0, rows(Q) * rows(Q)).
      partition_strategy: strategy of Q and R if they are partitioned.
      max_norm: length to which the rows of Q and of R are clipped, or None.
      name: name of the result.

    Returns:
      `ids.shape + [dim]`.
    """
    with ops.name_scope(name, "multihash_lookup") as name:
      ids = ops.convert_to_tensor(ids, name="ids")
      if not ids.dtype.is_integer:
        raise TypeError("multihash variable '%s': ids: expected integers, got %s" %
                        (self.name, ids.dtype.name))
      q, r = [
          embedding_ops.embedding_lookup(v, i, partition_strategy, max_norm=max_norm)
          for v, i in ((self.quotients, math_ops.floordiv(ids, self._q_rows)),
                       (self.remainders, math_ops.floormod(ids, self._r_rows)))
      ]
      if self._operation == "concat":
        return array_ops.concat([q, r], -1, name=name)
      return math_ops.add(q, r, name=name) if self._operation == "add" else (
          math_ops.multiply(q, r, name=name))
