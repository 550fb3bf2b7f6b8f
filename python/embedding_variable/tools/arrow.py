# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The package's only import of pyarrow, which is optional: `arrow.load()`.

pyarrow below 14.0.1 unpickles the extension types named in a file, which can run code
from the file (CVE-2023-47248). pyarrow_hotfix disables that and is imported first.
"""


def load():
  """Imports and returns pyarrow, with pyarrow.parquet, made safe by pyarrow_hotfix.

  Raises:
    ImportError: pyarrow or pyarrow-hotfix is not installed. The text names the remedy.
  """
  try:
    # pylint: disable=g-import-not-at-top
    import pyarrow_hotfix
    import pyarrow
    import pyarrow.parquet
  except ImportError as e:
    raise ImportError("Parquet needs pyarrow and pyarrow-hotfix: %s. "
                      "Remedy: pip install pyarrow pyarrow-hotfix" % e)
  # Importing it does the same, unless a program has undone it.
  pyarrow_hotfix.install()
  return pyarrow
