# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`hugectr.Session`: trains the model of a JSON configuration, batch by batch."""

import numbers
import os

import numpy as np
import tensorflow.compat.v1 as tf

from hugectr.config import model as models
from hugectr.data import sources
from hugectr.training import graph as graphs
from hugectr.training import handles
from hugectr.training import inference_tables
from hugectr.training import metrics
from hugectr.training import model_files
from hugectr.training import oversubscriber
from hugectr.training import ranks as rank_jobs
from hugectr.training import solver as solvers
from hugectr.training import tables
from hugectr.training import trained_keys


def _share(loss, batch):
  """Returns this rank's share of the mean loss over all ranks' samples."""
  return float(loss) * batch.size / batch.global_size if batch.size else 0.0


def _check_both(method, predictions_path, labels_path):
  """Raises ValueError if only one of the two export paths is given."""
  if bool(predictions_path) != bool(labels_path):
    raise ValueError("hugectr.Session.%s: give both export_predictions_out_file and "
                     "export_labels_out_file, or neither" % method)


class Session(object):
  """Trains and evaluates one model.

  It has its own TensorFlow graph and session. Not thread-safe. Over several ranks,
  every rank must make the same calls in the same order.

  Example:

    solver = hugectr.solver_parser_helper(batchsize=16384, repeat_dataset=True)
    session = hugectr.Session(solver, "model.json")
    session.start_data_reading()
    for _ in range(1000):
      session.train()
    print(session.get_current_loss(), session.evaluation())
  """

  def __init__(self, solver_config, config_file, use_model_oversubscriber=False,
               temp_embedding_dir="", beyond=None):
    """Builds and initializes the model, and loads the files that the solver names.

    Args:
      solver_config: SolverParser, from `solver_parser_helper`.
      config_file: path of a JSON configuration. Its solver clause is ignored. Or a
        config's Model.
      use_model_oversubscriber: bool. If True, memory holds the
        max_vocabulary_size_per_gpu most used rows of an embedding, and files on an SSD
        hold the others. If the solver's oversubscription_storage is "HBM_DRAM", GPU
        memory holds the most used rows, and host memory the others.
      temp_embedding_dir: path of the folder for those files. This argument and the
        previous one may be given here or to the solver.
      beyond: None; or a dict from embeddings' names to tables.BeyondMemory, instead of
        the two previous arguments. The rows of other embeddings are in one memory.

    Raises:
      ConfigError: the file is not a configuration that can be trained.
      TypeError: solver_config is of another type.
      RuntimeError: the number of devices in vvgpu differs from the number of processes.
      NotImplementedError: this version does not support a part of the configuration.
      OSError, ValueError: initial files cannot be read.
    """
    if not isinstance(solver_config, solvers.SolverParser):
      raise TypeError("hugectr.Session: solver_config: expected what solver_parser_helper "
                      "returns, got %r" % (solver_config,))
    if use_model_oversubscriber or solver_config.use_model_oversubscriber:
      beyond = tables.BeyondMemory(
          solver_config.oversubscription_storage,
          temp_embedding_dir or solver_config.temp_embedding_dir or ".")
    self._solver = solver_config
    self._model = (config_file if isinstance(config_file, models.Model) else
                   models.read(config_file)[0])
    self._metrics = [metrics.parse(m) for m in solver_config.eval_metrics]
    self._ranks = rank_jobs.start(solver_config.vvgpu)
    self._loss = float("nan")
    self._last_batch_size = 0
    self._dropped = 0
    self._last = {}  # feeds of the last batches, by is_training
    self._steps = {}  # training steps by what is frozen
    self._frozen = frozenset()  # names of embeddings
    self._trained_keys = None  # TrainedKeys
    self._evaluated = None  # (labels, predictions) of the last evaluation batch
    self._rate = None  # the rate set last
    self._accumulated = metrics.Accumulator()
    self._make_graph(beyond)
    self._stock_saver = None
    self._oversubscriber = None
    if beyond is not None:
      self._oversubscriber = oversubscriber.ModelOversubscriber(
          self._graph.embeddings, self._session, solver_config.i64_input_key, beyond)
    self._make_readers()
    try:
      model_files.load_what_a_solver_names(self._files, solver_config)
    except Exception:
      self.close()
      raise

  def _make_graph(self, beyond):
    with tf.Graph().as_default() as graph:
      tf.set_random_seed(self._solver.seed)
      options = tf.ConfigProto(allow_soft_placement=True)
      options.gpu_options.allow_growth = True
      self._session = tf.Session(graph=graph, config=options)
      try:
        self._build(beyond)
      except Exception:
        self._session.close()
        raise

  def _build(self, beyond):
    has_gpu = rank_jobs.log_devices(self._session, self._solver)
    scaler = self._solver.scaler if self._solver.use_mixed_precision and has_gpu else None
    self._graph = graphs.Graph(self._model, self._solver.batchsize, self._ranks, beyond,
                               scaler, "/gpu:0" if has_gpu else None)
    self._session.run(tf.global_variables_initializer())
    self._start_alike()
    self._files = model_files.ModelFiles(self._graph, self._session, self._ranks,
                                         self._solver.i64_input_key)
    self._train = self._session.make_callable(
        list(self._graph.train), feed_list=self._graph.feeds)
    self._steps[frozenset()] = self._train
    self._evaluate = self._session.make_callable(
        list(self._graph.evaluate), feed_list=self._graph.feeds)
    self._set_rate = self._session.make_callable(
        self._graph.set_rate, feed_list=[self._graph.new_rate])

  def _start_alike(self):
    """Copies rank 0's dense parameters to all ranks."""
    if self._ranks.count > 1:
      held = self._graph.parameters
      running = [v for r in held.running for v in (r.mean, r.variance)]
      self._session.run(self._ranks.hvd.broadcast_variables(held.trained + running, 0))

  def _make_readers(self):
    data = self._model.data
    key_type = "I64" if self._solver.i64_input_key else "I32"

    def opener(batch_size, shuffle_seed, for_training):
      return sources.opener(data, key_type, batch_size, self._solver.repeat_dataset,
                            self._graph.layouts, self._ranks.rank, self._ranks.count,
                            shuffle_seed, for_training)

    self._train_reader = handles.DataReader(
        opener(self._solver.batchsize, self._solver.seed, True), data.source, "training")
    self._eval_reader = handles.DataReader(
        opener(self._solver.batchsize_eval, None, False), data.eval_source, "evaluation")

  @property
  def rank(self):
    """int, rank of this process; 0 if it is the only one."""
    return self._ranks.rank

  @property
  def ranks(self):
    """int, number of processes."""
    return self._ranks.count

  @property
  def shared_loss(self):
    """float, this rank's share of the last training batch's loss; NaN before the first."""
    return self._loss

  @property
  def dropped(self):
    """int, samples of an incomplete batch at which the last `train` returned False; or 0."""
    return self._dropped

  @property
  def files(self):
    """ModelFiles."""
    return self._files

  @property
  def last_batch_size(self):
    """int, samples of the last training batch over all ranks; initially 0."""
    return self._last_batch_size

  def start_data_reading(self):
    """Starts the threads that read training and evaluation data.

    Raises:
      DataError: files are missing or invalid. Then the previous data stays in use.
    """
    handles.restart_all([r for r in (self._train_reader, self._eval_reader)
                         if r is self._train_reader or r.has_source])

  def get_data_reader_train(self):
    """Returns the handle of the training data; see `DataReader`."""
    return self._train_reader

  def get_data_reader_eval(self):
    """Returns the handle of the evaluation data; see `DataReader`."""
    return self._eval_reader

  def train(self):
    """Trains on the next batch.

    Returns:
      True; False at the end of the data, if the solver does not repeat it.

    Raises:
      RuntimeError: reading has not started.
      DataError: the data cannot be read. The model is unchanged.
    """
    if not self._train_reader.is_started:
      raise RuntimeError("hugectr.Session.train: no data is being read: call "
                         "start_data_reading(), or set_source() of "
                         "get_data_reader_train()")
    batch = self._train_reader.next()
    self._dropped = 0
    if batch is None:
      return False
    if self._solver.drop_incomplete_batch and batch.global_size < self._solver.batchsize:
      self._dropped = batch.global_size
      return False
    feeds = self._graph.feeds_of(batch)
    self._loss = _share(self._train(*feeds)[0], batch)
    self._last[True] = feeds
    if self._trained_keys is not None:
      self._trained_keys.add(batch.inputs, self._frozen)
    self._last_batch_size = batch.global_size
    return True

  def eval(self):
    """Evaluates the next batch for `get_eval_metrics`.

    Returns:
      True; False at the end of the data, if the solver does not repeat it. Returns True
        immediately if the configuration names no evaluation data.

    Raises:
      DataError: the data cannot be read.
    """
    if not self._eval_reader.has_source:
      return True
    if not self._eval_reader.is_started:
      self._eval_reader.restart()
    batch = self._eval_reader.next()
    if batch is None:
      return False
    feeds = self._graph.feeds_of(batch)
    loss, predictions = self._evaluate(*feeds)
    self._last[False] = feeds
    labels = batch.labels
    if self._model.label_columns is not None:
      labels = labels[:, self._model.label_columns]
    self._evaluated = labels, predictions
    self._accumulated.add(labels, predictions, _share(loss, batch))
    return True

  def _take_evaluated(self):
    """Returns (labels, predictions, losses) of all ranks' batches, and clears them."""
    held, self._accumulated = self._accumulated, metrics.Accumulator()
    labels, predictions, losses = held.arrays()
    labels, predictions = rank_jobs.gathered(self._ranks, [labels, predictions])
    return labels, predictions, rank_jobs.summed(self._ranks, losses)

  def _export(self, mode, predictions_path, predictions, labels_path, labels):
    """Writes predictions and labels as text, one sample per line; only rank 0 writes."""
    if self._ranks.rank == 0:
      for path, rows in ((predictions_path, predictions), (labels_path, labels)):
        folder = os.path.dirname(path)
        if folder:
          os.makedirs(folder, exist_ok=True)
        with open(path, mode) as f:
          np.savetxt(f, rows, fmt="%.9g")

  def get_eval_metrics(self, export_predictions_out_file="", export_labels_out_file=""):
    """Returns [(name, value)] for all batches evaluated since the last call.

    AUC is exact over all samples of all ranks. AverageLoss is the mean of the batches'
    mean losses.

    Args:
      export_predictions_out_file: path of a file to which rank 0 writes the
        predictions, one sample per line; an existing file is replaced. "": none.
      export_labels_out_file: the same for the labels. Give both or neither.

    Returns:
      A list; empty if nothing was evaluated, and then no file is written.

    Raises:
      ValueError: only one of the two files is given.
      OSError: a file cannot be written.
    """
    _check_both("get_eval_metrics", export_predictions_out_file, export_labels_out_file)
    if not self._accumulated.batches:
      return []
    labels, predictions, losses = self._take_evaluated()
    if export_labels_out_file:
      self._export("wb", export_predictions_out_file, predictions, export_labels_out_file,
                   labels)
    return metrics.values(self._metrics, labels, predictions, losses)

  def evaluated_by_label(self):
    """Like `get_eval_metrics`, but returns [(name, value, list of a value per label)].

    AverageLoss has one value.
    """
    if not self._accumulated.batches:
      return []
    labels, predictions, losses = self._take_evaluated()
    return [(name, value, [value] if name == "AverageLoss" else metrics.of_labels(
        name, labels, predictions)) for name, value in metrics.values(
            self._metrics, labels, predictions, losses)]

  def last_predictions(self):
    """Returns (labels, predictions) of all ranks' last evaluation batch.

    Raises:
      RuntimeError: no batch has been evaluated.
    """
    if self._evaluated is None:
      raise RuntimeError("hugectr: no batch has been evaluated")
    return rank_jobs.gathered(self._ranks, list(self._evaluated))

  def tensor(self, name, is_training):
    """Returns a tensor for the last training or evaluation batch, over all ranks.

    It is computed again, with the current parameters.

    Args:
      name: string, name in the configuration.
      is_training: bool, selects the tower and the batch.

    Raises:
      ValueError: there is no such tensor.
      RuntimeError: there has been no batch.
    """
    tensors = self._graph.train_tensors if is_training else self._graph.evaluate_tensors
    if name not in tensors:
      raise ValueError("hugectr: there is no tensor '%s'; tensors are %s" %
                       (name, ", ".join(sorted(tensors))))
    if is_training not in self._last:
      raise RuntimeError("hugectr: no batch has been %s" %
                         ("trained" if is_training else "evaluated"))
    found = self._session.run(tensors[name],
                              dict(zip(self._graph.feeds, self._last[is_training])))
    return rank_jobs.gathered(self._ranks, [found.astype(np.float32)])[0]

  def freeze(self, dense, embeddings):
    """Sets what training leaves as it is.

    Args:
      dense: bool, dense parameters. BatchNorm's running values change in any case.
      embeddings: set of names of embedding layers.
    """
    key = frozenset(embeddings) | ({None} if dense else frozenset())
    if key not in self._steps:
      # TensorFlow 2.x has hashes of variables in a graph only.
      with self._session.graph.as_default():
        frozen = set(self._graph.parameters.trained if dense else ())
        for layer in self._graph.embeddings:
          if layer.embedding.name in embeddings:
            frozen.update(layer.tables)
        self._steps[key] = self._session.make_callable(
            [self._graph.train[0], self._graph.updated(frozen)], feed_list=self._graph.feeds)
    self._files.freeze(embeddings)
    self._train = self._steps[key]
    self._frozen = frozenset(embeddings)

  def collect_trained_rows(self):
    """Has training collect its keys, for `trained_rows`."""
    self._trained_keys = trained_keys.TrainedKeys(self._graph.lookups)

  def trained_rows(self, forgets=True):
    """Returns [(keys, rows)] of what has been trained since the last call that forgets.

    All ranks must call it, and all get the rows of all ranks.

    Args:
      forgets: bool. False: the next call returns these rows again.

    Returns:
      A list with keys, int64 `[N]` in ascending order, and rows, float32 `[N, floats]`,
      for each embedding; keys are ordered within each slot's table.

    Raises:
      RuntimeError: `collect_trained_rows` has not been called.
    """
    if self._trained_keys is None:
      raise RuntimeError("hugectr.Session.trained_rows: trained rows are not collected")
    found = [self._files.rows_of_keys(layer, keys) for layer, keys in zip(
        self._graph.embeddings, self._trained_keys.distinct())]
    if forgets:
      self.forget_trained_rows()
    return found

  def forget_trained_rows(self):
    """Makes `trained_rows` return only what is trained from now on."""
    self._trained_keys.clear()

  def evaluation(self, export_predictions_out_file="", export_labels_out_file=""):
    """Evaluates one batch; at the end of the data, the first batch.

    Batches collected by `eval` are ignored and cleared.

    Args:
      export_predictions_out_file: path of a file to which rank 0 appends the batch's
        predictions, one sample per line; "": none.
      export_labels_out_file: the same for the labels. Give both or neither.

    Returns:
      [(name, value)], as in `get_eval_metrics`; empty if there is no evaluation data.

    Raises:
      ValueError: only one of the two files is given, or the evaluation data has no
        samples.
      DataError: the data cannot be read.
    """
    _check_both("evaluation", export_predictions_out_file, export_labels_out_file)
    if not self._eval_reader.has_source:
      return []
    self._accumulated = metrics.Accumulator()
    if not self.eval():
      self._eval_reader.restart()
      if not self.eval():
        raise ValueError("hugectr.Session.evaluation: the evaluation data has no samples")
    labels, predictions, losses = self._take_evaluated()
    if export_labels_out_file:
      self._export("ab", export_predictions_out_file, predictions, export_labels_out_file,
                   labels)
    return metrics.values(self._metrics, labels, predictions, losses)

  def get_current_loss(self):
    """Returns the mean loss of the last training batch over all ranks; NaN before the first."""
    return float(rank_jobs.summed(self._ranks, np.array([self._loss]))[0])

  def set_learning_rate(self, lr):
    """Sets the learning rate of all optimizers.

    Raises:
      ValueError: lr is not a number of at least 0.
    """
    if isinstance(lr, bool) or not isinstance(lr, numbers.Real) or not lr >= 0:
      raise ValueError("hugectr.Session.set_learning_rate: expected a number of at least "
                       "0, got %r" % (lr,))
    # A schedule gives the same rate in most steps.
    if lr != self._rate:
      self._set_rate(lr)
      self._rate = lr

  def get_params_num(self):
    """Returns the number of dense parameters plus those in rows on this rank."""
    dense = sum(v.shape.num_elements() for v in self._graph.parameters.trained)
    return dense + sum(rows * layer.embedding.vec_size
                       for layer, rows in self._rows())

  def _rows(self):
    """Returns [(tables.Layer, number of rows on this rank)]."""
    return [(layer, sum(int(self._session.run(t)[0]) for t in layer.tables))
            for layer in self._graph.embeddings]

  def check_overflow(self):
    """Logs a warning for tables with more rows than max_vocabulary_size_per_gpu.

    Such a table has grown without losing rows.
    """
    for layer, rows in self._rows():
      expected = layer.embedding.rows_per_device
      if expected is not None and rows > expected:
        tf.logging.warning(
            "hugectr.Session: embedding '%s' has %d rows on this rank, "
            "max_vocabulary_size_per_gpu is %d; it has grown" %
            (layer.embedding.name, rows, expected))

  def copy_weights_for_evaluation(self):
    """No-op, since evaluation reads the parameters that training writes."""

  def get_model_oversubscriber(self):
    """Returns the ModelOversubscriber.

    Raises:
      RuntimeError: the session was created without one.
    """
    if self._oversubscriber is None:
      raise RuntimeError("hugectr.Session.get_model_oversubscriber: the session was made "
                         "with use_model_oversubscriber=False")
    return self._oversubscriber

  def download_params_to_files(self, prefix, iter,  # pylint: disable=redefined-builtin
                               sparse_format=model_files.FLAT):
    """Writes model files.

    prefix: string, prefix of the file names.

    Raises:
      ValueError: iter or sparse_format is invalid, or a key does not fit input_key_type
        I32.
      OSError: a file cannot be written.
    """
    if isinstance(iter, bool) or not isinstance(iter, numbers.Integral) or iter < 1:
      raise ValueError("hugectr.Session.download_params_to_files: iter: expected an integer "
                       "of at least 1, got %r" % (iter,))
    if sparse_format not in (model_files.FLAT, model_files.FOLDER):
      raise ValueError("hugectr.Session.download_params_to_files: sparse_format: expected "
                       "'%s' or '%s', got %r" %
                       (model_files.FLAT, model_files.FOLDER, sparse_format))
    self._files.write(prefix, int(iter), sparse_format)

  def init_params(self, model_file):
    """Loads dense parameters from a file.

    Args:
      model_file: path of a `<prefix>_dense_<iter>.model`.

    Raises:
      ValueError: it is not of this model. Then nothing has changed.
      OSError: it cannot be read.
    """
    self._files.read_dense(model_file)

  def _saver(self):
    if self._stock_saver is None:
      with self._session.graph.as_default():
        self._stock_saver = tf.train.Saver(max_to_keep=None)
    return self._stock_saver

  def save_checkpoint(self, prefix, step):
    """Writes a TensorFlow checkpoint of all parameters, states and counters.

    Args:
      prefix: string, prefix of the file names.
      step: int of at least 0, number in the file names.

    Returns:
      The checkpoint's path.
    """
    self._files.count_frozen_steps()
    # Outside of a graph, TensorFlow 2.x would save eager variables.
    with self._session.graph.as_default():
      return self._saver().save(self._session, prefix, global_step=step)

  def restore_checkpoint(self, path):
    """Loads a checkpoint of `save_checkpoint`, written by any number of ranks.

    Raises:
      ValueError: there is no such checkpoint.
      tf.errors.OpError: it is of another model.
    """
    self._rate = None  # the checkpoint may have another rate
    with self._session.graph.as_default():
      self._saver().restore(self._session, path)
    self._files.forget_frozen_steps()

  def export_saved_model(self, export_dir):
    """Writes a SavedModel of the evaluation graph; single process only.

    Inputs of its signature are `dense` and, for each sparse input, `<top>_keys` and
    `<top>_splits`; the output is `predictions`.

    Args:
      export_dir: path of a folder that does not exist yet.

    Raises:
      RuntimeError: there are several ranks. Restore their checkpoint in one process
        first.
      AssertionError: the folder exists.
    """
    if self._ranks.count > 1:
      raise RuntimeError("hugectr.Session.export_saved_model: there are %d ranks, each with "
                         "a part of the tables: save_checkpoint, and restore it in one "
                         "process" % self._ranks.count)
    inputs = {"dense": self._graph.feeds[1]}
    for layer in self._graph.lookups:
      inputs[layer.embedding.bottom.top + "_keys"] = layer.keys
      inputs[layer.embedding.bottom.top + "_splits"] = layer.splits
    with self._session.graph.as_default():
      tf.saved_model.simple_save(
          self._session, export_dir, inputs,
          {"predictions": self._graph.evaluate[1]})

  def export_inference_tables(self, folder, model="model", by_slot=False,
                              max_batch_size=None):
    """Writes the rows of all tables, and the JSON by which a parameter server loads them.

    `<folder>/<table>` gets the files `key` (int64) and `emb_vector` (float32);
    `<folder>/<model>.json` has the absolute paths of those folders. Keys are those of
    the readers: with `slot_size_array` they include the sizes of the previous slots.
    Rank 0 writes the rows of all ranks.

    Args:
      folder: path; created if necessary. Existing tables of these names are replaced.
      model: string of letters, digits, _ and -, at most 120 characters.
      by_slot: bool. False: one table per embedding layer, with the layer's name. True:
        layers with a table per slot give one table per slot, `<layer>_slot_<k>`.
      max_batch_size: int, largest number of samples per request; None: batchsize_eval.

    Returns:
      The path of the JSON file.

    Raises:
      ValueError: a table has no rows yet, two tables would have one name, a key is in
        several slots and by_slot is False, or an argument is invalid.
      OSError: a file cannot be written.
    """
    inference_tables.check_model_name(model)
    batch_size = self._solver.batchsize_eval if max_batch_size is None else max_batch_size
    if isinstance(batch_size, bool) or not isinstance(batch_size, numbers.Integral) or (
        batch_size < 1):
      raise ValueError("hugectr.Session.export_inference_tables: max_batch_size: expected an "
                       "integer of at least 1, got %r" % (max_batch_size,))
    found = inference_tables.tables(
        [(layer.embedding._replace(bottom=layer.embedding.bottom._replace(
            max_keys=models.most_keys(self._model.embeddings, layer.embedding.name))),
          self._files.rows_of(layer)[0]) for layer in self._graph.embeddings], by_slot)
    if self._ranks.rank == 0:
      return inference_tables.write(folder, model, found, int(batch_size))
    return os.path.join(os.path.abspath(folder), model + ".json")

  def close(self):
    """Stops the readers' threads and closes TensorFlow's session."""
    self._train_reader.close()
    self._eval_reader.close()
    self._session.close()

  def __enter__(self):
    return self

  def __exit__(self, *unused_error):
    self.close()
