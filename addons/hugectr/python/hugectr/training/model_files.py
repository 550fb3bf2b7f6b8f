# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Model files: dense parameters, rows of embeddings, optimizer states.

  <prefix>_dense_<iter>.model            float32, layers from bottom to top
  <prefix>_dense_<iter>.model.ntp.json   running values of BatchNorm
  <prefix><i>_sparse_<iter>.model        rows of embedding i, see sparse_files
  <prefix>_opt_dense_<iter>.model        float32: each state of all dense parameters
  <prefix>_opt_dense_<iter>.model.ntp.json   counters of an optimizer: Adam's powers
"""

import json
import os

import numpy as np
import tensorflow.compat.v1 as tf

import embedding_variable
import sparse_operation_kit as sok

from hugectr.training import lazy_global
from hugectr.training import ranks as rank_jobs
from hugectr.training import sparse_files
from hugectr.training import tables as embedding_tables

FLAT, FOLDER = "flat", "directory"

_durable = embedding_variable.durable


def _flattened(arrays):
  return b"".join(np.asarray(a, "<f4").tobytes() for a in arrays)


def _read_floats(path, variables, times=1):
  """Returns arrays of the variables' shapes, repeated `times` times; raises ValueError."""
  expected = 4 * times * sum(v.shape.num_elements() for v in variables)
  size = os.path.getsize(path)
  if size != expected:
    raise ValueError("%s: %d bytes, but the model's dense parameters have %d" %
                     (path, size, expected))
  data, at, found = np.fromfile(path, "<f4"), 0, []
  for variable in list(variables) * times:
    count = variable.shape.num_elements()
    found.append(data[at:at + count].reshape(variable.shape.as_list()))
    at += count
  return found


def _read_json(path):
  try:
    with open(path, encoding="utf-8-sig") as f:
      return json.load(f)
  except ValueError as e:
    raise ValueError("%s: not JSON: %s" % (path, e))


def dense_values(held, path, beside=""):
  """Returns [(variable, array)] of a file of dense parameters and of running values.

  Args:
    held: layers' Parameters.
    path: string.
    beside: path of the running values; "": the JSON file next to the other one, if it
      exists.

  Raises:
    ValueError: the files are of another model.
    OSError: the files cannot be read.
  """
  pairs = list(zip(held.trained, _read_floats(path, held.trained)))
  found = beside or path + ".ntp.json"
  if not held.running or not (beside or os.path.exists(found)):
    return pairs
  layers = _read_json(found)
  layers = layers.get("layers") if isinstance(layers, dict) else None
  if not isinstance(layers, list) or len(layers) != len(held.running):
    raise ValueError("%s: expected {\"layers\": [...]} with %d layers of type "
                     "BatchNorm" % (found, len(held.running)))
  for running, layer in zip(held.running, layers):
    for variable, key in ((running.mean, "mean"), (running.variance, "var")):
      try:
        value = np.array(layer[key], np.float32)
      except (KeyError, TypeError, ValueError):
        value = None
      if value is None or value.shape != tuple(variable.shape.as_list()):
        raise ValueError("%s: layer '%s': expected %d numbers under '%s'" %
                         (found, running.layer, variable.shape.num_elements(), key))
      pairs.append((variable, value))
  return pairs


class _TableOps(object):
  """Ops that read and write a table's rows and their states."""

  def __init__(self, table, slots):
    columns = [table] + slots
    self.exports = [sok.export(c) for c in columns]
    self.keys = tf.placeholder(tf.int64, [None])
    self.values = tf.placeholder(tf.float32, [None, table.dim])
    self.assigns = [sok.assign(c, self.keys, self.values) for c in columns]
    self.rows = tf.nn.embedding_lookup(table, self.keys)


class ModelFiles(object):
  """Reads and writes the files of one model. Every rank must make each call."""

  def __init__(self, graph, session, ranks, has_i64_keys):
    """Creates no ops yet.

    Args:
      graph: the training Graph.
      session: its `tf.Session`.
      ranks: Ranks.
      has_i64_keys: bool, whether flat files have keys of 8 bytes.
    """
    self._graph = graph
    self._session = session
    self._ranks = ranks
    self._key_bytes = 8 if has_i64_keys else 4
    self._ops = {}
    self._frozen = {}  # {name of a frozen embedding: its optimizer's step, or None}

  @property
  def embeddings(self):
    """int, the number of embedding layers."""
    return len(self._graph.embeddings)

  # Ops.

  def _slots_of(self, layer, table):
    optimizer = self._graph.optimizer_of[layer.embedding.name]
    return [optimizer.stock.get_slot(table, slot) for _, slot in optimizer.row_slots]

  def _table_ops(self, layer, table):
    # TensorFlow 2.x has hashes of variables in a graph only.
    with self._session.graph.as_default():
      if table not in self._ops:
        self._ops[table] = _TableOps(table, self._slots_of(layer, table))
      return self._ops[table]

  def _dense_states(self):
    """Returns the slots of all dense parameters, state by state."""
    optimizer = self._graph.optimizers[0]
    return [optimizer.stock.get_slot(v, slot) for _, slot in optimizer.slots
            for v in self._graph.parameters.trained]

  def _counted(self):
    """Returns {name: variable} of the optimizers' counters."""
    found = {}
    # An optimizer returns its variables only for the current graph.
    with self._session.graph.as_default():
      for k, optimizer in enumerate(self._graph.optimizers):
        found.update(("%d/%s" % (k, name), variable)
                     for name, variable in optimizer.counted().items())
    return found

  # Frozen embeddings.

  def freeze(self, names):
    """Sets the embeddings that training leaves as they are, before the next step.

    Args:
      names: collection of names.
    """
    self.count_frozen_steps()
    self._frozen = dict.fromkeys(names)
    self.forget_frozen_steps()

  def count_frozen_steps(self):
    """Removes steps in which a table was frozen from those that its rows catch up on.

    For this it adds their number to the time of each row, with update_type LazyGlobal.
    """
    for layer in self._graph.embeddings:
      began = self._frozen.get(layer.embedding.name)
      step = None if began is None else self._step_of(layer.embedding.name)
      if step == began:
        continue
      for ops in [self._table_ops(layer, table) for table in layer.tables]:
        keys, times = self._session.run(ops.exports[-1])  # the last slot
        self._session.run(ops.assigns[-1], {
            ops.keys: keys, ops.values: lazy_global.later(times, began, step)})
    self.forget_frozen_steps()

  def forget_frozen_steps(self):
    """Makes `count_frozen_steps` count from now on, after files have been loaded."""
    self._frozen = {name: self._step_of(name) for name in self._frozen}

  def _step_of(self, name):
    """Returns the number of an embedding's last step; None if its rows have no time."""
    optimizer = self._graph.optimizer_of[name]
    if "time" not in [slot for slot, _ in optimizer.row_slots]:
      return None
    with self._session.graph.as_default():
      return float(self._session.run(optimizer.counted()["step"]))

  # Dense.

  def _running_json(self):
    layers = []
    for running in self._graph.parameters.running:
      mean, variance = self._session.run([running.mean, running.variance])
      layers.append({"type": "BatchNorm", "mean": mean.astype(float).tolist(),
                     "var": variance.astype(float).tolist()})
    return json.dumps({"layers": layers}, indent=1).encode() + b"\n"

  def read_dense(self, path):
    """Loads dense parameters, and running values from the JSON file next to it.

    Raises:
      ValueError: the files are of another model. Then nothing has changed.
      OSError: the files cannot be read.
    """
    self._load(dense_values(self._graph.parameters, path))

  def _load(self, pairs):
    # Outside of a graph, TensorFlow 2.x would assign to an eager variable.
    with self._session.graph.as_default():
      for variable, value in pairs:
        variable.load(value, self._session)

  def read_dense_states(self, path):
    """Loads optimizer states of dense parameters; raises errors like `read_dense`."""
    self.count_frozen_steps()
    states = self._dense_states()
    pairs = list(zip(states, _read_floats(path, states)))
    counted, beside = self._counted(), path + ".ntp.json"
    if counted and os.path.exists(beside):
      found = _read_json(beside)
      if not isinstance(found, dict) or sorted(found) != sorted(counted) or not all(
          isinstance(v, float) for v in found.values()):
        raise ValueError("%s: expected numbers under %s" % (beside, ", ".join(
            "'%s'" % name for name in sorted(counted))))
      pairs += [(counted[name], found[name]) for name in counted]
    self._load(pairs)
    self.forget_frozen_steps()

  # Rows.

  def rows_of(self, layer):
    """Returns (Rows of the values, Rows of the states or None) of a tables.Layer.

    Contains the rows of all ranks, ordered by slot and key.
    """
    has_slots = embedding_tables.is_slot_major(layer.embedding)
    # One run for all tables, since every run of new ops prunes the graph again.
    tables = self._session.run(
        [self._table_ops(layer, table).exports for table in layer.tables])
    keys = [found[0][0].astype(np.int64) for found in tables]
    slots = [np.full([len(k)], s, np.int64) for s, k in enumerate(keys)]
    columns = [[values for _, values in column] for column in zip(*tables)]
    gathered = rank_jobs.gathered(
        self._ranks, [np.concatenate(a) for a in [keys, slots] + columns])
    order = np.lexsort((gathered[0], gathered[1]))
    keys, slots, *columns = [a[order] for a in gathered]
    slots = slots if has_slots else None
    return (sparse_files.Rows(keys, slots, columns[:1]),
            sparse_files.Rows(keys, slots, columns[1:]) if columns[1:] else None)

  def rows_of_keys(self, layer, keys):
    """Returns (keys, rows) of some rows of a tables.Layer, ordered by slot and key.

    Args:
      layer: tables.Layer.
      keys: list of int64 arrays, one per table; all ranks' arrays are joined.

    Returns:
      int64 `[N]`, and float32 `[N, floats]`.
    """
    found = []
    for s, (table, mine) in enumerate(zip(layer.tables, keys)):
      ops = self._table_ops(layer, table)
      joined = np.unique(rank_jobs.gathered(self._ranks, [mine])[0])
      owned = joined[self._owned(layer, s, joined)]
      rows = self._session.run(ops.rows, {ops.keys: owned})
      owned, rows = rank_jobs.gathered(self._ranks, [owned, rows])
      order = np.argsort(owned)
      found.append((owned[order], rows[order]))
    return tuple(np.concatenate(column) for column in zip(*found))

  def _state_names(self, layer):
    return [name for name, _ in self._graph.optimizer_of[layer.embedding.name].row_slots]

  def _owned(self, layer, s, keys):
    """Returns which keys of a table this rank owns, bool `[N]`."""
    slot = s if embedding_tables.is_slot_major(layer.embedding) else None
    owner = embedding_tables.owner(layer.embedding, slot, self._ranks.count)
    if owner >= 0:
      return np.full([len(keys)], owner == self._ranks.rank)
    return keys % self._ranks.count == self._ranks.rank

  def _read_rows(self, layer, path, names):
    """Returns [(table's ops, keys, arrays)] of this rank's rows; raises ValueError."""
    embedding = layer.embedding
    has_slots = embedding_tables.is_slot_major(embedding)
    rows = sparse_files.read(path, self._key_bytes, has_slots, embedding.vec_size, names)
    if has_slots and len(rows.slots) and not (
        0 <= rows.slots.min() and rows.slots.max() < len(layer.tables)):
      raise ValueError("%s: slot ids %d to %d, but embedding '%s' has %d slots" %
                       (path, rows.slots.min(), rows.slots.max(), embedding.name,
                        len(layer.tables)))
    found = []
    for s, table in enumerate(layer.tables):
      mine = rows.slots == s if has_slots else np.ones([len(rows.keys)], bool)
      mine &= self._owned(layer, s, rows.keys)
      found.append((self._table_ops(layer, table), rows.keys[mine],
                    [a[mine] for a in rows.arrays]))
    return found

  def _by_name(self, paths, what):
    if len(paths) != self.embeddings:
      raise ValueError("hugectr.Session: expected %d files of %s, one per embedding, got "
                       "%d" % (self.embeddings, what, len(paths)))
    return {layer.embedding.name: path
            for layer, path in zip(self._graph.embeddings, paths)}

  def _read_all(self, paths, first_column, names_of):
    found = []
    for layer in self._graph.embeddings:
      if layer.embedding.name in paths:
        found += self._read_rows(layer, paths[layer.embedding.name], names_of(layer))
    if not found:
      return
    for column in range(max(len(arrays) for _, _, arrays in found)):
      assigns, feeds = [], {}
      for ops, keys, arrays in found:
        if column < len(arrays) and len(keys):
          assigns.append(ops.assigns[first_column + column])
          feeds.update({ops.keys: keys, ops.values: arrays[column]})
      self._session.run(assigns, feeds)

  def read_rows(self, paths):
    """Loads rows of all embeddings; rows with other keys stay.

    Args:
      paths: list of flat files or folders, one per embedding.

    Raises:
      ValueError: they are of another model. Then nothing has changed.
      OSError: they cannot be read.
    """
    self.read_rows_of(self._by_name(paths, "rows"))

  def read_rows_of(self, paths):
    """Loads rows of some embeddings, as `read_rows`.

    Args:
      paths: dict from embeddings' names to flat files or folders.
    """
    self._read_all(paths, 0, lambda layer: [sparse_files.VECTOR])

  def read_row_states(self, paths):
    """Loads optimizer states of rows; raises errors like `read_rows`."""
    self.read_row_states_of(self._by_name(paths, "optimizer states of rows"))

  def read_row_states_of(self, paths):
    """Loads optimizer states of some embeddings' rows, as `read_rows_of`."""
    self.count_frozen_steps()
    self._read_all(paths, 1, self._state_names)

  # Tables by name.

  def _layer(self, name):
    return next(l for l in self._graph.embeddings if l.embedding.name == name)

  def write_tables(self, folder, names):
    """Writes rows of embeddings to a folder: `key<t>`, `weight<t>`, `meta_data`.

    If the process ends before all files are complete, `read_tables` reads the previous
    folder.

    Args:
      folder: string; rank 0 creates it, or replaces it, and writes.
      names: list of names of embeddings, at least one.
    """
    described = []
    for t, name in enumerate(names):
      rows, _ = self.rows_of(self._layer(name))
      described.append({"name": name, "ev_size": self._layer(name).embedding.vec_size})
      if self._ranks.rank == 0:
        if not t:
          part = _durable.begin(folder)
          _durable.make_folder(part)
        rows.keys.astype("<i8").tofile(os.path.join(part, "key%d" % t))
        rows.arrays[0].astype("<f4").tofile(os.path.join(part, "weight%d" % t))
    if self._ranks.rank == 0:
      with open(os.path.join(part, "meta_data"), "w") as f:
        f.write(json.dumps({"tables": described}, indent=1) + "\n")
      _durable.replace(folder)

  def read_tables(self, folder, names):
    """Loads rows that `write_tables` wrote.

    Raises:
      ValueError: the files are of other tables. Then nothing has changed.
      OSError: they cannot be read.
    """
    folder = _durable.current(folder)
    path = os.path.join(folder, "meta_data")
    try:
      described = _read_json(path)
      at = {d["name"]: (t, d["ev_size"]) for t, d in enumerate(described["tables"])}
    except (KeyError, TypeError, ValueError) as e:
      raise ValueError("%s: expected {\"tables\": [{\"name\", \"ev_size\"}]}, as embedding_dump "
                       "of this package writes it (upstream's meta_data is something else): %s" %
                       (path, e))
    assigns, feeds = [], {}
    for name in names:
      layer = self._layer(name)
      width = layer.embedding.vec_size
      if name not in at or at[name][1] != width:
        raise ValueError("%s: expected a table '%s' of ev_size %d, got %s" % (
            path, name, width, described["tables"]))
      keys, weights = (np.fromfile(os.path.join(folder, "%s%d" % (what, at[name][0])), kind)
                       for what, kind in (("key", "<i8"), ("weight", "<f4")))
      if len(weights) != len(keys) * width:
        raise ValueError("%s: table '%s': %d keys, but %d numbers of rows of %d" %
                         (folder, name, len(keys), len(weights), width))
      mine = self._owned(layer, 0, keys)
      ops = self._table_ops(layer, layer.tables[0])
      if mine.any():
        assigns.append(ops.assigns[0])
        feeds.update({ops.keys: keys[mine], ops.values: weights.reshape([-1, width])[mine]})
    self._session.run(assigns, feeds)

  # All.

  def write(self, prefix, number, sparse_format=FLAT, row_paths=None):
    """Writes all files; rank 0 writes the rows of all ranks.

    Args:
      prefix: string.
      number: int, used in the file names.
      sparse_format: "flat" or "directory".
      row_paths: list of paths for the rows of embeddings; None: names with the prefix.
    """
    self.count_frozen_steps()
    end = "_%d.model" % number
    dense, states = prefix + "_dense" + end, prefix + "_opt_dense" + end
    writes = self._ranks.rank == 0
    if writes:
      _durable.make_folder(os.path.dirname(prefix) or ".")
    for i, layer in enumerate(self._graph.embeddings):
      values, row_states = self.rows_of(layer)
      for what, rows, names in (("_sparse", values, [sparse_files.VECTOR]),
                                ("_opt_sparse", row_states, self._state_names(layer))):
        path = "%s%d%s%s" % (prefix, i, what, end)
        if row_paths is not None and what == "_sparse":
          path = row_paths[i]
        if rows is None or not writes:
          continue
        if sparse_format == FLAT:
          sparse_files.write_flat(path, rows, self._key_bytes)
        else:
          sparse_files.write_folder(path, rows, names)
    if not writes:
      return
    sparse_files.write_bytes(dense, _flattened(self._session.run(self._graph.parameters.trained)))
    if self._graph.parameters.running:
      sparse_files.write_bytes(dense + ".ntp.json", self._running_json())
    if self._graph.optimizers[0].slots:
      sparse_files.write_bytes(states, _flattened(self._session.run(self._dense_states())))
    counted = self._session.run(self._counted())
    if counted:
      sparse_files.write_bytes(states + ".ntp.json", json.dumps(
          {k: float(v) for k, v in counted.items()}, sort_keys=True).encode() + b"\n")


def load_what_a_solver_names(files, solver):
  """Loads the files that a SolverParser names, if any.

  Raises:
    ValueError, OSError: as in the methods of ModelFiles.
  """
  if solver.model_file:
    files.read_dense(solver.model_file)
  if solver.embedding_files:
    files.read_rows(solver.embedding_files)
  if solver.dense_opt_states_file:
    files.read_dense_states(solver.dense_opt_states_file)
  if solver.sparse_opt_states_file:
    files.read_row_states(solver.sparse_opt_states_file)
