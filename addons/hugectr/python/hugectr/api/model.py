# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`hugectr.Model`: a model that a script describes and trains."""

import json
import os

from hugectr import version
from hugectr.api import blueprint
from hugectr.api import cache
from hugectr.api import enums
from hugectr.api import fitting
from hugectr.api import optimizer as optimizers
from hugectr.api import printing
from hugectr.api import reader as readers
from hugectr.api import solver as solvers
from hugectr.api import summary as summaries
from hugectr.config import errors
from hugectr.config import model as models
from hugectr.training import handles
from hugectr.training import learning_rate
from hugectr.training import model_files
from hugectr.training import ranks as rank_jobs
from hugectr.training import session as sessions
from hugectr.training import sparse_files

_WHERE = "hugectr.Model"


def _check_keysets(where, sources, keysets):
  if len(sources) != len(keysets):
    raise ValueError("%s: an embedding training cache needs a keyset per source: expected %d "
                     "keysets, got %d" % (where, len(sources), len(keysets)))


class Model(object):
  """A model: layers are added, then it is compiled and trained.

  Not thread-safe. Over several ranks, every rank must make the same calls in the same
  order. Errors in what is added raise ConfigError, in data DataError.

  Example:

    model = hugectr.Model(solver, reader, optimizer)
    model.add(hugectr.Input(...))
    model.add(hugectr.SparseEmbedding(...))
    model.add(hugectr.DenseLayer(...))
    model.compile()
    model.fit(max_iter=2000)
  """

  def __init__(self, solver, reader_params, opt_params, etc_params=None):
    """Starts a model without layers.

    Args:
      solver: result of CreateSolver.
      reader_params: DataReaderParams.
      opt_params: result of CreateOptimizer.
      etc_params: result of CreateETC or CreateMOS; None: each table is in one memory.

    Raises:
      TypeError: an argument is of another type.
      ConfigError: opt_params is an optimizer for rows only.
      ValueError: etc_params is given, and there is not one keyset per source; or it is
        not given, and there are several sources.
      RuntimeError: the number of processes is not that of devices in vvgpu; or etc_params
        is given, and the solver repeats the data.
    """
    for name, value, kind in (("solver", solver, solvers.Solver),
                              ("reader_params", reader_params, readers.DataReaderParams),
                              ("opt_params", opt_params, optimizers.OptParams)):
      if not isinstance(value, kind):
        raise TypeError("%s: %s: expected a %s, got %r" % (_WHERE, name, kind.__name__, value))
    if opt_params.type in models.OF_ROWS:
      raise errors.ConfigError(
          "%s: opt_params: %s updates rows of embeddings only, expected another optimizer for "
          "dense parameters; give %s to EmbeddingTableConfig or SparseEmbedding" %
          (_WHERE, opt_params.type, opt_params.type))
    if etc_params is not None and not isinstance(etc_params, cache.EtcParams):
      raise TypeError("%s: etc_params: expected what CreateETC returns, got %r" %
                      (_WHERE, etc_params))
    if etc_params is not None:
      if solver.repeat_dataset:
        raise RuntimeError("%s: etc_params: the solver's repeat_dataset: expected False" % _WHERE)
      _check_keysets(_WHERE, reader_params.source, reader_params.keyset)
    elif len(reader_params.source) > 1:
      raise ValueError(
          "%s: reader_params: expected one source, got %d: %s; several need an embedding "
          "training cache, hugectr.CreateETC. Without one, give the first source, and the "
          "others to set_source" % (_WHERE, len(reader_params.source),
                                    ", ".join(reader_params.source)))
    elif reader_params.keyset:
      printing.once("hugectr.DataReaderParams: keyset has no effect without an embedding "
                    "training cache, hugectr.CreateETC")
    self._etc = etc_params
    self._solver = solver
    self._reader = reader_params
    self._params = opt_params
    self._vvgpu = rank_jobs.one_replica(solver.vvgpu)
    self._ranks = rank_jobs.start(self._vvgpu)
    self._seed = solver.seed or self._drawn_seed()
    self._blueprint = blueprint.Blueprint(solver, reader_params, opt_params,
                                          self._ranks.count)
    self._loss_weights = {}
    self._session = None
    self._schedule = None
    self._frozen = set()  # names of embeddings; None: dense parameters
    printing.banner("Model Init", self._rank)
    self._print("HugeCTR Version: %s" % version.version())
    self._print("Global seed is %d" % self._seed)
    if len(solver.vvgpu[0]) > 1 and self._ranks.count == 1:
      printing.once("%s: vvgpu=%r in one process: one device trains on the whole batch" %
                    (_WHERE, solver.vvgpu))

  @property
  def _rank(self):
    return self._ranks.rank

  def _print(self, text):
    printing.line(text, rank=self._rank)

  def _drawn_seed(self):
    """Returns a random seed, the same on all ranks."""
    drawn = 1 + int.from_bytes(os.urandom(4), "little") // 2
    return rank_jobs.of_rank_0(self._ranks, drawn)

  def add(self, part):
    """Adds an Input, a SparseEmbedding, an EmbeddingCollectionConfig, or a DenseLayer.

    Raises:
      TypeError: it is something else.
      ConfigError: it does not fit what was added before: an unknown bottom, a top that
        exists, a wrong shape. Then nothing has changed.
      RuntimeError: the model is compiled.
    """
    if self._session is not None:
      raise RuntimeError("%s.add: the model is compiled" % _WHERE)
    self._blueprint.add(part)

  def _configuration(self):
    found = self._blueprint.configuration(self._seed)
    weights = self._loss_weights or self._blueprint.label_weights
    for clause in found["layers"]:
      if clause["type"].endswith("Loss"):
        weight = weights.get(clause["bottom"][1])
        if weight is not None:
          clause["loss_weight"] = weight
    return found

  def _set_loss_weights(self, names, weights):
    if names is None:
      if weights is not None:
        raise errors.ConfigError("%s.compile: loss_weights need loss_names, the labels that "
                                 "they belong to" % _WHERE)
      self._loss_weights = dict(self._blueprint.label_weights)
      return
    labels = [name for name, _ in self._blueprint.labels]
    weights = [1.] * len(names) if weights is None else list(weights)
    if len(weights) != len(names):
      raise errors.ConfigError("%s.compile: expected %d loss_weights, one per name, got %d" %
                               (_WHERE, len(names), len(weights)))
    for name in names:
      if name not in labels:
        raise errors.ConfigError("%s.compile: loss_names: there is no label '%s'; labels are "
                                 "%s" % (_WHERE, name, ", ".join(labels)))
    self._loss_weights = dict(self._blueprint.label_weights, **dict(zip(names, weights)))

  def compile(self, loss_names=None, loss_weights=None):
    """Builds and initializes the model; an embedding training cache loads its rows.

    Args:
      loss_names: list of names of labels.
      loss_weights: list of numbers, the weights of these labels' losses; None: 1. Other
        losses have the weight of Input's label_weights, or 1.

    Raises:
      ConfigError: the layers are no whole model, a name is no label, or the embedding
        training cache has not one path per embedding.
      RuntimeError: the model is compiled already.
      ValueError, OSError: rows of an embedding training cache cannot be loaded.
    """
    if self._session is not None:
      raise RuntimeError("%s.compile: the model is compiled already" % _WHERE)
    self._set_loss_weights(loss_names, loss_weights)
    printing.banner("Model Compile", self._rank)
    self._print("Graph analysis to resolve tensor dependency")
    configuration = self._configuration()
    for clause in configuration["layers"]:
      if clause["type"] == "Slice" and clause["top"][0] == "%s_slice0" % clause["bottom"]:
        self._print("Add Slice layer for tensor: %s, creating %d copies" %
                    (clause["bottom"], len(clause["top"])))
    model = models.parse(configuration, _WHERE + ".compile")
    parser = self._solver.parser(self._vvgpu, self._seed)
    self._session = self._started(parser, model)
    self._schedule = learning_rate.of_optimizer(model.optimizer)

  def _started(self, parser, model):
    """Returns the Session of a config's Model."""
    if self._etc is None:
      return sessions.Session(parser, model)
    names = [e.name for e in model.embeddings if e.table is None]
    self._etc.check(names)
    session = sessions.Session(
        parser, model, beyond=self._etc.beyond(names, self._rank, self._ranks.count))
    try:
      session.files.read_rows_of(self._etc.to_load(names))
    except Exception:
      session.close()
      raise
    session.collect_trained_rows()
    return session

  def _compiled(self, method):
    if self._session is None:
      raise RuntimeError("%s.%s: call compile() first" % (_WHERE, method))
    return self._session

  def summary(self):
    """Prints the tensors of a sample, and the layers with their shapes."""
    printing.banner("Model Summary", self._rank)
    table = summaries.text(self._blueprint.layers(),
                           self._solver.batchsize // self._ranks.count, _WHERE + ".summary")
    if self._rank == 0:
      print(table, flush=True)

  def graph_to_json(self, graph_config_file):
    """Writes the model as a JSON that `Session` and `construct_from_json` read.

    Raises:
      ConfigError: there is no Input.
      OSError: the file cannot be written.
    """
    text = json.dumps(self._configuration(), indent=2, sort_keys=True) + "\n"
    if self._rank == 0:
      sparse_files.write_bytes(graph_config_file, text.encode())
    self._print("Save the model graph to %s successfully" % graph_config_file)

  def construct_from_json(self, graph_config_file, include_dense_network=True):
    """Adds the layers of a JSON of `graph_to_json`, or of a training configuration.

    Args:
      graph_config_file: path.
      include_dense_network: bool. False: inputs and embeddings only; layers can be added.

    Raises:
      ConfigError: the file is no configuration, or layers have been added before.
      RuntimeError: the model is compiled.
    """
    if self._session is not None:
      raise RuntimeError("%s.construct_from_json: the model is compiled" % _WHERE)
    self._blueprint.take_file(graph_config_file, include_dense_network)
    self._print("Load the model graph from %s successfully" % graph_config_file)

  # Training.

  def fit(self, num_epochs=0, max_iter=2000, display=200, eval_interval=1000, snapshot=10000,
          snapshot_prefix=""):
    """Trains; prints losses and metrics, and writes model files.

    Iterations count from 1 in each call. The learning rate and the optimizers' states
    continue from the previous call.

    Args:
      num_epochs: int, passes over the training data, if the solver's repeat_dataset is
        False. With an embedding training cache at least 1; a pass reads each source
        after its keyset.
      max_iter: int, iterations, if it is True.
      display: int, iterations between two lines with the loss; 0: none.
      eval_interval: int, iterations between two evaluations; 0: none.
      snapshot: int, iterations between two sets of model files; 0: none. An embedding
        training cache has none.
      snapshot_prefix: string.

    Raises:
      ValueError: there is nothing to do.
      RuntimeError: the model is not compiled, or the loss is NaN.
      DataError: the data cannot be read.
    """
    session = self._compiled("fit")
    repeats = self._solver.repeat_dataset
    if self._etc is not None:
      num_epochs, snapshot = max(1, num_epochs), 0
    name, count = ("max_iter", max_iter) if repeats else ("num_epochs", num_epochs)
    if count <= 0:
      raise ValueError("%s.fit: %s: expected at least 1, since repeat_dataset is %s, got %r" %
                       (_WHERE, name, repeats, count))
    self._announce(num_epochs, max_iter, eval_interval, snapshot)
    run = fitting.Fit(self, session, self._solver, display, eval_interval, snapshot,
                      snapshot_prefix, max_iter if repeats else 0)
    if not session.get_data_reader_train().is_started:
      session.start_data_reading()
    if repeats:
      run.iterations(self._schedule, max_iter, self._solver.training_callbacks)
    else:
      run.epochs(self._schedule, num_epochs, self._parts(session))

  def _parts(self, session):
    """Returns a function for each source that starts reading it."""
    reader = session.get_data_reader_train()
    if self._etc is None:
      return [reader.restart]

    def starter(source, keyset):
      def start():
        reader.set_source(source)
        session.get_model_oversubscriber().update(keyset)
      return start

    return [starter(*part) for part in zip(self._reader.source, self._reader.keyset)]

  def _announce(self, num_epochs, max_iter, eval_interval, snapshot):
    """Prints the settings of a training."""
    solver, reader = self._solver, self._reader
    printing.banner("Model Fit", self._rank)
    if solver.repeat_dataset:
      self._print("Use non-epoch mode with number of iterations: %d" % max_iter)
    else:
      self._print("Use epoch mode with number of epochs: %d" % num_epochs)
    self._print("Training batchsize: %d, evaluation batchsize: %d" %
                (solver.batchsize, solver.batchsize_eval))
    self._print("Evaluation interval: %d, snapshot interval: %d" % (eval_interval, snapshot))
    self._print("Dense network trainable: %s" % (None not in self._frozen))
    for name in self._blueprint.embeddings():
      self._print("Sparse embedding %s trainable: %s" % (name, name not in self._frozen))
    self._print("Use mixed precision: %s, scaler: %f, use cuda graph: %s" %
                (solver.use_mixed_precision, solver.scaler, solver.use_cuda_graph))
    self._print("lr: %f, warmup_steps: %d, end_lr: %f" %
                (solver.lr, solver.warmup_steps, solver.end_lr))
    self._print("decay_start: %d, decay_steps: %d, decay_power: %f" %
                (solver.decay_start, solver.decay_steps, solver.decay_power))
    self._print("Training source file: %s" % self._reader.source[0])
    self._print("Evaluation source file: %s" % reader.eval_source)

  def set_source(self, source, eval_source=None, keyset=None):
    """Reads other data, in epoch mode.

    Args:
      source: path, or a list with one path; with an embedding training cache, a list of
        paths that `fit` reads in turn.
      eval_source: path; None: the evaluation data stays.
      keyset: with an embedding training cache, a list of paths, one per source.

    Raises:
      RuntimeError: the solver's repeat_dataset is True, or the model is not compiled.
      ValueError: several sources or a keyset are given without an embedding training
        cache, or there is not one keyset per source.
      DataError: files are missing or damaged. Then the previous data stays in use.
    """
    session = self._compiled("set_source")
    if self._solver.repeat_dataset:
      raise RuntimeError("%s.set_source: repeat_dataset: expected False" % _WHERE)
    sources = [source] if isinstance(source, str) else list(source)
    keysets = [keyset] if isinstance(keyset, str) else list(keyset or ())
    if self._etc is not None:
      _check_keysets(_WHERE + ".set_source", sources, keysets)
    elif keysets or len(sources) != 1:
      raise ValueError("%s.set_source: expected one source, got %d, and %d keysets; several "
                       "need an embedding training cache, hugectr.CreateETC" %
                       (_WHERE, len(sources), len(keysets)))
    readers, paths = [session.get_data_reader_train()], sources[:1]
    if eval_source is not None:
      readers.append(session.get_data_reader_eval())
      paths.append(eval_source)
    handles.restart_all(readers, paths)
    self._reader.keyset = keysets
    self._reader.source = sources
    if eval_source is not None:
      self._reader.eval_source = eval_source

  def start_data_reading(self):
    """Starts reading training and evaluation data, for `train` and `eval`."""
    self._compiled("start_data_reading").start_data_reading()

  def get_data_reader_train(self):
    """Returns the handle of the training data."""
    return self._compiled("get_data_reader_train").get_data_reader_train()

  def get_data_reader_eval(self):
    """Returns the handle of the evaluation data."""
    return self._compiled("get_data_reader_eval").get_data_reader_eval()

  def train(self, is_first_batch=True):
    """Trains on the next batch; returns False at the end of the data.

    Args:
      is_first_batch: bool, without effect; False is reported once.

    Raises:
      RuntimeError: reading has not started.
    """
    printing.without_effect(_WHERE + ".train", {"is_first_batch": (is_first_batch, True)})
    return self._compiled("train").train()

  def eval(self, is_first_batch=True):
    """Evaluates the next batch; returns False at the end of the data.

    Args:
      is_first_batch: bool, without effect; False is reported once.
    """
    printing.without_effect(_WHERE + ".eval", {"is_first_batch": (is_first_batch, True)})
    return self._compiled("eval").eval()

  def get_current_loss(self):
    """Returns the loss of the last training batch."""
    return self._compiled("get_current_loss").get_current_loss()

  def get_eval_metrics(self):
    """Returns [(name, value)] over all batches since the last call."""
    return self._compiled("get_eval_metrics").get_eval_metrics()

  def set_learning_rate(self, lr):
    """Sets the rate of `train`; `fit` has that of its schedule."""
    self._compiled("set_learning_rate").set_learning_rate(lr)

  def get_learning_rate_scheduler(self):
    """Returns the LearningRateScheduler of `fit`."""
    self._compiled("get_learning_rate_scheduler")
    return self._schedule

  def reset_learning_rate_scheduler(self, base_lr, warmup_steps=1, decay_start=0,
                                    decay_steps=1, decay_power=2.0, end_lr=0.0):
    """Starts another schedule; arguments as those of CreateSolver."""
    self._compiled("reset_learning_rate_scheduler")
    self._schedule = learning_rate.LearningRateScheduler(
        base_lr, max(1, warmup_steps), decay_start, max(1, decay_steps), decay_power, end_lr)

  # Freezing.

  def _freeze(self, method, change):
    session = self._compiled(method)
    change()
    session.freeze(None in self._frozen, self._frozen - {None})

  def _names(self, method, name):
    known = self._blueprint.embeddings()
    if name is not None and name not in known:
      raise ValueError("%s.%s: there is no embedding '%s'; embeddings are %s" %
                       (_WHERE, method, name, ", ".join(known)))
    return known if name is None else [name]

  def freeze_embedding(self, embedding_name=None):
    """Training leaves an embedding's rows as they are; None: those of all embeddings.

    Raises:
      ValueError: there is no such embedding.
    """
    names = self._names("freeze_embedding", embedding_name)
    self._freeze("freeze_embedding", lambda: self._frozen.update(names))

  def unfreeze_embedding(self, embedding_name=None):
    """Reverses `freeze_embedding`."""
    names = self._names("unfreeze_embedding", embedding_name)
    self._freeze("unfreeze_embedding", lambda: self._frozen.difference_update(names))

  def freeze_dense(self):
    """Training leaves dense parameters as they are; BatchNorm's running values change."""
    self._freeze("freeze_dense", lambda: self._frozen.add(None))

  def unfreeze_dense(self):
    """Reverses `freeze_dense`."""
    self._freeze("unfreeze_dense", lambda: self._frozen.discard(None))

  # Files.

  def load_dense_weights(self, dense_model_file):
    """Loads dense parameters.

    Returns:
      Error_t.Success.

    Raises:
      ValueError: the file is of another model. Then nothing has changed.
      OSError: it cannot be read.
    """
    self._compiled("load_dense_weights").files.read_dense(dense_model_file)
    return enums.Error_t.Success

  def load_dense_optimizer_states(self, dense_opt_states_file):
    """Loads the optimizer's states of dense parameters, as `load_dense_weights`."""
    self._compiled("load_dense_optimizer_states").files.read_dense_states(
        dense_opt_states_file)
    return enums.Error_t.Success

  def _load_rows(self, method, files, states):
    session = self._compiled(method)
    known = self._blueprint.embeddings()
    if isinstance(files, dict):
      for name in files:
        self._names(method, name)
    else:
      files = [files] if isinstance(files, str) else list(files)
      if len(files) != len(known):
        raise ValueError("%s.%s: expected %d files, one per embedding (%s), got %d" %
                         (_WHERE, method, len(known), ", ".join(known), len(files)))
      files = dict(zip(known, files))
    read = session.files.read_row_states_of if states else session.files.read_rows_of
    read(files)
    return enums.Error_t.Success

  def load_sparse_weights(self, sparse_embedding_files):
    """Loads rows of embeddings.

    Args:
      sparse_embedding_files: list of folders or files, one per embedding in the order of
        adding; or a dict from embeddings' names to them.

    Returns:
      Error_t.Success.

    Raises:
      ValueError: they are of another model. Then nothing has changed.
      OSError: they cannot be read.
    """
    return self._load_rows("load_sparse_weights", sparse_embedding_files, False)

  def load_sparse_optimizer_states(self, sparse_opt_states_files):
    """Loads the optimizers' states of rows, as `load_sparse_weights`."""
    return self._load_rows("load_sparse_optimizer_states", sparse_opt_states_files, True)

  def save_params_to_files(self, prefix, iter=0):  # pylint: disable=redefined-builtin
    """Writes model files `<prefix>_dense_<iter>.model` and the like.

    With an embedding training cache, rows are written to its sparse_models.

    Returns:
      Error_t.Success.

    Raises:
      OSError: a file cannot be written.
    """
    session = self._compiled("save_params_to_files")
    session.files.write(prefix, iter, model_files.FOLDER,
                        None if self._etc is None else self._etc.saved)
    self._print("Model files %s*_%d.model have been written" % (prefix, iter))
    return enums.Error_t.Success

  # Name of upstream's C++ code, and of the Session.
  download_params_to_files = save_params_to_files

  def embedding_dump(self, path, table_names=()):
    """Writes the rows of embedding collections.

    `<path>/embedding_collection_<i>` gets, for the t-th of its tables, `key<t>` (int64)
    and `weight<t>` (float32), and `meta_data`, a JSON with the tables' names and widths.

    Args:
      path: string, a folder.
      table_names: list of names; empty: all tables.

    Raises:
      ValueError: there is no such table.
      OSError: a file cannot be written.
    """
    session = self._compiled("embedding_dump")
    for i, names in self._tables("embedding_dump", table_names):
      session.files.write_tables(os.path.join(path, "embedding_collection_%d" % i), names)

  def embedding_load(self, path, table_names=()):
    """Loads rows that `embedding_dump` wrote; tables are found by their names.

    Args:
      path: string, the folder.
      table_names: list of names; empty: all tables.

    Raises:
      ValueError: there is no such table, or its files are of another. Then nothing of its
        collection has changed.
      OSError: a file cannot be read.
    """
    session = self._compiled("embedding_load")
    for i, names in self._tables("embedding_load", table_names):
      session.files.read_tables(os.path.join(path, "embedding_collection_%d" % i), names)

  def _tables(self, method, chosen):
    """Returns [(number of a collection, names of its chosen tables)]."""
    known = [name for names in self._blueprint.collections for name in names]
    for name in chosen:
      if name not in known:
        raise ValueError("%s.%s: no collection has a table '%s'; tables are %s" %
                         (_WHERE, method, name, ", ".join(known)))
    found = [(i, [n for n in names if n in (chosen or known)])
             for i, names in enumerate(self._blueprint.collections)]
    return [(i, names) for i, names in found if names]

  def export_predictions(self, output_prediction_file_name, output_label_file_name):
    """Appends the last evaluation batch's predictions and labels to text files.

    Each number is followed by a blank.

    Raises:
      RuntimeError: the model has several labels, or no batch has been evaluated.
      OSError: a file cannot be written.
    """
    session = self._compiled("export_predictions")
    if len(self._blueprint.labels) > 1:
      raise RuntimeError("%s.export_predictions: the model has %d labels, expected 1" %
                         (_WHERE, len(self._blueprint.labels)))
    labels, predictions = session.last_predictions()
    if self._rank == 0:
      for path, values in ((output_prediction_file_name, predictions),
                           (output_label_file_name, labels)):
        with open(path, "a") as f:
          f.write("".join("%.9g " % v for v in values.ravel()))

  def check_out_tensor(self, tensor_name, tensor_type):
    """Returns a tensor of the last batch, float32 with the batch of all ranks first.

    It is computed again for that batch, with the current parameters. In the evaluation,
    the logit of a loss is its probability.

    Args:
      tensor_name: string.
      tensor_type: Tensor_t.Train or Tensor_t.Evaluate.

    Raises:
      ValueError: there is no such tensor.
      RuntimeError: there has been no such batch.
    """
    session = self._compiled("check_out_tensor")
    kind = enums.check(_WHERE + ".check_out_tensor", "tensor_type", tensor_type,
                       enums.Tensor_t)
    return session.tensor(tensor_name, kind == "Train")

  # The embedding training cache.

  def get_embedding_training_cache(self):
    """Returns the ModelOversubscriber, whose `update` loads rows of a keyset.

    Raises:
      RuntimeError: the model has none, or it is not compiled.
    """
    session = self._compiled("get_embedding_training_cache")
    if self._etc is None:
      raise RuntimeError("%s.get_embedding_training_cache: the model was made without "
                         "etc_params" % _WHERE)
    return session.get_model_oversubscriber()

  # Name in versions 3.1 and 3.2.
  get_model_oversubscriber = get_embedding_training_cache

  def get_incremental_model(self):
    """Returns the rows that have been trained since the last call, of all ranks.

    Returns:
      A list with (keys, rows), int64 `[N]` and float32 `[N, floats]`, for each embedding
      in the order of adding; keys are in ascending order, within each slot of a table per
      slot.

    Raises:
      RuntimeError: the model has no embedding training cache, or it is not compiled.
    """
    self.get_embedding_training_cache()
    return self._session.trained_rows()

  def dump_incremental_model_2kafka(self):
    """Sends the rows of `get_incremental_model` to Kafka, for parameter servers.

    The solver's kafka_brockers names the brokers, and its model_name the model in the
    servers' JSON; tables have the embeddings' names. After an error the next call sends
    the rows again. Rank 0 sends the rows of all ranks.

    Raises:
      ImportError: the package hierarchical_parameter_server is not installed.
      ValueError: kafka_brockers or model_name is empty, or a key has rows in several
        slots.
      RuntimeError: the model has no embedding training cache, or it is not compiled; or
        rank 0 has failed.
      tf.errors.OpError: librdkafka is not installed, or the brokers are not reached.
    """
    where = _WHERE + ".dump_incremental_model_2kafka"
    self.get_embedding_training_cache()
    for name in ("kafka_brockers", "model_name"):
      if not getattr(self._solver, name):
        raise ValueError("%s: expected %s in CreateSolver, got ''" % (where, name))
    # Imported late, since that package imports this one.
    from hugectr.inference import updates  # pylint: disable=g-import-not-at-top
    found = self._session.trained_rows(forgets=False)
    error = None
    if self._rank == 0:
      try:
        updates.send(where, self._solver.kafka_brockers, self._solver.model_name,
                     [(name,) + rows for name, rows in zip(self._blueprint.embeddings(), found)])
      except Exception as e:  # pylint: disable=broad-except
        error = e  # raised when the other ranks know of it
    failed = rank_jobs.of_rank_0(self._ranks, int(error is not None))
    if error is not None:
      raise error
    if failed:
      raise RuntimeError("%s: rank 0 could not send the rows; its error says why" % where)
    self._session.forget_trained_rows()

  def close(self):
    """Ends threads and TensorFlow's session. The model cannot be used any more."""
    if self._session is not None:
      self._session.close()
