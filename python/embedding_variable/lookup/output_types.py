# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The type of the outputs of a pooled lookup.

Rows and sums are float32. An output of a narrower type is rounded once, when it is
stored, and its gradient is widened when it is loaded. The bits are those of a float32
lookup followed by `tf.cast`.
"""

from embedding_variable.tf_names import dtypes

TYPES = (dtypes.float32, dtypes.float16, dtypes.bfloat16)


def checked(output_dtype, names, lookup):
  """Returns the type that a caller requests; float32 for None.

  Args:
    output_dtype: a type of TensorFlow, its name, or None.
    names: non-empty list of strings, the tables' names.
    lookup: string that starts the error: the name of the lookup.

  Raises:
    TypeError: it is not one of TYPES.
  """
  if output_dtype is None:
    return dtypes.float32
  try:
    found = dtypes.as_dtype(output_dtype).base_dtype
  except TypeError:
    found = None
  if found not in TYPES:
    raise TypeError(
        "%s of %s: output_dtype: expected float32, float16 or bfloat16, got %s" %
        (lookup, ", ".join("'%s'" % name for name in names),
         repr(output_dtype) if found is None else found.name))
  return found
