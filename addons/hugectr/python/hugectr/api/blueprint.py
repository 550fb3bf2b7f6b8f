# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The clauses that a script adds, and the configuration that they make."""

import collections

from hugectr.api import collection
from hugectr.api import dense_layer
from hugectr.api import embedding
from hugectr.api import optimizer as optimizers
from hugectr.api import reader as readers
from hugectr.config import errors
from hugectr.config import loading
from hugectr.config import model as models

_WHERE = "hugectr.Model.add"
_FROM_JSON = "hugectr.Model.construct_from_json"


def _as_list(value):
  return value if isinstance(value, list) else [value]


def _with_slices(clauses, shapes, labels):
  """Returns clauses in which a tensor that several layers take goes through a Slice.

  The Slice of NAME has a top NAME_slice<k> for the k-th layer. Embeddings come first.

  Args:
    clauses: list of dicts; the first is the data.
    shapes: dict from the tensors' names to their Shapes.
    labels: set of names of labels, which stay as they are.
  """
  takers = collections.Counter(b for c in clauses[1:] for b in _as_list(c["bottom"]))
  copies = {name: ["%s_slice%d" % (name, k) for k in range(count)]
            for name, count in takers.items()
            if count > 1 and name in shapes and name not in labels}
  left = {name: list(tops) for name, tops in copies.items()}

  def slices_of(names):
    return [{"type": "Slice", "bottom": name, "top": copies[name],
             "ranges": [[0, shapes[name].dims[-1]] for _ in copies[name]]}
            for name in names if name in copies]

  embeddings = [c for c in clauses[1:] if c["type"] in models.EMBEDDINGS]
  found = clauses[:1] + embeddings
  found += slices_of([clauses[0]["dense"]["top"]] + [c["top"] for c in embeddings])
  for clause in clauses[1:]:
    if clause["type"] in models.EMBEDDINGS:
      continue
    bottom = [left[b].pop(0) if b in left else b for b in _as_list(clause["bottom"])]
    found.append(dict(clause, bottom=bottom if isinstance(clause["bottom"], list) else
                      bottom[0]))
    found += slices_of(_as_list(clause["top"]))
  return found


def _with_sizes(clauses):
  """Returns clauses whose Raw data has the sizes of slots that only embeddings have."""
  data = clauses[0]
  sizes = {c["bottom"]: c["sparse_embedding_hparam"].get("slot_size_array")
           for c in clauses if c["type"] in models.EMBEDDINGS}
  found = [sizes.get(s["top"]) for s in data["sparse"]]
  if data["format"] != "Raw" or "slot_size_array" in data or not all(found):
    return clauses
  return [dict(data, slot_size_array=[n for each in found for n in each])] + clauses[1:]


class Blueprint(object):
  """A model while it is added layer by layer.

  Args:
    solver: Solver.
    reader: DataReaderParams.
    params: OptParams.
    ranks: int, number of processes.
  """

  def __init__(self, solver, reader, params, ranks):
    self._ranks = ranks
    self._solver = solver
    self._reader = reader
    self._params = params
    self._clauses = []
    self._shapes = {}
    self.labels = []  # [(name, width)] in the order of the data's columns
    self.label_weights = {}  # by name
    self.collections = []  # names of the tables of each collection

  def add(self, part):
    """Adds an Input, a SparseEmbedding or a layer.

    Raises:
      TypeError: it is something else.
      ConfigError: it does not fit what was added before. Then nothing has changed.
    """
    if isinstance(part, readers.Input):
      if self._clauses:
        raise errors.ConfigError("%s: there is already an Input" % _WHERE)
      self._take(part.clauses(self._reader))
      self.labels, self.label_weights = part.labels(), part.weights()
      return
    if not self._clauses:
      raise errors.ConfigError("%s: expected an Input first, got a %s" %
                               (_WHERE, type(part).__name__))
    self._take(self._clauses_of(part))
    if isinstance(part, collection.EmbeddingCollectionConfig):
      self.collections.append(part.names())

  def _take(self, added):
    clauses, shapes = self._clauses, self._shapes
    for clause in added:
      clauses = clauses + [clause]
      shapes = models.check_layers(clauses, _WHERE)
    self._clauses, self._shapes = clauses, shapes

  def _clauses_of(self, part):
    if isinstance(part, embedding.SparseEmbedding):
      one_hot = any(s["top"] == part.bottom and s.get("nnz_per_slot") == 1
                    for s in self._clauses[0]["sparse"])
      return [part.clause(self._params, self._solver, one_hot)]
    if isinstance(part, dense_layer.DenseLayer):
      return [part.clause()]
    if isinstance(part, dense_layer.GroupDenseLayer):
      return [layer.clause() for layer in part.layers]
    if isinstance(part, collection.EmbeddingCollectionConfig):
      hotness = {s["top"]: models.most_of_a_slot(s) for s in self._clauses[0]["sparse"]}
      return part.clauses(self._params, self._solver, self._ranks, hotness)
    raise TypeError("%s: expected an Input, SparseEmbedding, EmbeddingCollectionConfig, "
                    "DenseLayer or GroupDenseLayer, got %r" % (_WHERE, part))

  def take_file(self, path, has_dense):
    """Adds the layers of a JSON; the reader, the solver and the optimizer are the script's.

    Args:
      path: string.
      has_dense: bool. False: only the inputs and the embeddings.

    Raises:
      ConfigError: the file is no configuration, or layers have been added before.
    """
    where = "%s: %s" % (_FROM_JSON, path)
    if self._clauses:
      raise errors.ConfigError("%s: there is already an Input" % _FROM_JSON)
    clauses = loading.layers_of(path, where)
    taken, shapes = [], {}
    for clause in self._of_file(clauses, has_dense):
      taken.append(clause)
      shapes = models.check_layers(taken, where)
    self._clauses, self._shapes = taken, shapes
    label = taken[0]["label"]
    self.labels = [(label["top"], label["label_dim"])]
    for clause in taken:
      if clause["type"] == "Slice" and clause["bottom"] == label["top"]:
        self.labels = [(name, end - first) for name, (first, end) in
                       zip(clause["top"], clause["ranges"])]

  def _of_file(self, clauses, has_dense):
    """Yields a file's clauses with the script's reader and rates."""
    model = optimizers.clause(self._params, self._solver)
    data = {k: v for k, v in clauses[0].items()
            if k in ("name", "type", "label", "dense", "sparse")}
    yield dict(data, **self._reader.clause())
    for clause in clauses[1:]:
      if clause.get("type") not in models.EMBEDDINGS:
        if not has_dense:
          return
        yield clause
        continue
      clause = dict(clause)
      own = optimizers.with_rate(clause.pop("optimizer", None), model)
      if own is not None and own != model:
        clause["optimizer"] = own
      yield clause

  def layers(self):
    """Returns the layers' clauses, with a Slice for each tensor that several layers take.

    Raises:
      ConfigError: there is no Input.
    """
    if not self._clauses:
      raise errors.ConfigError("hugectr.Model: no Input has been added")
    labels = {self._clauses[0]["label"]["top"]} | {name for name, _ in self.labels}
    return _with_slices(_with_sizes(self._clauses), self._shapes, labels)

  def embeddings(self):
    """Returns the names of the embeddings with tables in the order of adding."""
    return [c.get("name", c["top"]) for c in self._clauses
            if c["type"] in models.EMBEDDINGS and "table" not in c]

  def configuration(self, seed):
    """Returns the configuration, a dict as in a JSON file; raises ConfigError.

    Args:
      seed: int.
    """
    solver = self._solver
    clause = {"seed": seed, "batchsize": solver.batchsize,
              "batchsize_eval": solver.batchsize_eval,
              "max_eval_batches": solver.max_eval_batches,
              "input_key_type": "I64" if solver.i64_input_key else "I32",
              "gpu": solver.vvgpu if len(solver.vvgpu) > 1 else solver.vvgpu[0],
              "eval_metrics": solver.metric_names()}
    found = {"solver": clause, "optimizer": optimizers.clause(self._params, solver),
             "layers": self.layers()}
    if solver.model_name:
      found["model_name"] = solver.model_name
    return found
