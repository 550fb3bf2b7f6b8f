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

__all__ = ["cause", "csv", "pa", "pq"]

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
