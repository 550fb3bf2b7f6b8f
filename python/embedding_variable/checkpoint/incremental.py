# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Incremental checkpoints: the changes since the last full or incremental checkpoint.

A full checkpoint starts a chain: right before it is written, a cut is made in each
table. A delta holds the changes since the cut of the previous checkpoint and makes the
next cut. Updates between the cut and the full checkpoint's snapshot are in both, which
is harmless; none is missing. A save that fails leaves the chain unchanged, and the next
delta includes the changes of the failed one.

If tables are spread over ranks, every rank has the chain with the cuts of its own part.
Either all ranks advance to the next link or none does (together.py).
"""

import os
import weakref

from embedding_variable import graph_state
from embedding_variable.checkpoint import delta_graph
from embedding_variable.checkpoint import leftovers
from embedding_variable.checkpoint import saveable
from embedding_variable.checkpoint import saving
from embedding_variable.checkpoint import together
from embedding_variable.checkpoint_format import delta_chain
from embedding_variable.tf_names import compat
from embedding_variable.tf_names import file_io
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import session as session_lib
from embedding_variable.tf_names import tf_logging as logging

_CHAINS = "_embedding_variable_chains"

# Attribute of a saver: the folder of its last full checkpoint.
_LAST = "_embedding_variable_last_chain"

# Attribute of a graph: its savers.
_SAVERS = "_embedding_variable_savers"

# Attribute of a saver: whether its restores apply deltas; None: only to the newest
# checkpoint.
WANTED = "_ev_incremental"


class Chain(object):
  """A full checkpoint, its deltas so far, and the cuts of the last one.

  Attributes:
    cuts: positions in the tables' sequences of changes at which the next delta starts.
  """

  def __init__(self, full, cuts):
    """Args: full, `delta_chain.Link` of the full checkpoint; cuts, of any type."""
    self.cuts = cuts
    self._full = full
    self._previous = None
    self._sequence = 0

  def next(self, global_step):
    """Returns (prefix, info) of the next delta: two strings; see `delta_chain.info`."""
    sequence = self._sequence + 1
    return (delta_chain.delta_prefix(self._full, sequence),
            delta_chain.info(self._full, self._previous, sequence, global_step))

  def advance(self, prefix, identity, cuts):
    """Records that the next delta is on disk.

    Args:
      prefix: string, its prefix.
      identity: string, the result of `delta_chain.identity`.
      cuts: where it ends.
    """
    self._previous = delta_chain.Link(prefix, identity)
    self._sequence += 1
    self.cuts = cuts


class _SessionChain(Chain):
  """A chain whose tables are those of a session."""

  def __init__(self, full, cuts, sess):
    super(_SessionChain, self).__init__(full, cuts)
    raw = raw_session(sess)
    self._session = None if raw is None else weakref.ref(raw)

  def is_of(self, sess):
    """Returns whether the full checkpoint may be that of a session's tables."""
    raw = raw_session(sess)
    return self._session is None or raw is None or self._session() is raw


def raw_session(sess):
  """Returns the `Session` that a `MonitoredSession` or a debugger's session runs.

  None if the session is an object of another kind: its tables are unknown.
  """
  while sess is not None and not isinstance(sess, session_lib.BaseSession):
    sess = getattr(sess, "_sess", None)
  return sess


def _key(directory):
  """Returns a folder's absolute name, or that of a remote folder as it is."""
  directory = compat.as_str(directory)
  return os.path.abspath(directory) if "://" not in directory else directory


def _chains(saver):
  """Returns the dict directory -> `_SessionChain` of a saver."""
  return saver.__dict__.setdefault(_CHAINS, {})


def cuts_before_full(saver, sess):
  """Makes the cuts at which the deltas of a full checkpoint start; None without deltas.

  Args:
    saver: `tf.train.Saver`, built.
    sess: the session.
  """
  if saver.saver_def is None:
    return None
  names = delta_graph.tensors(sess.graph, saver.saver_def, "cut")
  return sess.run(names) if names else None


def begin_chain(saver, sess, full_prefix, cuts, stored=None):
  """Starts a chain with a full checkpoint, which the next delta continues.

  Args:
    saver: `tf.train.Saver`.
    sess: the session.
    full_prefix: string, the checkpoint that has just been saved.
    cuts: the result of `cuts_before_full`.
    stored: string, the prefix of its files if that is another one. `full_prefix` then
      only places and names its deltas, and replaces the saver's other chains: each
      version has a folder of its own.
  """

  def begin():
    identity = delta_chain.identity(stored or full_prefix)
    # Removes deltas of an earlier checkpoint with this name.
    leftovers.remove_deltas(full_prefix)
    return identity

  is_together = saving.is_together(sess.graph, saver.saver_def)
  identity = together.on_rank_0(begin) if is_together else begin()
  full = delta_chain.Link(full_prefix, identity)
  directory = _key(os.path.dirname(full_prefix))
  if stored is not None:
    _chains(saver).clear()
  _chains(saver)[directory] = _SessionChain(full, cuts, sess)
  setattr(saver, _LAST, directory)


def directory_of_chain(saver, directory):
  """Returns the folder of the full checkpoint that a delta continues.

  Args:
    saver: `tf.train.Saver`.
    directory: string, the folder in which a delta is to be saved.

  Returns:
    `directory` if the saver has saved full checkpoints to it or none at all, otherwise
      the folder of its last full checkpoint.
  """
  if _key(directory) in _chains(saver):
    return directory
  return getattr(saver, _LAST, directory)


def remember(saver):
  """Registers a saver, so that `saver_of` finds it."""
  graph_state.of(ops.get_default_graph()).setdefault(_SAVERS, weakref.WeakSet()).add(saver)


def forget(saver):
  """Undoes `remember`: `saver_of` no longer finds the saver."""
  graph_state.of(ops.get_default_graph()).get(_SAVERS, weakref.WeakSet()).discard(saver)


def saver_of(saver_def):
  """Returns the `tf.train.Saver` of the default graph with this `SaverDef`.

  Args:
    saver_def: `SaverDef`, or None for the graph's only saver.

  Raises:
    ValueError: there is none, or there are several.
  """
  savers = [s for s in graph_state.of(ops.get_default_graph()).get(_SAVERS, ())
            if s.saver_def is not None and
            (saver_def is None or s.saver_def.restore_op_name == saver_def.restore_op_name)]
  if len(savers) != 1:
    raise ValueError(
        "an IncrementalSaver saves deltas of what one tf.train.Saver has saved, and the "
        "graph has %d savers that are built%s: name one by IncrementalSaver(saver_def=)" %
        (len(savers), "" if saver_def is None else " with this saver_def"))
  return savers[0]


def save_incremental(saver, sess, checkpoint_dir, global_step=None):
  """Saves the changes since the last full or incremental checkpoint.

  Saves the rows of every embedding variable that were inserted, updated, evicted or
  erased, and all other variables of the saver as a whole. If tables are spread over
  ranks, every rank must call it, after `Saver.save` on every rank.

  Args:
    saver: `tf.train.Saver`, created with `incremental_save_restore=True`.
    sess: the session of the last full checkpoint.
    checkpoint_dir: string, the folder to which this saver saved its last full
      checkpoint, in this process.
    global_step: int, or None; stored for information.

  Returns:
    string, prefix of the delta, a stock V2 checkpoint.

  Raises:
    ValueError: the saver was created without that argument, or has not yet saved a full
      checkpoint to the folder in this session. On all ranks: they save different
      checkpoints.
    tf.errors.OpError: the delta could not be written. Nothing is lost: the next one
      includes its changes.
    RuntimeError: the save failed on another rank, and so on all of them, or a rank did
      not come in time.
  """
  saver_def = saver.saver_def
  if saver_def is None or not delta_graph.has(sess.graph, saver_def, "save"):
    raise ValueError(
        "this saver cannot save incremental checkpoints: make it with "
        "tf.train.Saver(incremental_save_restore=True), in a graph that has embedding "
        "variables")
  saveable.check_spread_is_known(
      v for v in sess.graph.get_collection("embedding_variables") if hasattr(v, "handle"))
  chain = _chains(saver).get(_key(checkpoint_dir))
  # Another session has tables of its own, whose changes do not belong to it.
  if chain is None or not chain.is_of(sess):
    raise ValueError(
        "an incremental checkpoint continues a full one, and this saver has not saved "
        "one to %r in this session yet: call its save() first" % checkpoint_dir)
  graph, scope = sess.graph, delta_graph.scope_of(saver_def)
  feeds = dict(zip(delta_graph.tensors(graph, saver_def, "since"), chain.cuts))
  prefix, info = chain.next(global_step)
  feeds[scope + "prefix:0"] = prefix
  feeds[scope + "info:0"] = info
  fetches = [delta_graph.tensors(graph, saver_def, "saved"), scope + "save:0"]

  def write():
    file_io.recursive_create_dir(os.path.dirname(prefix))
    return sess.run(fetches, feeds)[0]

  if saving.is_together(graph, saver_def):
    cuts = together.save(prefix, prefix, write, write)
    identity = together.on_rank_0(lambda: delta_chain.identity(prefix))
  else:
    with leftovers.removed(prefix):
      cuts = write()
    identity = delta_chain.identity(prefix)
  chain.advance(prefix, identity, cuts)
  return prefix


def deltas_of(saver, graph, full_prefix, enabled=None):
  """Checks the deltas that follow a full checkpoint and returns their `Link`s.

  Args:
    saver: `tf.train.Saver`.
    graph: the session's graph.
    full_prefix: string.
    enabled: bool; None: only if it is the newest full checkpoint of the folder.

  Raises:
    tf.errors.DataLossError: a delta is missing or damaged; the message names it.
  """
  if enabled is False or saver.saver_def is None:
    return []
  if not delta_graph.has(graph, saver.saver_def, "restore_tables"):
    return []
  if not file_io.file_exists(full_prefix + ".index"):
    return []
  if enabled is None and not delta_chain.is_newest(full_prefix):
    return []
  return delta_chain.find(full_prefix)


def restore_exactly(saver, sess, full_prefix):
  """Restores a full checkpoint as it was saved, without deltas.

  Args:
    saver: `tf.train.Saver`.
    sess: the session.
    full_prefix: string.
  """
  wanted = getattr(saver, WANTED, None)
  setattr(saver, WANTED, False)
  try:
    saver.restore(sess, full_prefix)
  finally:
    setattr(saver, WANTED, wanted)


def restore_deltas(saver, sess, links):
  """Applies deltas, in order, after their full checkpoint was restored.

  Args:
    saver: `tf.train.Saver`.
    sess: the session.
    links: the result of `deltas_of`.
  """
  scope = delta_graph.scope_of(saver.saver_def)
  for link in links:
    logging.info("Restoring incremental checkpoint %s", link.prefix)
    sess.run(scope + "restore_tables", {scope + "prefix:0": link.prefix})
  if links:
    sess.run(scope + "restore_others", {scope + "prefix:0": links[-1].prefix})
