# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exports rows newer than a version, from a training process to serving processes.

An export is a stock V2 checkpoint with the tensors of an incremental one
(delta_saveable.py): keys, values, versions and frequencies, but no slots. It is
independent of other checkpoints and can be applied to any table with the same row
length, any number of times. It does not contain erased or evicted keys, since a table
does not record when they were removed. Tables that are spread over ranks are exported
by all ranks into one checkpoint, as when they are saved; a rank that applies an export
takes the rows of its own part. Graph mode only.
"""

import os

from embedding_variable.checkpoint import delta_saveable
from embedding_variable.checkpoint import job
from embedding_variable.checkpoint import leftovers
from embedding_variable.checkpoint import publishing
from embedding_variable.checkpoint import saving
from embedding_variable.checkpoint import together
from embedding_variable.checkpoint_format import interrupted
from embedding_variable.checkpoint_format import tensor_names
from embedding_variable.ops import delta_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import file_io
from embedding_variable.tf_names import gen_io_ops
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import saveable_object

_SCOPE = "embedding_variable_export/"
_COLLECTION = "embedding_variables"
# Attribute of a graph: names of the tables that were spread when its ops were created.
_SPREAD = "_embedding_variables_exported_together"
# Attribute of a graph: names of the tables that existed when its ops were created.
_PREPARED = "_embedding_variables_exported"


def prepare_export():
  """Adds the ops of `export_since` and `apply_export` to the default graph.

  In a graph that is not final these functions add the ops themselves. Call this after
  all embedding variables are created, before a `MonitoredTrainingSession` makes the
  graph final. A repeated call is a no-op: embedding variables that were created after
  the first one make `export_since` and `apply_export` fail. Graph mode only.

  Raises:
    ValueError: the graph has no embedding variable.
  """
  graph = ops.get_default_graph()
  variables = _variables(graph)
  if not variables:
    raise ValueError("the graph has no embedding variable to export")
  if _has(graph, "apply"):
    return
  spread = _spread(variables)
  setattr(graph, _SPREAD, spread)
  setattr(graph, _PREPARED, {v.op.name for v in variables})
  is_part = bool(spread and job.current().rank())
  with ops.name_scope(_SCOPE), ops.colocate_with(None, ignore_existing=True):
    prefix = array_ops.placeholder(dtypes.string, [], name="prefix")
    version = array_ops.placeholder(dtypes.int64, [], name="version")
    specs = []
    for var in variables:
      # Only rank 0 writes the variables that are not spread.
      if var.handle.op.get_attr("record_version") and (
          not is_part or var.op.name in spread):
        specs.extend(_specs(var, version))
    if specs:

      def write(staged):
        return gen_io_ops.save_v2(staged, [s.name for s in specs],
                                  [s.slice_spec for s in specs],
                                  [s.tensor for s in specs])

      add = publishing.add_part_ops if is_part else publishing.add_save_ops
      written = add(prefix, lambda staged: saving.save_of_ranks(staged, write)
                    if spread else write(staged))
      array_ops.identity(written, name="export")
    control_flow_ops.group(
        *[delta_saveable.restore_delta(v, prefix, v.op.name) for v in variables],
        name="apply")


def _variables(graph):
  """Returns the embedding variables of a graph."""
  return [v for v in graph.get_collection(_COLLECTION) if hasattr(v, "handle")]


def _spread(variables):
  """Returns the set of names of the variables that are spread over ranks."""
  return {v.op.name for v in variables if job.current().placement(v) is not None}


def _specs(var, version):
  """Returns the list of SaveSpecs of a variable's rows since a version."""
  placement = job.current().placement(var)
  with ops.device(var.device):
    rows = delta_ops.export_newer(var.handle, version)
    keys = math_ops.cast(rows.keys, var.key_dtype)
  name = delta_saveable.part_name(var.op.name, placement)
  specs = [
      saveable_object.SaveSpec(tensor, "", tensor_names.tensor(name, column))
      for column, tensor in ((tensor_names.DELTA_KEYS, keys),
                             (tensor_names.DELTA_VALUES, rows.values),
                             (tensor_names.DELTA_VERSIONS, rows.versions),
                             (tensor_names.DELTA_FREQS, rows.frequencies))
  ]
  if placement is not None:
    specs += delta_saveable.placement_specs(var.op.name, placement)
  return specs


def export_since(sess, version, path):
  """Writes the rows that were updated at a version or later.

  If tables are spread over ranks, all ranks must call it with the same version and
  path. Graph mode only.

  Args:
    sess: the session of a graph with embedding variables, all of which record versions
      (`GlobalStepEvict`, a capacity, or `TF_RECORD_VERSION=1` at creation).
    version: int, the first version to export: the global step before the first such
      update, as returned by `var.get_version`.
    path: string, prefix of the export; its folder is created if needed.

  Returns:
    path.

  Raises:
    ValueError: a variable records no versions, or was created after the first call or
      `prepare_export`. On all ranks: they export to different paths, or from different
      versions.
    RuntimeError: the graph is final and `prepare_export` was not called; or another
      rank failed, or did not come in time.

  Cost: reads the version of every row, which blocks updates but not lookups, and copies
  the exported rows.
  """
  _prepared(sess.graph)
  for var in _variables(sess.graph):
    if not var.handle.op.get_attr("record_version"):
      raise ValueError(
          "embedding variable '%s' records no versions to export by: create it with "
          "TF_RECORD_VERSION=1" % var.op.name)

  def write():
    file_io.recursive_create_dir(os.path.dirname(path) or ".")
    sess.run(_SCOPE + "export:0", {_SCOPE + "prefix:0": path,
                                   _SCOPE + "version:0": version})

  if getattr(sess.graph, _SPREAD, None):
    together.save(path, "%s since version %d" % (path, version), write, write)
  else:
    with leftovers.removed(path):
      write()
  return path


def apply_export(sess, path):
  """Inserts or overwrites the rows of an export in all embedding variables of a graph.

  Variables are found by name; a variable that the export lacks raises an error. Lookups
  that run meanwhile read each row before or after the change. A rank takes only the
  rows of its part, so every rank of a job must call it. Graph mode only.

  Args:
    sess: the session, its tables initialised or restored.
    path: string, prefix of an export (or of a delta).

  Raises:
    RuntimeError: the graph is final and `prepare_export` was not called.
    ValueError: a variable was created after the first call or `prepare_export`.
    tf.errors.OpError: the export is missing, damaged or does not fit. Tables before the
      one named in the message are changed already; that one and the rest are not.
  """
  _prepared(sess.graph)
  sess.run(_SCOPE + "apply", {_SCOPE + "prefix:0": interrupted.readable(path)})


def _has(graph, name):
  try:
    graph.get_operation_by_name(_SCOPE + name)
    return True
  except KeyError:
    return False


def _prepared(graph):
  if not _has(graph, "apply"):
    if graph.finalized:
      raise RuntimeError("the graph is final: call embedding_variable.prepare_export() "
                         "before it is")
    with graph.as_default():
      prepare_export()
  names = {v.op.name for v in _variables(graph)}
  # An imported graph may have the ops without the attribute.
  late = names - getattr(graph, _PREPARED, names)
  if late:
    raise ValueError(
        "embedding variable '%s' was created after the ops of exports, so they leave it "
        "out: call embedding_variable.prepare_export(), or the first export_since() or "
        "apply_export(), when the model is complete" % min(late))
  late = _spread(_variables(graph)) - getattr(graph, _SPREAD, set())
  if late:
    raise ValueError(
        "embedding variable '%s' is spread over ranks by a lookup that was built after "
        "embedding_variable.prepare_export(): call it when the model is complete" %
        min(late))
