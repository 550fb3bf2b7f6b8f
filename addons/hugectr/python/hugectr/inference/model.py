# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""InferenceModel and InferenceSession: predictions of a trained model."""

import numbers
import os
import tempfile
import weakref

import numpy as np
import tensorflow.compat.v1 as tf

from hugectr.api import enums
from hugectr.config import loading
from hugectr.config import model as models
from hugectr.data import batches
from hugectr.data import fixed_length
from hugectr.data import sources
from hugectr.inference import graph as graphs
from hugectr.inference import params as parameters
from hugectr.inference import server
from hugectr.inference import tables
from hugectr.training import concat
from hugectr.training import metrics
from hugectr.training import model_files
from hugectr.training import ranks as rank_jobs

# A clause that the JSON needs and predictions do not.
_OPTIMIZER = {"type": "SGD", "sgd_hparam": {"learning_rate": 0.0}}

_OF_READER = ("name", "type", "label", "dense", "sparse", "slot_size_array",
              "float_label_dense")


def _clauses(path):
  """Returns the layers of a model's JSON, without its optimizers and its files."""
  layers = loading.layers_of(path, path, ", as Model.graph_to_json writes it")
  data = {k: v for k, v in layers[0].items() if k in _OF_READER}
  return [data] + [{k: v for k, v in c.items() if k != "optimizer"} for c in layers[1:]]


def _parsed(clauses, data, where):
  """Returns the config's Model of clauses whose data has more keys."""
  return models.parse({"optimizer": _OPTIMIZER,
                       "layers": [dict(clauses[0], **data)] + clauses[1:]}, where)


def _pooled(rows, keys, combiner):
  """Returns the sum or mean of the rows of each list of keys, zeros for an empty one.

  Args:
    rows: `[N, floats]`.
    keys: RaggedTensor of N keys.
    combiner: "mean", or another for the sum.
  """
  # On a GPU this sum would add in any order.
  with tf.device("/cpu:0"):
    found = tf.math.unsorted_segment_sum(rows, keys.value_rowids(), keys.nrows())
    if combiner != "mean":
      return found
    counts = tf.cast(tf.maximum(keys.row_lengths(), 1), tf.float32)
    return found / counts[:, tf.newaxis]


def _release(hps, session, name, folder):
  """Ends what an InferenceModel holds."""
  session.close()
  if name is not None:
    server.remove(hps, [name])
  folder.cleanup()


class InferenceModel(object):
  """A trained model that predicts. Not thread-safe.

  Its rows are in the process's parameter server, under the model's name, until `close`.

  Example:

    model = InferenceModel("graph.json", InferenceParams(...))
    predictions = model.predict(10, "val/_file_list.txt", hugectr.DataReaderType_t.Norm,
                                hugectr.Check_t.Sum)
  """

  _WHERE = "hugectr.inference.InferenceModel"

  def __init__(self, model_config_path, inference_params):
    """Loads the model's files; cost: reading them once.

    Args:
      model_config_path: path of a JSON of `Model.graph_to_json`, or of a training
        configuration.
      inference_params: InferenceParams.

    Raises:
      ImportError: the package hierarchical_parameter_server is not installed.
      TypeError: inference_params is of another type.
      ConfigError: the JSON is not a model.
      ValueError: files are of another model, or their number is not that of embeddings.
      OSError: a file cannot be read.
      tf.errors.OpError: the parameter server rejects a setting.
    """
    if not isinstance(inference_params, parameters.InferenceParams):
      raise TypeError("%s: inference_params: expected an InferenceParams, got %r" %
                      (self._WHERE, inference_params))
    self._path, self._params = model_config_path, inference_params
    self._clauses = _clauses(model_config_path)
    self._model = _parsed(self._clauses, {"source": "-"}, model_config_path)
    self._owners = [e for e in self._model.embeddings if e.table is None]
    files = inference_params.sparse_model_files
    if len(files) != len(self._owners):
      raise ValueError("%s: sparse_model_files: expected %d files, one per embedding (%s), got "
                       "%d" % (self._WHERE, len(self._owners), ", ".join(
                           e.name for e in self._owners), len(files)))
    self._hps = server.package(self._WHERE) if files else None
    self._last = None  # feeds of the last batch
    self._tables = {}  # (position, tables.Numbered or None) by name of an embedding
    folder = tempfile.TemporaryDirectory(prefix="hugectr_inference_")
    rank_jobs.see_one_device(inference_params.device_id)
    options = tf.ConfigProto(allow_soft_placement=True)
    options.gpu_options.allow_growth = True
    self._session = tf.Session(graph=tf.Graph(), config=options)
    name = None
    try:
      if files:
        name = self._serve(folder.name)
      self._build(name)
    except Exception:
      _release(self._hps, self._session, name, folder)
      raise
    # Not at the process's end, when TensorFlow may be gone.
    self._finalizer = weakref.finalize(self, _release, self._hps, self._session, name, folder)
    self._finalizer.atexit = False

  def _serve(self, folder):
    """Adds the model's tables to the server; returns its name there."""
    folders = []
    for k, (embedding, path) in enumerate(zip(self._owners,
                                              self._params.sparse_model_files)):
      found, numbered = tables.served(path, embedding, self._params.i64_input_key,
                                      os.path.join(folder, str(k)))
      folders.append(found)
      self._tables[embedding.name] = k, numbered
    embeddings = self._owners
    clause = self._params.clause(
        self._params.model_name, folders, parameters.table_names(
            self._WHERE, [e.name for e in embeddings]),
        [e.vec_size for e in embeddings],
        [models.most_keys(self._model.embeddings, e.name) for e in embeddings])
    return server.serve(self._hps, dict(self._params.databases, supportlonglong=True,
                                        models=[clause]), renames=True)

  def _table_of(self, embedding):
    return self._tables[embedding.table or embedding.name]

  def _lookup(self, name, embedding):
    """Returns a function from RaggedTensors of keys to pooled rows."""
    layer = self._hps.LookupLayer(
        model_name=name, table_id=self._table_of(embedding)[0],
        emb_vec_size=embedding.vec_size, emb_vec_dtype=tf.float32,
        global_batch_size=server.replicas())

    def lookup(keys):
      if concat.is_concat(embedding):
        keys = concat.positions(keys, embedding)
      rows = layer(keys.flat_values)
      # Most batches have one key per slot, whose rows need no pooling.
      return tf.cond(tf.reduce_all(tf.equal(keys.row_lengths(), 1)), lambda: rows,
                     lambda: _pooled(rows, keys, embedding.combiner))

    return lookup

  def _build(self, name):
    has_gpu = rank_jobs.has_gpu(self._session)
    has_float16 = self._params.use_mixed_precision and has_gpu
    if self._params.use_mixed_precision and not has_gpu:
      rank_jobs.warn_once("float16_inference", self._WHERE + ": use_mixed_precision: layers "
                          "run in float32, since float16 needs a GPU in TensorFlow")
    with self._session.graph.as_default():
      self._graph = graphs.Graph(
          self._model, [self._lookup(name, e) for e in self._model.embeddings],
          has_float16, has_gpu)
      self._session.run(tf.global_variables_initializer())
      for variable, value in model_files.dense_values(
          self._graph.parameters, self._params.dense_model_file,
          self._params.non_trainable_params_file):
        variable.load(value, self._session)
      self._predict = self._session.make_callable(
          self._graph.predictions, feed_list=self._graph.feeds)

  # Batches.

  def _run(self, labels, dense, inputs):
    """Returns the predictions of a batch; inputs: a data Keys per embedding."""
    concat.check(self._model.embeddings, inputs)
    feeds = [labels, dense]
    for (keys, splits), embedding in zip(inputs, self._model.embeddings):
      _, numbered = self._table_of(embedding)
      feeds += [keys if numbered is None else numbered.of_batch(keys, splits), splits]
    found = self._predict(*feeds)
    self._last = feeds
    return found

  def _reader(self, method, source, data_reader_type, check_type, slot_size_array):
    where = "%s.%s" % (self._WHERE, method)
    kind = enums.check(where, "data_reader_type", data_reader_type, enums.DataReaderType_t)
    check = enums.check(where, "check_type", check_type, enums.Check_t)
    if not isinstance(source, str) or not source:
      raise ValueError("%s: source: expected a path, got %r" % (where, source))
    data = {"format": "Raw" if kind == "RawAsync" else kind, "source": source}
    if kind == "Norm":
      data["check"] = "Sum" if check == "Sum" else "None"
    if slot_size_array:
      data["slot_size_array"] = list(slot_size_array)
    if data["format"] == "Raw":
      data.update(self._samples_of(source))
    parsed = _parsed(self._clauses, data, where).data
    layouts = [batches.InputLayout(e.bottom.first_slot, e.bottom.slot_num, False)
               for e in self._model.embeddings]
    return sources.opener(
        parsed, "I64" if self._params.i64_input_key else "I32", self._params.max_batchsize,
        True, layouts, 0, 1)(source)

  def _samples_of(self, source):
    """Returns a Raw file's number of samples, as keys of the data's clause."""
    data = self._model.data
    row = 4 * (data.label_dim + data.dense_dim + sum(fixed_length.counts_of(data)))
    return {"num_samples": max(1, os.path.getsize(source) // row)}

  def _predicted(self, method, num_batches, *source):
    """Yields (labels, predictions) of batches."""
    if isinstance(num_batches, bool) or not isinstance(
        num_batches, numbers.Integral) or num_batches < 1:
      raise ValueError("%s.%s: num_batches: expected an integer of at least 1, got %r" %
                       (self._WHERE, method, num_batches))
    reader = self._reader(method, *source)
    try:
      for _ in range(num_batches):
        batch = reader.next()
        labels = batch.labels
        predictions = self._run(labels, batch.dense, batch.inputs)
        if self._model.label_columns is not None:
          labels = labels[:, self._model.label_columns]
        yield labels, predictions
    finally:
      reader.close()

  def predict(self, num_batches, source, data_reader_type, check_type, slot_size_array=()):
    """Predicts the first samples of data, which starts again at its end.

    Args:
      num_batches: int, batches of max_batchsize samples.
      source: path of a file list (Norm, Parquet) or file (Raw).
      data_reader_type: member of DataReaderType_t.
      check_type: member of Check_t; only Norm files have checksums.
      slot_size_array: list of the number of keys per slot, of Parquet and Raw; empty:
        that of the model's JSON, if it has one.

    Returns:
      float32 [num_batches * max_batchsize, labels]: probabilities, in the order of the
      losses.

    Raises:
      ValueError, TypeError: an argument is invalid.
      ConfigError: slot_size_array does not fit the model.
      DataError: the data cannot be read.
    """
    return np.concatenate([p for _, p in self._predicted(
        "predict", num_batches, source, data_reader_type, check_type, slot_size_array)])

  def evaluate(self, num_batches, source, data_reader_type, check_type, slot_size_array=()):
    """Returns the AUC of `predict`; with several labels, the mean of their AUCs.

    Arguments and errors are those of `predict`.
    """
    found = metrics.Accumulator()
    for labels, predictions in self._predicted(
        "evaluate", num_batches, source, data_reader_type, check_type, slot_size_array):
      found.add(labels, predictions, 0.0)
    labels, predictions, _ = found.arrays()
    return metrics.mean_over_labels(metrics.auc, labels, predictions)

  def check_out_tensor(self, tensor_name, tensor_type=enums.Tensor_t.Evaluate):
    """Returns a tensor of the last batch, float32; the logit of a loss is its probability.

    Args:
      tensor_name: string.
      tensor_type: Tensor_t.Evaluate.

    Raises:
      ValueError: there is no such tensor, or tensor_type is Train.
      RuntimeError: nothing has been predicted.
    """
    where = self._WHERE + ".check_out_tensor"
    if enums.check(where, "tensor_type", tensor_type, enums.Tensor_t) != "Evaluate":
      raise ValueError("%s: tensor_type: expected Tensor_t.Evaluate, got %s" %
                       (where, tensor_type))
    if tensor_name not in self._graph.tensors:
      raise ValueError("%s: there is no tensor '%s'; tensors are %s" %
                       (where, tensor_name, ", ".join(sorted(self._graph.tensors))))
    if self._last is None:
      raise RuntimeError("%s: nothing has been predicted" % where)
    return self._session.run(self._graph.tensors[tensor_name],
                             dict(zip(self._graph.feeds, self._last))).astype(np.float32)

  def close(self):
    """Removes the model from the parameter server, and closes TensorFlow's session."""
    self._finalizer()


class InferenceSession(InferenceModel):
  """An InferenceModel that also predicts arrays, as in versions 3.1 to 3.4."""

  _WHERE = "hugectr.inference.InferenceSession"

  def predict(self, *args, **kwargs):
    """Predicts the samples of arrays, or of data.

    `predict(dense, keys, row_ptrs)`:

      dense: list of batch * dense_dim numbers, or an array of that size.
      keys: list of all keys: those of the first embedding's slots, sample by sample, then
        those of the second one's, and so on.
      row_ptrs: list; for each embedding in turn batch * slot_num + 1 numbers from 0, the
        position of the first key of each slot, and the number of keys.

      Returns a list of batch * labels probabilities, sample by sample. Keys are as in the
      model's files: those of Parquet and Raw data include the sizes of previous slots.

    `predict(num_batches, source, data_reader_type, check_type, slot_size_array=[])`:
      as InferenceModel's.

    Raises:
      ValueError: lengths do not fit the model, or the batch is larger than
        max_batchsize.
      TypeError: arguments are of neither form.
      Others: as InferenceModel's.
    """
    if {"num_batches", "source"} & set(kwargs) or (
        args and isinstance(args[0], numbers.Integral) and not isinstance(args[0], bool)):
      return super(InferenceSession, self).predict(*args, **kwargs)
    return self._of_arrays(*args, **kwargs)

  def _of_arrays(self, dense, keys, row_ptrs):
    where = self._WHERE + ".predict"
    data, embeddings = self._model.data, self._model.embeddings
    dense = np.asarray(dense, np.float32).reshape([-1])
    keys = np.asarray(keys).reshape([-1])
    splits = np.asarray(row_ptrs, np.int64).reshape([-1])
    if keys.size and keys.dtype.kind not in "iu":
      raise ValueError("%s: keys: expected integers, got %s" % (where, keys.dtype))
    keys = keys.astype(np.int64)
    per_sample = sum(e.bottom.slot_num for e in embeddings)
    size = ((len(splits) - len(embeddings)) // per_sample if per_sample else
            len(dense) // max(1, data.dense_dim))
    for what, expected, got in (
        ("dense", size * data.dense_dim, len(dense)),
        ("row_ptrs", size * per_sample + len(embeddings), len(splits))):
      if expected != got or size < 1:
        raise ValueError("%s: %s: expected %d numbers for %d samples (dense_dim %d, %s), got "
                         "%d" % (where, what, expected, size, data.dense_dim, ", ".join(
                             "%d slots of '%s'" % (e.bottom.slot_num, e.name)
                             for e in embeddings), got))
    if size > self._params.max_batchsize:
      raise ValueError("%s: expected at most max_batchsize, %d samples, got %d" %
                       (where, self._params.max_batchsize, size))
    inputs, at, first = [], 0, 0
    for embedding in embeddings:
      end = at + size * embedding.bottom.slot_num + 1
      mine, at = splits[at:end], end
      if mine[0] != 0 or (np.diff(mine) < 0).any() or first + mine[-1] > len(keys):
        raise ValueError("%s: row_ptrs of '%s' must rise from 0 to at most %d keys, got %d to "
                         "%d" % (where, embedding.name, len(keys) - first, mine[0],
                                 mine[-1]))
      inputs.append(batches.Keys(keys[first:first + mine[-1]], mine))
      first += mine[-1]
    if first != len(keys):
      raise ValueError("%s: keys: expected %d, the number of row_ptrs, got %d" %
                       (where, first, len(keys)))
    labels = np.zeros([size, data.label_dim], np.float32)
    return self._run(labels, dense.reshape([size, data.dense_dim]), inputs).ravel().tolist()


def CreateInferenceSession(  # pylint: disable=invalid-name
    model_config_path, inference_params):
  """Returns an InferenceSession; arguments and errors are those of InferenceModel."""
  return InferenceSession(model_config_path, inference_params)
