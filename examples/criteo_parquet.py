# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Click logs in Parquet files with Criteo's columns, read a chunk at a time.

Columns are found by name: `label`, `I1` to `I13`, `C1` to `C26`; others are ignored.
Categories are text, which is hashed like that of Criteo's text files, or integers, which
are the ids themselves.
"""

import collections
import glob
import os

import numpy as np

import criteo

NUMERIC = ["I%d" % (i + 1) for i in range(criteo.NUM_NUMERIC)]
CATEGORICAL = ["C%d" % (i + 1) for i in range(criteo.NUM_CATEGORICAL)]
_NAMES = ["label"] + NUMERIC + CATEGORICAL

# The id of a null in an integer column.
NULL_ID = np.iinfo(np.int64).min

_MAGIC = b"PAR1"
_CHUNK_ROWS = 1 << 16

# rows: number of rows. ids: whether categories are integers.
Facts = collections.namedtuple("Facts", ["rows", "ids"])


def is_parquet(path):
  """Returns whether a path is a Parquet file, or a folder. Raises OSError."""
  if os.path.isdir(path):
    return True
  with open(path, "rb") as f:
    return f.read(len(_MAGIC)) == _MAGIC


def _files(path):
  if not os.path.isdir(path):
    return [path]
  found = sorted(glob.glob(os.path.join(glob.escape(path), "*.parquet")))
  if not found:
    raise criteo.DataError("%s: the folder has no file whose name ends with .parquet" % path)
  return found


def _arrow():
  """Returns pyarrow, made safe against files that hold code."""
  # Imported late: it imports TensorFlow, which text files do not need.
  from embedding_variable.tools import arrow  # pylint: disable=g-import-not-at-top
  try:
    return arrow.load()
  except ImportError as e:
    raise criteo.DataError(str(e))


def _kind(pa, data_type):
  """Returns "text", "integer", "number", or the name of another type."""
  types = pa.types
  if types.is_dictionary(data_type):
    data_type = data_type.value_type
  if (types.is_string(data_type) or types.is_large_string(data_type) or
      types.is_binary(data_type) or types.is_large_binary(data_type)):
    return "text"
  if types.is_integer(data_type):
    return "integer"
  if types.is_floating(data_type) or types.is_boolean(data_type):
    return "number"
  return str(data_type)


def _check_file(pa, path, schema):
  """Returns whether categories are integers."""
  missing = [name for name in _NAMES if name not in schema.names]
  if missing:
    raise criteo.DataError("%s: expected columns label, I1 to I13 and C1 to C26; missing: %s; the "
                           "file has: %s" % (path, ", ".join(missing),
                                             ", ".join(schema.names) or "none"))
  kinds = {name: _kind(pa, schema.field(name).type) for name in _NAMES}
  for name in ["label"] + NUMERIC:
    if kinds[name] not in ("integer", "number"):
      raise criteo.DataError("%s: column %s: expected numbers, got %s" % (path, name, kinds[name]))
  wanted = kinds[CATEGORICAL[0]]
  for name in CATEGORICAL:
    if kinds[name] not in ("text", "integer") or kinds[name] != wanted:
      raise criteo.DataError("%s: column %s: expected text or integers, the same in all of C1 to "
                             "C26; C1 is %s, %s is %s" % (path, name, wanted, name, kinds[name]))
  return wanted == "integer"


def _opened(path):
  """Yields (path, pyarrow.parquet.ParquetFile) of each file of a path."""
  pa = _arrow()
  for name in _files(path):
    try:
      yield name, pa.parquet.ParquetFile(name)
    except (pa.ArrowException, OSError, ValueError) as e:
      raise criteo.DataError("%s: %s" % (name, e))


def check(path):
  """Checks the columns of all files of a path without reading rows.

  Args:
    path: a Parquet file, or a folder of Parquet files.

  Returns:
    Facts.

  Raises:
    DataError: a file is damaged or has other columns, or pyarrow is missing.
  """
  pa = _arrow()
  rows, kinds = 0, {}
  for name, opened in _opened(path):
    kinds.setdefault(_check_file(pa, name, opened.schema_arrow), name)
    rows += opened.metadata.num_rows
  if len(kinds) > 1:
    raise criteo.DataError("%s has categories of text and %s has integers: expected the same "
                           "in all files" % (kinds[False], kinds[True]))
  if not rows:
    raise criteo.DataError("%s: no rows" % path)
  return Facts(rows, True in kinds)


def _numbers(column):
  """Returns float32 [N]; nulls and NaN are 0."""
  values = column.to_numpy(zero_copy_only=False)
  return np.nan_to_num(values.astype(np.float64)).astype(np.float32)


def _categories(pa, column, ids):
  """Returns int64 [N] ids, or an object array [N] of texts; a null is an empty text."""
  if pa.types.is_dictionary(column.type):
    column = column.dictionary_decode()
  if ids:
    filled = column.cast(pa.uint64() if column.type == pa.uint64() else pa.int64())
    if filled.null_count:
      filled = filled.fill_null(NULL_ID + 2**64 if column.type == pa.uint64() else NULL_ID)
    return filled.to_numpy(zero_copy_only=False).view(np.int64)
  empty = b"" if "binary" in str(column.type) else ""
  return column.fill_null(empty).to_numpy(zero_copy_only=False)


def chunks(path):
  """Yields the rows of all files in chunks of some thousands.

  Args:
    path: as in `check`.

  Yields:
    (label float32 [N], numbers float32 [N, 13], categories [N, 26]). Categories are int64,
    or an object array of texts.

  Raises:
    DataError: a file is damaged, or a label is null.
  """
  pa = _arrow()
  for name, opened in _opened(path):
    ids = _check_file(pa, name, opened.schema_arrow)
    done = 0
    try:
      for batch in opened.iter_batches(batch_size=_CHUNK_ROWS, columns=_NAMES):
        columns = {n: batch.column(batch.schema.get_field_index(n)) for n in _NAMES}
        if columns["label"].null_count:
          raise criteo.DataError("%s: a label in rows %d to %d is null" %
                                 (name, done, done + batch.num_rows - 1))
        yield (_numbers(columns["label"]),
               np.stack([_numbers(columns[n]) for n in NUMERIC], axis=1),
               np.stack([_categories(pa, columns[n], ids) for n in CATEGORICAL], axis=1))
        done += batch.num_rows
    except (pa.ArrowException, OSError) as e:
      raise criteo.DataError("%s: after row %d: %s" % (name, done, e))
