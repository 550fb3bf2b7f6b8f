# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The model that a configuration describes: data, tables, layers, loss, optimizers."""

import collections

from hugectr.config import errors
from hugectr.config import loading
from hugectr.config import schema_check
from hugectr.layers import network
from hugectr.layers import shapes

EMBEDDINGS = ("DistributedSlotSparseEmbeddingHash", "LocalizedSlotSparseEmbeddingHash",
              "LocalizedSlotSparseEmbeddingOneHot")

# top: the tensor's name. is_localized: slot modulo ranks, else key modulo ranks.
# first_slot: first of the data's slots. slot_num: number of slots. max_nnz: maximum
# number of keys per slot and sample, None or int. max_keys: maximum number of keys per
# sample.
SparseInput = collections.namedtuple(
    "SparseInput", ["top", "is_localized", "first_slot", "slot_num", "max_nnz",
                    "max_keys"])

# format: "Norm", "Raw" or "Parquet". source, eval_source: paths or None. sparse: list
# of SparseInput. slot_sizes: list of ints or None. clause: the layer's dict.
Data = collections.namedtuple(
    "Data", ["name", "format", "source", "eval_source", "label_top", "label_dim",
             "dense_top", "dense_dim", "sparse", "slot_sizes", "num_workers", "clause"])

# bottom: SparseInput. vec_size: floats per row. combiner: "sum", "mean" or
# "concat". slot_sizes: ints for this layer's slots, or None. rows_per_device: int or
# None. target: rank that holds all rows, -1 for all ranks, or None for the type's
# default. table: name of the embedding whose rows it uses; None: its own.
Embedding = collections.namedtuple(
    "Embedding", ["name", "type", "bottom", "top", "vec_size", "combiner",
                  "slot_sizes", "rows_per_device", "optimizer", "target", "table"])
Embedding.__new__.__defaults__ = (None,)


def top_width(embedding):
  """Returns the floats of a slot in the top of an Embedding."""
  return embedding.vec_size * (
      embedding.bottom.max_nnz if embedding.combiner == "concat" else 1)


# bottoms, tops: names of tensors. in_shapes, out_shapes: shapes.Shape. params: the
# dict.
Layer = collections.namedtuple(
    "Layer", ["name", "type", "bottoms", "tops", "in_shapes", "out_shapes", "params"])

# type, update_type: strings. hparam: dict including defaults.
Optimizer = collections.namedtuple("Optimizer", ["type", "update_type", "hparam"])

# layers: list of Layer, without the losses. losses: list of Layer. label_columns: list
# of the columns of the label that the losses take, in their order; None: all columns.
Model = collections.namedtuple(
    "Model", ["data", "embeddings", "layers", "losses", "optimizer", "label_columns"])

HPARAMS = {"Adam": "adam_hparam", "MomentumSGD": "momentum_sgd_hparam",
           "Nesterov": "nesterov_hparam", "SGD": "sgd_hparam",
           "AdaGrad": "adagrad_hparam", "Ftrl": "ftrl_hparam", "RMSProp": "rmsprop_hparam"}

# Optimizers that an embedding may have, and a model not.
OF_ROWS = ("RMSProp",)


def _as_list(value):
  return list(value) if isinstance(value, list) else [value]


def _with_names(clauses):
  """Returns layers' clauses; one without a name gets that of its first top."""
  found = []
  for clause in clauses:
    if "name" not in clause and clause["type"] != "Data":
      clause = dict(clause, name=(_as_list(clause["top"]) or [""])[0])
    found.append(clause)
  names = {clause.get("name") for clause in found}
  for k, clause in enumerate(found):
    if "name" not in clause:
      name = "data"
      while name in names:
        name += "_"
      found[k] = dict(clause, name=name)
  return found


def most_of_a_slot(part):
  """Returns the keys of a slot and sample at most of an item of `sparse`, int or None."""
  each = part.get("nnz_per_slot", part.get("max_nnz"))
  return max(each) if isinstance(each, list) else each


def parse_optimizer(clause, schema):
  """Returns the Optimizer of a clause that is valid by the schema."""
  name = HPARAMS[clause["type"]]
  hparam = {key: child["default"]
            for key, child in schema["definitions"][name]["properties"].items()
            if "default" in child}
  hparam.update(clause[name])
  update_type = "Global" if clause.get("global_update") else "Local"
  return Optimizer(clause["type"], clause.get("update_type", update_type), hparam)


class _Parser(object):
  """Walks the layers in order and collects mistakes with their paths.

  Attributes:
    shapes: dict from the names of dense tensors to their Shapes.
  """

  def __init__(self, configuration, where):
    self._layers = _with_names(configuration["layers"])
    self._configuration = configuration
    self._where = where
    self._schema = schema_check.load_schema()
    self._mistakes = []
    self.shapes = {}
    self._sparse = {}  # sparse inputs that no embedding has taken yet
    self._taken = {}  # names of sparse inputs, with the layer that took them
    self._labels = {}  # columns of the data's label in each tensor of labels

  def _path(self, k):
    clause = self._layers[k]
    return "layers[%d] ('%s', %s)" % (k, clause["name"], clause["type"])

  def _report(self, path, sentence):
    self._mistakes.append("%s: %s: %s" % (self._where, path, sentence))

  def run(self, is_whole=True):
    """Returns the Model; raises ConfigError.

    Args:
      is_whole: bool. False: layers may be missing at the end; returns None.
    """
    self._check_names()
    if self._layers[0]["type"] != "Data":
      self._report(self._path(0), "the first layer: expected type Data")
      raise errors.ConfigError(self._mistakes)
    data = self._data()
    embeddings, layers = [], []
    for k, clause in enumerate(self._layers[1:], 1):
      if clause["type"] == "Data":
        self._report(self._path(k), "only the first layer may be of type Data")
      elif clause["type"] in EMBEDDINGS:
        self._embedding(k, clause, data, embeddings)
      else:
        self._layer(k, clause, layers)
    self._check_labels(layers)
    if is_whole:
      self._check_end()
      kind = self._configuration["optimizer"]["type"]
      if kind in OF_ROWS:
        self._report("optimizer.type", "%s updates rows of embeddings only, expected another "
                     "type for dense parameters" % kind)
    if self._mistakes:
      raise errors.ConfigError(self._mistakes)
    if not is_whole:
      return None
    losses = [layer for layer in layers if layer.type in network.LOSSES]
    return Model(data, embeddings, layers[:-len(losses)], losses,
                 parse_optimizer(self._configuration["optimizer"], self._schema),
                 self._label_columns(data, losses))

  def _check_names(self):
    seen = {}
    for k, clause in enumerate(self._layers):
      first = seen.setdefault(clause["name"], k)
      if first != k:
        self._report(self._path(k), "layers[%d] has the same name" % first)

  def _add_top(self, path, name, shape):
    if name in self.shapes or name in self._sparse or name in self._taken:
      self._report(path, "there is already a tensor '%s'" % name)
    else:
      self.shapes[name] = shape

  def _data(self):
    clause, path = self._layers[0], self._path(0)
    label, dense = clause["label"], clause["dense"]
    self._add_top(path, label["top"], shapes.flat(label["label_dim"]))
    self._labels[label["top"]] = list(range(label["label_dim"]))
    self._add_top(path, dense["top"], shapes.flat(dense["dense_dim"]))
    inputs, slot = [], 0
    for k, part in enumerate(clause["sparse"]):
      if part["top"] in self.shapes or part["top"] in self._sparse:
        self._report("%s.sparse[%d]" % (path, k),
                     "there is already a tensor '%s'" % part["top"])
      max_nnz, max_keys = self._most_keys("%s.sparse[%d]" % (path, k), part)
      found = SparseInput(part["top"], self._is_localized(part), slot, part["slot_num"],
                          max_nnz, max_keys)
      inputs.append(found)
      self._sparse[found.top] = found
      slot += found.slot_num
    sizes = clause.get("slot_size_array")
    if sizes is not None and len(sizes) != slot:
      self._report(path + ".slot_size_array", "expected %d numbers, one per slot of the "
                   "sparse inputs, got %d" % (slot, len(sizes)))
    kind = clause.get("format", "Norm")
    if kind == "Raw":
      for key, needed in (("num_samples", True),
                          ("eval_num_samples", "eval_source" in clause)):
        if needed and key not in clause:
          self._report(path, "'%s' is missing, which format Raw needs" % key)
    return Data(clause["name"], kind, clause["source"], clause.get("eval_source"),
                label["top"], label["label_dim"], dense["top"], dense["dense_dim"],
                inputs, sizes, clause.get("num_workers", 12), clause)

  def _is_localized(self, part):
    """Returns whether a sparse input is distributed by slot."""
    if "type" in part:
      return part["type"] == "LocalizedSlot"
    return any(clause["type"] in EMBEDDINGS and clause["type"].startswith("Localized") and
               part["top"] in _as_list(clause["bottom"]) for clause in self._layers)

  def _most_keys(self, path, part):
    """Returns (max_nnz, max_keys) of a sparse input, from the keys of any version."""
    if "nnz_per_slot" not in part:
      if "max_feature_num_per_sample" not in part:
        self._report(path, "expected nnz_per_slot or max_feature_num_per_sample")
      if "is_fixed_length" in part:
        self._report(path + ".is_fixed_length", "expected nnz_per_slot beside it")
      return part.get("max_nnz"), part.get("max_feature_num_per_sample")
    for key in ("max_feature_num_per_sample", "max_nnz"):
      if key in part:
        self._report(path, "expected either nnz_per_slot or %s, got both" % key)
    each = part["nnz_per_slot"]
    if not isinstance(each, list):
      return each, each * part["slot_num"]
    if len(each) != part["slot_num"]:
      self._report(path + ".nnz_per_slot", "expected %d numbers, one per slot, got %d" %
                   (part["slot_num"], len(each)))
    return most_of_a_slot(part), sum(each)

  def _one_name(self, clause, key, path):
    names = _as_list(clause[key])
    if len(names) != 1:
      self._report(path + "." + key, "expected one name, got %d" % len(names))
      return None
    return names[0]

  def _embedding(self, k, clause, data, embeddings):
    path = self._path(k)
    name, top = (self._one_name(clause, key, path) for key in ("bottom", "top"))
    if name is None or top is None:
      return
    if name in self._taken:
      self._report(path + ".bottom", "layer '%s' has taken the sparse input '%s'" %
                   (self._taken[name], name))
      return
    if name not in self._sparse:
      self._report(path + ".bottom", "there is no sparse input '%s'%s" % (
          name, schema_check.suggestion(name, self._sparse)))
      return
    bottom = self._sparse.pop(name)
    self._taken[name] = clause["name"]
    localized = clause["type"].startswith("Localized")
    if localized != bottom.is_localized:
      self._report(path + ".bottom", "'%s' is of type %s, which this layer does not take" %
                   (name, "LocalizedSlot" if bottom.is_localized else "DistributedSlot"))
    hparam = clause["sparse_embedding_hparam"]
    sizes = self._slot_sizes(path, clause, bottom, data)
    if clause["type"].endswith("OneHot"):
      if sizes is None:
        self._report(path, "'slot_size_array' is missing, in this layer or in the data layer")
      if (bottom.max_nnz or 1) != 1:
        self._report(path + ".bottom", "max_nnz of '%s': expected 1, got %d" %
                     (name, bottom.max_nnz))
    found = Embedding(
        clause["name"], clause["type"], bottom, top, hparam["embedding_vec_size"],
        {0: "sum", 1: "mean"}.get(hparam["combiner"], hparam["combiner"]), sizes,
        hparam.get("max_vocabulary_size_per_gpu"),
        parse_optimizer(clause["optimizer"], self._schema)
        if "optimizer" in clause else None, hparam.get("target_gpu"), clause.get("table"))
    self._check_table(path, found, embeddings)
    embeddings.append(found)
    if found.combiner == "concat" and (bottom.slot_num != 1 or bottom.max_nnz is None):
      self._report(path, "top '%s': combiner concat needs a sparse input with one slot and "
                   "nnz_per_slot, got '%s' with %d slots and %s" % (
                       top, name, bottom.slot_num, "no nnz_per_slot" if bottom.max_nnz is None
                       else "nnz_per_slot %d" % bottom.max_nnz))
      return
    self._add_top(path, top, shapes.Shape(1, (bottom.slot_num, top_width(found))))

  def _check_table(self, path, embedding, embeddings):
    """Records a table that an embedding cannot use."""
    if embedding.table is None:
      return
    owners = {e.name: e for e in embeddings if e.table is None}
    if embedding.table not in owners:
      self._report(path + ".table", "there is no embedding '%s' with a table of its own before "
                   "this one%s" % (embedding.table, schema_check.suggestion(
                       embedding.table, owners)))
      return
    owner = owners[embedding.table]
    found = [(what, getattr(owner, what), getattr(embedding, what))
             for what in ("type", "vec_size")]
    # A lookup of combiner concat does not pool, so it agrees with any other.
    combiners = [e.combiner for e in embeddings + [embedding]
                 if owner.name in (e.name, e.table) and e.combiner != "concat"]
    if combiners:
      found.append(("combiner", combiners[0], combiners[-1]))
    for what, expected, got in found:
      if expected != got:
        self._report(path + ".table", "'%s' has the %s %s, expected the same, got %s" % (
            owner.name, what.replace("vec_size", "embedding_vec_size"), expected, got))
    slots = max(owner.bottom.slot_num, embedding.bottom.slot_num)
    if embedding.type.startswith("Localized") and slots > 1:
      self._report(path + ".table", "expected one slot in both layers, got %d" % slots)

  def _slot_sizes(self, path, clause, bottom, data):
    """Returns the number of keys of each of the layer's slots, or None."""
    for place, holder in (("", clause),
                          (".sparse_embedding_hparam",
                           clause["sparse_embedding_hparam"])):
      sizes = holder.get("slot_size_array")
      if sizes is None:
        continue
      if len(sizes) != bottom.slot_num:
        self._report("%s%s.slot_size_array" % (path, place), "expected %d numbers, one per "
                     "slot of '%s', got %d" % (bottom.slot_num, bottom.top, len(sizes)))
      return list(sizes)
    if data.slot_sizes is None:
      return None
    return data.slot_sizes[bottom.first_slot:bottom.first_slot + bottom.slot_num]

  def _bottom_shape(self, path, name, k):
    """Returns the Shape of a bottom, or None after recording what is wrong with it."""
    if name in self.shapes:
      return self.shapes[name]
    for later, clause in enumerate(self._layers[k:], k):
      if name in _as_list(clause.get("top", [])):
        self._report(path, "'%s' is the top of %s: a layer must follow those whose tensors "
                     "it takes, without cycles" % (name, self._path(later)))
        return None
    if name in self._sparse or name in self._taken:
      self._report(path, "'%s' is a sparse input: only an embedding takes it" % name)
      return None
    self._report(path, "there is no tensor '%s'%s" % (
        name, schema_check.suggestion(name, self.shapes)))
    return None

  def _layer(self, k, clause, layers):
    path = self._path(k)
    if "regularizer" in clause and "lambda" not in clause:
      self._report(path, "'lambda' is missing, which a regularizer needs")
    bottoms, tops = _as_list(clause["bottom"]), _as_list(clause["top"])
    found = [self._bottom_shape(path + ".bottom", name, k) for name in bottoms]
    kind = network.OF_TYPE[clause["type"]]
    expected = kind.tops(clause)
    if len(tops) != expected:
      self._report(path + ".top", "expected %d, got %d names" % (expected, len(tops)))
      return
    out = None
    if not kind.has_several_bottoms() and len(bottoms) != 1:
      self._report(path + ".bottom", "expected one name, got %d" % len(bottoms))
    elif None not in found:
      try:
        out = kind.shape(found, clause)
      except shapes.ShapeError as e:
        self._report(path, str(e))
    for name, shape in zip(tops, out or [None] * len(tops)):
      self._add_top(path, name, shape)
    if out is not None:
      layers.append(Layer(clause["name"], clause["type"], bottoms, tops, found, out,
                          clause))

  def _check_labels(self, layers):
    """Records layers that take labels and are no losses, or the reverse."""
    losses = [layer for layer in layers if layer.type in network.LOSSES]
    for layer in layers:
      if layer.type == "Slice" and layer.bottoms[0] in self._labels:
        columns = self._labels[layer.bottoms[0]]
        for top, (first, end) in zip(layer.tops, layer.params["ranges"]):
          self._labels[top] = columns[first:end]
        continue
      for position, name in enumerate(layer.bottoms):
        is_label = layer.type in network.LOSSES and position == 1
        if (name in self._labels) != is_label:
          self._report("layer '%s'" % layer.name, "expected the label '%s' as the second "
                       "bottom of the loss, and nowhere else" % "' or '".join(self._labels))
      if len(losses) > 1 and layer in losses:
        if layer.in_shapes[0].rows != 1:
          self._report("layer '%s'" % layer.name, "one of several losses needs one row of "
                       "logits per sample, got %s" % (layer.in_shapes[0],))
        if "regularizer" in layer.params:
          self._report("layer '%s'" % layer.name,
                       "a regularizer needs a single loss, got %d" % len(losses))

  def _check_end(self):
    """Records mistakes of the whole model: the losses, and unused inputs."""
    losses = [k for k, clause in enumerate(self._layers)
              if clause["type"] in network.LOSSES]
    if not losses or losses != list(range(losses[0], len(self._layers))):
      self._report("layers", "expected losses as the last layers, got %d, %s" % (
          len(losses), "and the last layer is of type " + self._layers[-1]["type"]))
    for name in self._sparse:
      self._report(self._path(0), "no embedding takes the sparse input '%s'" % name)

  def _label_columns(self, data, losses):
    """Returns Model's label_columns."""
    if len(losses) == 1 and losses[0].bottoms[1] == data.label_top:
      return None
    return [c for loss in losses for c in self._labels[loss.bottoms[1]]]


def parse(configuration, where="configuration"):
  """Returns the Model of a configuration.

  Args:
    configuration: dict, content of a JSON file.
    where: string, prefix of each mistake: the file's path.

  Returns:
    Model.

  Raises:
    ConfigError: one line per mistake: violations of the schema, unknown or duplicate
      tensors, layers out of order, bottoms with wrong shapes, a missing loss.
  """
  loading.check(configuration, where)
  return _Parser(configuration, where).run()


def most_keys(embeddings, name):
  """Returns the largest number of keys of a sample in one lookup of a table, or None.

  Args:
    embeddings: list of Embedding.
    name: string, the embedding with the table.
  """
  found = [e.bottom.max_keys for e in embeddings if name in (e.name, e.table)]
  return None if None in found else max(found)


def check_layers(clauses, where):
  """Checks the first layers of a model, of which others will follow.

  Args:
    clauses: list of dicts, the first of type Data. All but the last have been checked.
    where: string, prefix of each mistake.

  Returns:
    Dict from the names of dense tensors to their Shapes.

  Raises:
    ConfigError: as `parse`, except that inputs may be unused and losses may be missing.
  """
  loading.check_layer(clauses[-1], len(clauses) - 1, where)
  parser = _Parser({"layers": clauses}, where)
  parser.run(is_whole=False)
  return parser.shapes


def read(path):
  """Returns (Model, the configuration's dict) of a file; raises errors like `parse`."""
  configuration = loading.read_json(path)
  return parse(configuration, path), configuration
