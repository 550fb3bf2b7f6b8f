# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""EmbeddingTableConfig and EmbeddingCollectionConfig: tables that lookups name."""

import collections
import numbers

from hugectr.api import enums
from hugectr.api import optimizer as optimizers
from hugectr.api import printing
from hugectr.config import errors

_TABLE = "hugectr.EmbeddingTableConfig"
_COLLECTION = "hugectr.EmbeddingCollectionConfig"

_COMBINERS = {"sum": "sum", "average": "mean", "mean": "mean", "concat": "concat"}

# table: EmbeddingTableConfig. bottom: name of a sparse input. combiner: "sum", "mean" or
# "concat".
_Lookup = collections.namedtuple("_Lookup", ["table", "bottom", "combiner"])


class EmbeddingTableConfig(object):
  """A table.

  Args:
    name: string.
    max_vocabulary_size: int, number of keys; -1: not known.
    ev_size: int, floats of a row.
    opt_params_or_empty: result of CreateOptimizer; None: the model's.
    init_param_or_empty: None.
    table_id: int, in place of `name` as in upstream's 3.8 to 4.1: the name is its digits.

  Raises:
    ValueError, TypeError: an argument is invalid.
    NotImplementedError: init_param_or_empty is given.
  """

  def __init__(self, name=None, max_vocabulary_size=None, ev_size=None,
               opt_params_or_empty=None, init_param_or_empty=None, table_id=None):
    if (name is None) == (table_id is None) or None in (max_vocabulary_size, ev_size):
      raise TypeError("%s: name (or table_id, as in upstream's 3.8 to 4.1), "
                      "max_vocabulary_size and ev_size are required, got %r, %r, %r, %r" %
                      (_TABLE, name, table_id, max_vocabulary_size, ev_size))
    name = table_id if name is None else name
    if isinstance(max_vocabulary_size, bool) or not isinstance(
        max_vocabulary_size, numbers.Integral) or (
            max_vocabulary_size < 1 and max_vocabulary_size != -1):
      raise ValueError("%s: '%s': max_vocabulary_size: expected an integer of at least 1, or "
                       "-1, got %r" % (_TABLE, name, max_vocabulary_size))
    if opt_params_or_empty is not None and not isinstance(opt_params_or_empty,
                                                          optimizers.OptParams):
      raise TypeError("%s: '%s': opt_params_or_empty: expected what CreateOptimizer returns, "
                      "got %r" % (_TABLE, name, opt_params_or_empty))
    if init_param_or_empty is not None:
      raise NotImplementedError("%s: '%s': init_param_or_empty: rows begin with uniform "
                                "values in this package" % (_TABLE, name))
    self.name, self.size, self.vec_size = str(name), max_vocabulary_size, ev_size
    self.optimizer = opt_params_or_empty


class EmbeddingCollectionConfig(object):
  """Lookups of tables, and the ranks that hold them.

  Args:
    use_exclusive_keys: bool, without effect.
    comm_strategy: member of CommunicationStrategy, without effect.
  """

  def __init__(self, use_exclusive_keys=False,
               comm_strategy=enums.CommunicationStrategy.Uniform):
    printing.without_effect(_COLLECTION, {
        "use_exclusive_keys": (use_exclusive_keys, False),
        "comm_strategy": (comm_strategy, enums.CommunicationStrategy.Uniform)})
    self._tops = []  # [(top, list of _Lookup, whether they stand side by side)]
    self._rank_of = {}  # by name of a table
    self._ranks = 1

  def embedding_lookup(self, table_config, bottom_name, top_name, combiner):
    """Adds a lookup, `[batch, 1, ev_size]`.

    The combiner "concat" puts the rows of a sample's keys side by side, in the keys' order:
    `[batch, 1, nnz_per_slot * ev_size]`. A sample with fewer than nnz_per_slot keys has
    zeros at the end; training on one with more is a DataError.

    With lists of tables, bottoms and combiners and one top, the lookups stand side by
    side: `[batch, sum of their widths]`.

    A table may have several lookups. Those with a combiner other than "concat" must have
    the same one.

    Args:
      table_config: EmbeddingTableConfig, or a list of them.
      bottom_name: name of a sparse input with one slot, or a list.
      top_name: string.
      combiner: "sum", "average" or "concat", or a list.

    Raises:
      ConfigError: lists differ in length, or a table or a combiner is not supported.
    """
    is_list = isinstance(table_config, (list, tuple))
    if not is_list:
      table_config, bottom_name, combiner = [table_config], [bottom_name], [combiner]
    if isinstance(top_name, (list, tuple)):
      if len(top_name) != 1:
        raise errors.ConfigError("%s.embedding_lookup: expected one top_name, got %d" %
                                 (_COLLECTION, len(top_name)))
      top_name = top_name[0]
    if not len(table_config) == len(bottom_name) == len(combiner):
      raise errors.ConfigError(
          "%s.embedding_lookup: '%s': expected lists of one length, got %d tables, %d "
          "bottom_names and %d combiners" % (_COLLECTION, top_name, len(table_config),
                                             len(bottom_name), len(combiner)))
    taken = {l.table.name: l.combiner for _, lookups, _ in self._tops for l in lookups
             if l.combiner != "concat"}
    found = []
    for table, bottom, name in zip(table_config, bottom_name, combiner):
      if name not in _COMBINERS:
        raise errors.ConfigError("%s.embedding_lookup: '%s': combiner: expected one of %s, got "
                                 "%r" % (_COLLECTION, top_name,
                                         ", ".join(sorted(_COMBINERS)), name))
      if name != "concat" and taken.setdefault(
          table.name, _COMBINERS[name]) != _COMBINERS[name]:
        raise errors.ConfigError("%s.embedding_lookup: '%s': another lookup of the table '%s' "
                                 "has the combiner %s, expected the same, got %s" %
                                 (_COLLECTION, top_name, table.name, taken[table.name], name))
      found.append(_Lookup(table, bottom, _COMBINERS[name]))
    self._tops.append((top_name, found, is_list))

  def shard(self, shard_matrix, shard_strategy, compression_strategy=None):
    """Sets which ranks hold which tables.

    A table of strategy "mp" that the matrix has on one rank is on that rank; the rows of
    others are spread over all ranks, also those of strategy "dp", which is reported once.
    A matrix for another number of ranks than the job has is not used, which is reported
    once.

    Args:
      shard_matrix: for each rank, a list of names of tables.
      shard_strategy: list of ("mp" or "dp", list of names of tables).
      compression_strategy: without effect.

    Raises:
      ConfigError: a strategy is something else, or a table is on no rank.
    """
    printing.without_effect(_COLLECTION + ".shard",
                            {"compression_strategy": (compression_strategy, None)})
    self._ranks = len(shard_matrix)
    self._rank_of = {}
    for strategy, names in shard_strategy:
      if strategy not in ("mp", "dp"):
        raise errors.ConfigError("%s.shard: expected \"mp\" or \"dp\", got %r" %
                                 (_COLLECTION, strategy))
      if strategy == "dp" and names:
        printing.once("%s.shard: the strategy \"dp\" has no effect: no rank has a copy of a "
                      "table, rows are spread over all ranks" % _COLLECTION)
      for name in names:
        name = name[0] if isinstance(name, (list, tuple)) else name
        holders = [r for r, tables in enumerate(shard_matrix) if name in tables]
        if not holders:
          raise errors.ConfigError("%s.shard: no rank of shard_matrix has the table '%s'" %
                                   (_COLLECTION, name))
        if strategy == "mp" and len(holders) == 1:
          self._rank_of[name] = holders[0]

  def names(self):
    """Returns the tables' names, in the order of their first lookups."""
    return list(collections.OrderedDict.fromkeys(
        lookup.table.name for _, lookups, _ in self._tops for lookup in lookups))

  def clauses(self, params, solver, ranks, hotness=None):
    """Returns the clauses of a configuration: an embedding per lookup, and their joining.

    Args:
      params: OptParams of the model.
      solver: Solver.
      ranks: int, number of processes.
      hotness: dict from names of sparse inputs to their keys per slot and sample at most;
        needed for lists with the combiner "concat".
    """
    if self._rank_of and self._ranks != ranks:
      printing.once("%s.shard: shard_matrix is for %d ranks, and this job has %d: rows of "
                    "all tables are spread over all ranks" % (_COLLECTION, self._ranks, ranks))
    found, joined, seen = [], [], collections.Counter()
    for top, lookups, is_list in self._tops:
      parts = []
      for lookup in lookups:
        number = seen[lookup.table.name]
        seen[lookup.table.name] += 1
        name = "%s_%d" % (lookup.table.name, number) if number else lookup.table.name
        parts.append("%s/%s" % (top, name) if is_list else top)
        clause = self._table(lookup, parts[-1], params, solver, ranks)
        if number:
          clause.pop("optimizer", None)
          clause.update(name=name, table=lookup.table.name)
        found.append(clause)
      if is_list:
        # Checks of the clauses report a bottom that is not in hotness.
        width = sum(l.table.vec_size * (
            (hotness or {}).get(l.bottom, 1) if l.combiner == "concat" else 1) for l in lookups)
        side_by_side = parts[0]
        if len(parts) > 1:
          side_by_side = top + "/joined"
          joined.append({"type": "Concat", "bottom": parts, "top": side_by_side, "axis": 2})
        joined.append({"type": "Reshape", "bottom": side_by_side, "top": top,
                       "leading_dim": width})
    return found + joined

  def _table(self, lookup, top, params, solver, ranks):
    table = lookup.table
    hparam = {"embedding_vec_size": table.vec_size, "combiner": lookup.combiner}
    if table.size > 0:
      hparam["slot_size_array"] = [table.size]
    hparam["target_gpu"] = self._rank_of.get(table.name, -1) if self._ranks == ranks else -1
    found = {"type": "LocalizedSlotSparseEmbeddingHash", "name": table.name,
             "bottom": lookup.bottom, "top": top, "sparse_embedding_hparam": hparam}
    if table.optimizer is not None and table.optimizer != params:
      found["optimizer"] = optimizers.clause(table.optimizer, solver)
    return found
