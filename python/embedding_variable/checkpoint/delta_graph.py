# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The graph ops with which a saver saves and restores incremental checkpoints.

They are created together with the saver's own ops, since the graph is often final when
they are needed. They are found by name, so a saver of an imported graph has them too.
For a saver whose ops are under `save/`:

  save/deltas/prefix             fed: the delta's prefix
  save/deltas/restore_tables     applies a delta to the tables
  save/deltas/restore_others     restores all other variables from a delta

and, if incremental saving was requested before the saver was created (or `ensure_save`
was called):

  save/deltas/cut_<i>            the current cut of table i, to start a chain
  save/deltas/since_<i>          fed: the cut of table i where the delta starts
  save/deltas/info               fed: the JSON of the checkpoints it continues
  save/deltas/save               writes the delta; its value is the prefix
  save/deltas/saved_<i>          the cut of table i where the delta ends

A cut is a position in a table's sequence of changes. If tables are spread over ranks,
the save ops of ranks other than 0 cover only these tables, and save/deltas/save writes
the rank's part.
"""

from embedding_variable.checkpoint import delta_saveable
from embedding_variable.checkpoint import job
from embedding_variable.checkpoint import saveable as saveable_lib
from embedding_variable.checkpoint import saving
from embedding_variable.checkpoint_format import delta_chain
from embedding_variable.ops import delta_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import control_flow_ops
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import saveable_object
from embedding_variable.tf_names import saver_pb2

_REQUESTED = "_embedding_variable_incremental_saving"


def request(graph):
  """Makes savers that are built in `graph` from now on able to save deltas."""
  setattr(graph, _REQUESTED, True)


def is_requested(graph):
  return getattr(graph, _REQUESTED, False)


def scope_of(saver_def):
  """Returns the name prefix of a saver's delta ops."""
  return saver_def.restore_op_name.rpartition("/")[0] + "/deltas/"


def has(graph, saver_def, name):
  """Returns whether a saver has the delta op with this name."""
  try:
    graph.get_operation_by_name(scope_of(saver_def) + name)
    return True
  except KeyError:
    return False


def tensors(graph, saver_def, stem):
  """Returns the names of the tensors `<stem>_0`, `<stem>_1` and so on."""
  names = []
  while has(graph, saver_def, "%s_%d" % (stem, len(names))):
    names.append("%s%s_%d:0" % (scope_of(saver_def), stem, len(names)))
  return names


def tables_of(graph, saver_def):
  """Returns the set of handle names of the tables that a saver restores.

  Works for every saver built by this package, also in another process.
  """
  if saver_def is None or not has(graph, saver_def, "restore_tables"):
    return set()
  handles, left = set(), [graph.get_operation_by_name(
      scope_of(saver_def) + "restore_tables")]
  while left:
    op = left.pop()
    if op.type == "EvApplyDelta":
      handles.add(op.inputs[0].name)
    else:
      left.extend(op.control_inputs)
  return handles


def check_built_by_this_rank(graph, saver_def, variables):
  """Raises if a saver of spread tables came with a graph built by another rank.

  Its ops read and write the part of that rank.

  Args:
    graph: the session's graph.
    saver_def: the saver's.
    variables: the embedding variables of the graph.

  Raises:
    ValueError: names a variable.
  """
  if saver_def is None or saving.is_together(graph, saver_def):
    return
  tables = None
  for var in variables:
    if job.current().placement(var) is None:
      continue
    if tables is None:
      tables = tables_of(graph, saver_def)
    if var.handle.name in tables:
      raise ValueError(
          "embedding variable '%s' is spread over ranks, and this Saver was imported with "
          "the graph of one of them: make a tf.train.Saver() of the imported graph on "
          "every rank" % var.op.name)


def _is_table(saveable):
  return isinstance(saveable, saveable_lib.EmbeddingVariableSaveable)


def build_restore(builder, saver_def, saveables, reshape=False):
  """Adds the ops that restore deltas.

  Args:
    builder: the `BaseSaverBuilder` that created the saver's ops.
    saver_def: its result.
    saveables: list of `SaveableObject`, at least one of an embedding variable.
    reshape: as for the saver.
  """
  with ops.name_scope(scope_of(saver_def)):
    prefix = array_ops.placeholder(dtypes.string, [], name="prefix")
    control_flow_ops.group(
        *[delta_saveable.restore_delta(s.op, prefix, s.name)
          for s in saveables if _is_table(s)], name="restore_tables")
    others = [s for s in saveables if not _is_table(s)]
    if others:
      # pylint: disable=protected-access
      builder._AddRestoreOps(prefix, others, restore_sequentially=False,
                             reshape=reshape, name="restore_others")
    else:
      control_flow_ops.no_op(name="restore_others")


def build_save(builder, saver_def, saveables):
  """Adds the ops that save deltas.

  Args:
    builder, saver_def, saveables: as for `build_restore`.
  """
  spread = saving.spread_tables(saveables)
  is_part = bool(spread and job.current().rank())
  if is_part:
    # Rank 0 saves everything else.
    saveables = spread
  tables = [s for s in saveables if _is_table(s)]
  scope = scope_of(saver_def)
  graph = ops.get_default_graph()
  with ops.name_scope(scope):
    prefix = graph.get_tensor_by_name(scope + "prefix:0")
    info = array_ops.placeholder(dtypes.string, [], name="info")
    parts = []
    for i, table in enumerate(tables):
      with ops.device(table.op.device), ops.colocate_with(None, ignore_existing=True):
        array_ops.identity(delta_ops.cut_changes(table.op.handle), name="cut_%d" % i)
        since = array_ops.placeholder(dtypes.int64, [], name="since_%d" % i)
        parts.append(delta_saveable.DeltaSaveable(table.op, table.name, since,
                                                  table.placement, table.slots,
                                                  table.row_type))
        array_ops.identity(parts[-1].cut, name="saved_%d" % i)
    # On the device of the first table, for which a sharded saver has a shard.
    with ops.device(tables[0].op.device):
      about = saveable_object.SaveableObject(
          info, [delta_saveable.info_spec(info)], delta_chain.INFO)
    everything = [s for s in saveables if not _is_table(s)] + parts
    if not is_part:
      everything.append(about)
    # pylint: disable=protected-access
    if saver_def.sharded and saver_def.version == saver_pb2.SaverDef.V2:
      saved = builder._AddShardedSaveOps(prefix, builder._GroupByDevices(everything))
    else:
      saved = builder._AddSaveOps(prefix, everything)
    array_ops.identity(saved, name="save")


def ensure_save(saver):
  """Adds the ops that save deltas to a saver built before they were requested.

  No-op if the saver has them, or if there are no embedding variables.

  Args:
    saver: `tf.train.Saver`.
  """
  builder = getattr(saver, "_builder", None)
  saveables = getattr(builder, "_ev_saveables", None)
  if saveables and not has(ops.get_default_graph(), saver.saver_def, "save"):
    build_save(builder, saver.saver_def, saveables)
