# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""sok.Saver: tables in the files of SOK before 2.0.

`<variable>_keys.file` holds the keys (int64, or uint32 for int32 and uint32 keys) and
`<variable>_values.file` the rows (float32, row-major), both raw, without a header. This
package adds `<variable>_sums.file` with their sizes and checksums
(replaced_together.py). <variable> is "EmbeddingVariable", "EmbeddingVariable_1" and so on
for layers that got no name, as in SOK before 2.0, and otherwise the name of the variable.
"""

import os

import numpy as np

from embedding_variable.checkpoint_format import durable
from embedding_variable.checkpoint_format import replaced_together
from embedding_variable.eager import taped
from embedding_variable.ops import checkpoint_ops
from embedding_variable.tf_names import tf

from sparse_operation_kit import communication
from sparse_operation_kit.exchange import collectives
from sparse_operation_kit.files import table_files
from sparse_operation_kit.variables import kinds
from sparse_operation_kit.variables import rows


class Saver(object):
  """Writes and reads tables; every method returns an op that every rank must run.

  In eager execution a method does its work at once and returns None; every rank must call
  it. These files do not contain optimizer slots; for those use `sok.dump`,
  `tf.train.Saver` or `tf.train.Checkpoint`.
  """

  def dump_to_file(self, embedding_variable, filepath):
    """Returns the op that writes a table's rows; rank 0 writes the rows of all ranks.

    Example:

      session.run(sok.Saver().dump_to_file(layer.embedding_variable, "/data/tables"))

    Args:
      embedding_variable: SOK or embedding variable.
      filepath: folder; it is created.

    Raises:
      TypeError: `embedding_variable` is of another kind.
    """
    var = _table(embedding_variable)
    keys, values = rows.export(var)
    channel = collectives.channel("sok.Saver/" + var.op.name)

    def write(found, vectors):
      error = None
      mine = table_files.owned_mask(var, found)
      all_keys = np.concatenate(channel.gather(found[mine]))
      all_values = np.concatenate(channel.gather(vectors[mine]))
      try:
        if communication.rank() == 0:
          durable.make_folder(filepath)
          _write(filepath, var, _keys_in_file(var, all_keys), all_values)
      except Exception as e:  # pylint: disable=broad-except
        error = e
      channel.check(error)
      return np.int64(len(all_keys))

    written = tf.compat.v1.py_func(write, [keys, values], tf.int64, stateful=True,
                                   name="sok_dump_to_file")
    return None if taped.is_eager(written) else written.op

  def restore_from_file(self, embedding_variable, filepath):
    """Returns the op that replaces a table's rows by those in files.

    Each rank keeps the keys that it owns; any number of ranks may have written the
    files.

    Args:
      embedding_variable: SOK or embedding variable, initialized when the op runs.
      filepath: folder.

    Raises:
      TypeError: `embedding_variable` is of another kind.
    """
    var = _table(embedding_variable)

    def read():
      keys, values = _read(filepath, var)
      mine = np.ones(len(keys), bool)
      if table_files.is_spread(var):
        mine = table_files.owned_mask(var, keys)
      return keys[mine], values[mine]

    keys, values = tf.compat.v1.py_func(read, [], [tf.int64, tf.float32], stateful=True,
                                        name="sok_restore_from_file")
    keys.set_shape([None])
    values.set_shape([None, var.dim])
    return _replace(var, keys, values)

  def load_embedding_values(self, embedding_variable, tensors):
    """Returns the op that sets rows: row i of the tensors becomes the row of key i.

    Args:
      embedding_variable: SOK or embedding variable, initialized when the op runs.
      tensors: float32 `[rows, dim]`, or a list of such to be concatenated; the same on
        all ranks. Each rank keeps the rows that it owns.

    Raises:
      TypeError: `embedding_variable` is of another kind.
      ValueError: rows have another length.
    """
    var = _table(embedding_variable)
    if isinstance(tensors, (list, tuple)):
      tensors = tf.concat([tf.convert_to_tensor(t, tf.float32) for t in tensors], 0)
    values = tf.convert_to_tensor(tensors, tf.float32)
    if not values.shape.is_compatible_with([None, var.dim]):
      raise ValueError("sok.Saver: the tensors for '%s': expected shape [rows, %d], got %s"
                       % (var.op.name, var.dim, values.shape))
    keys = tf.range(tf.shape(values, out_type=tf.int64)[0])
    if table_files.is_spread(var):
      mine = tf.compat.v1.py_func(lambda k: table_files.owned_mask(var, k), [keys],
                                  tf.bool, stateful=False)
      mine.set_shape([None])
      keys, values = tf.boolean_mask(keys, mine), tf.boolean_mask(values, mine)
    return rows.write(var, keys, values)


def _table(variable):
  parts = kinds.parts(variable)
  if len(parts) != 1:
    raise TypeError("sok.Saver: expected a SOK variable or an embedding variable without "
                    "parts, got %r" % (variable,))
  return parts[0]


def _keys_in_file(var, keys):
  """Returns keys in the file's type: int64, or uint32 for int32 and uint32 keys."""
  if keys.dtype == np.int32:
    return keys.view(np.uint32)
  if not getattr(var, "has_uint32_keys", False):
    return keys
  wrong = keys[(keys < 0) | (keys > np.iinfo(np.uint32).max)]
  if wrong.size:
    raise ValueError("sok.Saver: key %d of '%s' does not fit into uint32, its key_dtype; "
                     "create the layer with key_dtype=tf.int64" % (wrong[0], var.op.name))
  return keys.astype(np.uint32)


def _write(folder, var, keys, values):
  """Writes both files completely, or leaves the existing ones unchanged.

  Raises:
    ValueError: the existing files are those of another variable.
  """
  prefix = os.path.join(folder, table_files.saver_name(var))
  sums = _path(prefix, "sums")
  replaced_together.finish(sums)
  _check_files(sums, var, writes=True)
  writers = []
  try:
    for what, array in (("keys", keys), ("values", values)):
      writers.append(replaced_together.Writer(_path(prefix, what)))
      writers[-1].write(np.ascontiguousarray(array).data.cast("B") if array.size else b"")
      writers[-1].close()
  except Exception:
    for writer in writers:
      writer.discard()
    raise
  replaced_together.commit([(sums, table_files.full_name(var), writers)])
  table_files.use_files(sums, var)


def _path(prefix, what):
  return "%s_%s.file" % (prefix, what)


def _check_files(sums, var, writes=False):
  try:
    table_files.check_files(sums, var, writes)
  except ValueError as e:
    raise ValueError("sok.Saver: variable '%s': %s" % (var.op.name, e))


def _prefix(folder, var):
  """Returns the first part of the paths of a variable's files."""
  # Earlier releases named the files of every layer after it.
  names = [table_files.saver_name(var), table_files.name_in_files(var)]
  prefixes = [os.path.join(folder, name) for name in names]
  found = [p for p in prefixes if any(
      os.path.exists(_path(p, what)) for what in ("sums", "keys"))]
  return (found + prefixes)[0]


def _read(folder, var):
  """Returns (keys int64 `[N]`, values float32 `[N, dim]`).

  Raises:
    ValueError: a file is missing, is another variable's, or the files do not match the
      variable or each other.
  """
  prefix = _prefix(folder, var)
  sums = _path(prefix, "sums")
  _check_files(sums, var)
  try:
    keys_path, values_path = replaced_together.current(
        sums, [[_path(prefix, "keys")], [_path(prefix, "values")]])
  except ValueError as e:
    raise ValueError("sok.Saver: variable '%s': %s" % (var.op.name, e))
  for path in (keys_path, values_path):
    if not os.path.exists(path):
      raise ValueError("sok.Saver: there is no %s for '%s'" % (path, var.op.name))
  count, rest = divmod(os.path.getsize(values_path), 4 * var.dim)
  size = os.path.getsize(keys_path)
  if rest or size not in (4 * count, 8 * count):
    raise ValueError("sok.Saver: %s has %d bytes and %s has %d: not keys and rows of %d "
                     "float32 of '%s'" % (keys_path, size, values_path,
                                          os.path.getsize(values_path), var.dim,
                                          var.op.name))
  dtype = np.int64
  if size != 8 * count:
    # Keys of 4 bytes are int32, unless the layer's key_dtype is uint32.
    dtype = np.uint32 if getattr(var, "has_uint32_keys", False) else np.int32
  keys = np.fromfile(keys_path, dtype).astype(np.int64)
  if hasattr(var, "global_shape"):
    num_rows = var.global_shape.as_list()[0]
    if not np.array_equal(np.sort(keys), np.arange(num_rows)):
      raise ValueError("sok.Saver: %s does not hold exactly the rows 0 to %d of '%s'" %
                       (keys_path, num_rows - 1, var.op.name))
  table_files.use_files(sums, var)
  return keys, np.fromfile(values_path, np.float32).reshape(-1, var.dim)


def _replace(var, keys, values):
  """Returns the op that replaces all rows of a table by these."""
  nothing = tf.zeros([0], tf.int64)
  versions = nothing
  if var.versions_are_times:
    versions = tf.zeros_like(keys) + var.version_of_update(tf.constant(0, tf.int64))
  with tf.device(var.device):
    return checkpoint_ops.import_table(var.handle, keys, values, versions, nothing,
                                       clear=True)
