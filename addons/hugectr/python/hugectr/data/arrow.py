# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The package's only import of pyarrow: `arrow.pa`, `arrow.csv`, `arrow.pq`.

pyarrow below 14.0.1 unpickles extension types named in a file, and so runs code from
the file (CVE-2023-47248). pyarrow_hotfix disables that. It is imported first.
"""

try:
  import pyarrow_hotfix
except ImportError as e:
  raise ImportError(
      "hugectr reads Parquet files with pyarrow, which runs code that a file holds unless "
      "pyarrow-hotfix is installed, and it cannot be imported (%s). Remedy: %s" %
      (e, "pip install pyarrow-hotfix" if e.name == "pyarrow_hotfix"
       else "a pyarrow that works with this Python and NumPy"))
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq

__all__ = ["cause", "csv", "decoded", "pa", "pq"]

# Importing the module does this too, unless a program has undone it.
pyarrow_hotfix.install()

# pyarrow_hotfix's error for a file with such a type.
_FORBIDDEN = "Disallowed deserialization of 'arrow.py_extension_type'"


def cause(error):
  """Returns one line with the reason why pyarrow rejected a file.

  Args:
    error: Exception raised by pyarrow.
  """
  if _FORBIDDEN in str(error):
    return ("a column has the extension type 'arrow.py_extension_type', whose description "
            "is code that reading would run. Write the column again with a plain type")
  return str(error)


def decoded(array):
  """Returns an array with values in place of a dictionary, such as pandas' categories.

  Args:
    array: Array of numbers, of a dictionary, or of lists of one of both.
  """
  kind = array.type
  if pa.types.is_dictionary(kind):
    return array.dictionary_decode()
  if not kind.num_fields or not pa.types.is_dictionary(kind.value_type):
    return array
  values = array.values.dictionary_decode()
  make = (pa.large_list if pa.types.is_large_list(kind) else pa.list_ if pa.types.is_list(kind)
          else lambda inner: pa.list_(inner, kind.list_size))
  buffers = array.buffers()[:1 if pa.types.is_fixed_size_list(kind) else 2]
  return pa.Array.from_buffers(make(values.type), len(array), buffers, array.null_count,
                               array.offset, [values])
