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


def _loaded():
  """Returns pyarrow, which made the caller's arrays or types.

  `load` would register pyarrow_hotfix's type again, which is not meant to be repeated for
  each column.
  """
  import pyarrow  # pylint: disable=g-import-not-at-top
  return pyarrow


def value_type(kind):
  """Returns a type of pyarrow without its dictionary, and of strings the short one.

  Args:
    kind: the type of a column, or of the values of a list.
  """
  pa = _loaded()
  if pa.types.is_dictionary(kind):
    kind = kind.value_type
  return {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}.get(kind, kind)


def is_list(kind):
  """Whether a type of pyarrow is one of lists of any length."""
  types = _loaded().types
  return types.is_list(kind) or types.is_large_list(kind)


def decoded(array):
  """Returns an array with values in place of a dictionary, such as pandas' categories.

  Args:
    array: pyarrow's array; lists may be nested.
  """
  pa, kind = _loaded(), array.type
  if pa.types.is_dictionary(kind):
    return array.dictionary_decode()
  values = decoded(array.values) if is_list(kind) else None
  if values is None or values.type == kind.value_type:
    return array
  make = pa.large_list if pa.types.is_large_list(kind) else pa.list_
  return pa.Array.from_buffers(make(values.type), len(array), array.buffers()[:2],
                               array.null_count, array.offset, [values])


def opened(path):
  """Returns the ParquetFile of a path, memory-mapped.

  pyarrow cannot read lists of a dictionary that has several parts, as that of each row
  group, or a large one. Such lists are read as lists of values: the description by which
  pyarrow restores the types it wrote is left out of the metadata.

  Args:
    path: string.
  """
  pa = load()
  file = pa.parquet.ParquetFile(path, memory_map=True)
  schema = file.schema_arrow
  if not any(is_list(f.type) and _without_dictionary(f.type) != f.type for f in schema):
    return file
  plain = pa.schema([f.with_type(_without_dictionary(f.type)) for f in schema])
  for has_standard_names in (True, False):
    footer = pa.BufferOutputStream()
    pa.parquet.ParquetWriter(footer, plain,
                             use_compliant_nested_type=has_standard_names).close()
    metadata = pa.parquet.read_metadata(pa.BufferReader(footer.getvalue()))
    try:
      metadata.append_row_groups(file.metadata)
    except RuntimeError:  # The columns' names differ, or a type has several encodings.
      continue
    file.close()
    return pa.parquet.ParquetFile(path, metadata=metadata, memory_map=True)
  return file


def _without_dictionary(kind):
  """Returns a type in which each dictionary, in lists too, is its values' type."""
  pa = _loaded()
  if not is_list(kind):
    return kind.value_type if pa.types.is_dictionary(kind) else kind
  make = pa.large_list if pa.types.is_large_list(kind) else pa.list_
  return make(kind.value_field.with_type(_without_dictionary(kind.value_type)))
