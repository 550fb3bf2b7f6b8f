# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""DeepRec's data frames: fields of a Parquet file, and ragged values of a batch."""

import collections

from embedding_variable.tf_names import autograph
from embedding_variable.tf_names import batching
from embedding_variable.tf_names import dataset_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import ragged_tensor
from embedding_variable.tf_names import tensor_shape


class _Field(object):
  """A column: its name, type, and number of nested lists.

  Attributes:
    name: string.
    dtype: dtype of the values, or None: that of the file.
    ragged_rank: int, 0: one value per row; None: that of the file.
    shape: TensorShape or None. With it each row, a list in the file, has exactly this
      shape, and a batch is a dense tensor.
  """

  def __init__(self, name, dtype=None, ragged_rank=None, shape=None):
    """Creates the field.

    Raises:
      ValueError: a negative rank, or a shape that is not fully known or comes with a
        rank above 1.
    """
    self.name = str(name)
    self.dtype = None if dtype is None else dtypes.as_dtype(dtype)
    if ragged_rank is not None and ragged_rank < 0:
      raise ValueError("field '%s': ragged_rank: expected at least 0, got %r" %
                       (name, ragged_rank))
    self.ragged_rank = ragged_rank
    self.shape = None if shape is None else tensor_shape.as_shape(shape)
    if self.shape is not None and (not self.shape.is_fully_defined() or
                                   (ragged_rank or 0) > 1):
      raise ValueError("field '%s': a shape must be fully known and needs a ragged_rank "
                       "of at most 1, got shape %s and ragged_rank %r" %
                       (name, self.shape, ragged_rank))

  @property
  def incomplete(self):
    """Whether dtype or rank must be read from a file."""
    return self.dtype is None or self.ragged_rank is None

  @property
  def is_dense(self):
    """Whether a batch is one tensor."""
    return not self.ragged_rank or self.shape is not None

  @property
  def output_types(self):
    """The dtypes of a batch: one, or a `DataFrame.Value` of them."""
    if self.is_dense:
      return self.dtype
    return DataFrame.Value(self.dtype, (dtypes.int32,) * self.ragged_rank)

  def flat_shapes(self, batch_size):
    """Returns the list of static shapes of a batch; `batch_size` is an int or None."""
    if self.is_dense:
      shape = tensor_shape.TensorShape([batch_size])
      return [shape if self.shape is None else shape.concatenate(self.shape)]
    outer = None if batch_size is None else batch_size + 1
    return [tensor_shape.TensorShape([None]), tensor_shape.TensorShape([outer])] + [
        tensor_shape.TensorShape([None])] * (self.ragged_rank - 1)

  def __repr__(self):
    return "Field(%r, dtype=%s, ragged_rank=%s, shape=%s)" % (
        self.name, self.dtype and self.dtype.name, self.ragged_rank, self.shape)


class _Value(collections.namedtuple("DataFrameValue", ["values", "nested_row_splits"])):
  """A batch of lists: values `[N]` and int32 row splits, outermost first."""

  def __new__(cls, values, nested_row_splits=()):
    return super(_Value, cls).__new__(cls, values, tuple(nested_row_splits))

  def to_sparse(self, name=None):
    """Returns the values as they are if there are no splits, else a SparseTensor.

    Values that are a matrix with one level of splits are returned as they are, too.
    """
    if not self.nested_row_splits or (len(self.nested_row_splits) == 1 and
                                      self.values.shape.ndims == 2):
      return self.values
    with ops.name_scope(name, "to_sparse"):
      ragged = ragged_tensor.RaggedTensor.from_nested_row_splits(
          self.values, self.nested_row_splits, validate=False)
      return ragged.to_sparse()


class DataFrame(object):
  """Namespace of the classes `Field` and `Value`, as in DeepRec."""

  Field = _Field
  Value = _Value


def _sparse(element):
  """Replaces the `DataFrame.Value`s in dicts and tuples."""
  if isinstance(element, _Value):
    return element.to_sparse()
  if isinstance(element, dict):
    return type(element)((k, _sparse(v)) for k, v in element.items())
  if isinstance(element, tuple):
    values = [_sparse(v) for v in element]
    return type(element)(*values) if hasattr(element, "_fields") else tuple(values)
  return element


def to_sparse(num_parallel_calls=None):
  """Returns a function for `Dataset.apply`: ragged values become SparseTensors."""

  def apply(dataset):
    return dataset.map(autograph.do_not_convert(_of_elements(dataset)),
                       num_parallel_calls=num_parallel_calls)

  return apply


def unbatch_and_to_sparse(num_parallel_calls=None):
  """Like `to_sparse`, and each element is a row: scalars and SparseTensors."""

  def apply(dataset):
    return to_sparse(num_parallel_calls)(dataset).apply(batching.unbatch())

  return apply


def _of_elements(dataset):
  """Returns the function for `map`, which spreads an element that is a tuple."""
  structure = dataset_ops.get_legacy_output_types(dataset)
  if isinstance(structure, tuple) and not hasattr(structure, "_fields"):
    return lambda *element: _sparse(element)
  if isinstance(structure, _Value):
    return lambda *element: _Value(*element).to_sparse()
  return _sparse
