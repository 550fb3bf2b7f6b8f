# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The settings of a session besides the model: batches, devices, initial files."""

import numbers

from hugectr.config import errors
from hugectr.config import loading
from hugectr.config import schema_check

_DEFAULT_MAX_ITER = 10000
_SCALERS = (1, 128, 256, 512, 1024)
_STORAGES = ("DRAM_SSDHASH", "HBM_DRAM")


class SolverParser(object):
  """Solver settings, read-only.

  Attributes:
    seed: int. max_eval_batches: int, batches of a whole evaluation by `python -m
      hugectr train`. max_eval_samples: int or None. batchsize_eval, batchsize: ints,
      samples over all devices. model_file: path of dense parameters, or "".
      embedding_files: list of paths, or []. dense_opt_states_file: path or "".
      sparse_opt_states_file: list of paths, or []. vvgpu: list of lists of ints.
    use_mixed_precision: bool. scaler: float. i64_input_key: bool. use_algorithm_search,
      use_cuda_graph, enable_tf32_compute: bools without effect. repeat_dataset: bool.
    max_iter, num_epochs, display, snapshot, eval_interval: ints; 0 means none.
    snapshot_prefix, export_predictions_prefix: strings. eval_metrics: list of strings.
    use_model_oversubscriber: bool. temp_embedding_dir, oversubscription_storage: strings.
    drop_incomplete_batch: bool, whether training ends before a batch of fewer samples.
  """

  def __init__(self, configure_file=None, **values):
    """Reads the solver clause of a configuration.

    Args:
      configure_file: path of a JSON configuration.
      **values: arguments of `solver_parser_helper`.

    Raises:
      ConfigError: the file is not a configuration, or has no solver clause.
    """
    if configure_file is not None:
      values = _of_clause(configure_file)
    super(SolverParser, self).__setattr__("_values", dict(values))

  def __getattr__(self, name):
    values = self.__dict__.get("_values", {})
    if name not in values:
      raise AttributeError("SolverParser has no attribute '%s'" % name)
    return values[name]

  def __setattr__(self, name, value):
    raise AttributeError("SolverParser is read-only: '%s' cannot be set" % name)

  def __repr__(self):
    return "SolverParser(%s)" % ", ".join(
        "%s=%r" % item for item in sorted(self._values.items()))


def _integer(name, value, least):
  if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
    raise ValueError("solver_parser_helper: %s: expected an integer of at least %d, got %r" %
                     (name, least, value))
  return int(value)


def _paths(name, value):
  if isinstance(value, str):
    return [value] if value else []
  if not isinstance(value, (list, tuple)) or not all(
      isinstance(v, str) and v for v in value):
    raise ValueError("solver_parser_helper: %s: expected a list of paths, got %r" %
                     (name, value))
  return list(value)


def check_devices(vvgpu):
  """Returns a list of lists of device numbers; raises ValueError for other values."""
  good = isinstance(vvgpu, (list, tuple)) and vvgpu and all(
      isinstance(node, (list, tuple)) and node and all(
          isinstance(d, numbers.Integral) and not isinstance(d, bool) and d >= 0
          for d in node) and len(set(node)) == len(node) for node in vvgpu)
  if not good:
    raise ValueError("solver_parser_helper: vvgpu: expected a list of different device "
                     "numbers for each node, such as [[0, 1], [0, 1]], got %r" % (vvgpu,))
  return [[int(d) for d in node] for node in vvgpu]


def _metric_names(value):
  names = [value] if isinstance(value, str) else list(value)
  schema = schema_check.load_schema()["definitions"]["solver"]["properties"]["eval_metrics"]
  wrong = schema_check.mistakes(names, schema)
  if wrong:
    raise ValueError("solver_parser_helper: eval_metrics: %s" %
                     wrong[0].replace("configuration: ", ""))
  return names


def _values(seed, max_eval_batches, batchsize_eval, batchsize, model_file,
            embedding_files, dense_opt_states_file, sparse_opt_states_file, vvgpu,
            use_mixed_precision, scaler, i64_input_key, use_algorithm_search,
            use_cuda_graph, enable_tf32_compute, repeat_dataset, max_iter, num_epochs,
            display, snapshot, eval_interval, use_model_oversubscriber,
            temp_embedding_dir, eval_metrics=("AUC",), snapshot_prefix="",
            max_eval_samples=None, oversubscription_storage=_STORAGES[0],
            export_predictions_prefix="", drop_incomplete_batch=False):
  """Returns the checked values of a SolverParser; raises ValueError."""
  vvgpu = check_devices(vvgpu)
  devices = sum(len(node) for node in vvgpu)
  for name, value in (("batchsize", batchsize), ("batchsize_eval", batchsize_eval)):
    if _integer(name, value, 1) % devices:
      raise ValueError("solver_parser_helper: %s: expected a multiple of the %d devices of "
                       "vvgpu, got %d" % (name, devices, value))
  if use_mixed_precision and scaler not in _SCALERS:
    raise ValueError("solver_parser_helper: scaler: expected one of %s, got %r" %
                     (", ".join(str(s) for s in _SCALERS), scaler))
  if oversubscription_storage not in _STORAGES:
    raise ValueError("solver_parser_helper: oversubscription_storage: expected one of %s, got "
                     "%r" % (", ".join(_STORAGES), oversubscription_storage))
  for name, value in (("model_file", model_file),
                      ("dense_opt_states_file", dense_opt_states_file),
                      ("temp_embedding_dir", temp_embedding_dir)):
    if not isinstance(value, str):
      raise ValueError("solver_parser_helper: %s: expected a path, got %r" % (name, value))
  return dict(
      seed=_integer("seed", seed, 0),
      max_eval_batches=_integer("max_eval_batches", max_eval_batches, 1),
      max_eval_samples=max_eval_samples,
      batchsize_eval=int(batchsize_eval), batchsize=int(batchsize),
      model_file=model_file,
      embedding_files=_paths("embedding_files", embedding_files),
      dense_opt_states_file=dense_opt_states_file,
      sparse_opt_states_file=_paths("sparse_opt_states_file", sparse_opt_states_file),
      vvgpu=vvgpu, use_mixed_precision=bool(use_mixed_precision), scaler=float(scaler),
      i64_input_key=bool(i64_input_key),
      use_algorithm_search=bool(use_algorithm_search),
      use_cuda_graph=bool(use_cuda_graph),
      enable_tf32_compute=bool(enable_tf32_compute), repeat_dataset=bool(repeat_dataset),
      max_iter=_integer("max_iter", max_iter, 0) or _DEFAULT_MAX_ITER,
      num_epochs=_integer("num_epochs", num_epochs, 0) or (0 if repeat_dataset else 1),
      display=_integer("display", display, 0),
      snapshot=_integer("snapshot", snapshot, 0),
      eval_interval=_integer("eval_interval", eval_interval, 0),
      eval_metrics=_metric_names(eval_metrics), snapshot_prefix=snapshot_prefix,
      use_model_oversubscriber=bool(use_model_oversubscriber),
      temp_embedding_dir=temp_embedding_dir,
      oversubscription_storage=oversubscription_storage,
      export_predictions_prefix=export_predictions_prefix,
      drop_incomplete_batch=bool(drop_incomplete_batch))


def solver_parser_helper(seed=0, eval_batches=None, batchsize_eval=16384, batchsize=16384,
                         model_file="", embedding_files=(), vvgpu=((0,),),
                         use_mixed_precision=False, scaler=1.0, i64_input_key=False,
                         use_algorithm_search=True, use_cuda_graph=True,
                         repeat_dataset=False, max_eval_batches=None,
                         dense_opt_states_file="", sparse_opt_states_file=(),
                         enable_tf32_compute=False, max_iter=0, num_epochs=0,
                         display=200, snapshot=10000, eval_interval=1000,
                         use_model_oversubscriber=False, temp_embedding_dir="./",
                         eval_metrics=("AUC",), oversubscription_storage="DRAM_SSDHASH"):
  """Returns a SolverParser. Names are those of 2.3 and 3.0, defaults those of 2.3.

  Args:
    seed: int, seed of initial values and dropout.
    eval_batches: int; version 3.0 calls it max_eval_batches. None: 100.
    batchsize_eval: int, samples per evaluation batch, over all devices.
    batchsize: int, samples per training batch, over all devices.
    model_file: path of initial dense parameters; "": none.
    embedding_files: list of files of initial rows, one per embedding.
    vvgpu: a list of device numbers for each node. A process trains on one device: for
      several devices, start as many ranks by horovodrun.
    use_mixed_precision: bool.
    scaler: float, factor of the loss in mixed precision.
    i64_input_key: bool, whether keys have 64 bits.
    use_algorithm_search: has no effect.
    use_cuda_graph: has no effect.
    repeat_dataset: bool; False: training ends at the end of the data.
    max_eval_batches: int; None: like eval_batches.
    dense_opt_states_file: path of initial optimizer states; "": none.
    sparse_opt_states_file: list of such files, one per embedding.
    enable_tf32_compute: has no effect.
    max_iter: int; 0: 10000.
    num_epochs: int; 0: 1 unless repeat_dataset.
    display: int, interval in iterations; 0: never.
    snapshot: int, interval in iterations; 0: never.
    eval_interval: int, interval in iterations; 0: never.
    use_model_oversubscriber: bool.
    temp_embedding_dir: path.
    eval_metrics: list of strings, "AUC", "AverageLoss", "HitRate", "NDCG" or "SMAPE",
      in the order of the results. Upstream has only AUC.
    oversubscription_storage: the memories of use_model_oversubscriber. "DRAM_SSDHASH":
      host memory, and files in temp_embedding_dir. "HBM_DRAM": GPU memory, and host
      memory. An argument of this package.

  Raises:
    ValueError: an argument is invalid.
  """
  batches = [b for b in (eval_batches, max_eval_batches) if b is not None] or [100]
  if len(batches) == 2:
    raise ValueError("solver_parser_helper: eval_batches and max_eval_batches are one "
                     "setting: give one of them")
  return SolverParser(**_values(
      seed, batches[0], batchsize_eval, batchsize, model_file, embedding_files,
      dense_opt_states_file, sparse_opt_states_file, vvgpu, use_mixed_precision, scaler,
      i64_input_key, use_algorithm_search, use_cuda_graph, enable_tf32_compute,
      repeat_dataset, max_iter, num_epochs, display, snapshot, eval_interval,
      use_model_oversubscriber, temp_embedding_dir, eval_metrics,
      oversubscription_storage=oversubscription_storage))


def _with_auc_threshold(names, threshold):
  """Returns a clause's eval_metrics, with auc_threshold as the threshold of AUC.

  Raises:
    ValueError: AUC already has a threshold.
  """
  if threshold is None:
    return names
  with_their_own = [n for n in names if n.startswith("AUC:")]
  if with_their_own:
    raise ValueError("expected either auc_threshold or '%s' in eval_metrics, got both" %
                     with_their_own[0])
  wanted = "AUC:%.17g" % threshold
  return [wanted if n == "AUC" else n for n in names] + (
      [] if "AUC" in names else [wanted])


def _of_clause(path):
  """Returns the values of a configuration's solver clause; raises ConfigError."""
  configuration = loading.read_json(path)
  loading.check(configuration, path)
  clause = configuration.get("solver")
  if clause is None:
    raise errors.ConfigError("%s: 'solver' is missing" % path)
  if "max_iter" in clause and "num_epochs" in clause:
    raise errors.ConfigError("%s: solver: expected either max_iter or num_epochs, got "
                             "both" % path)
  if "eval_batches" in clause and "max_eval_batches" in clause:
    raise errors.ConfigError("%s: solver: expected either eval_batches or "
                             "max_eval_batches, got both" % path)
  gpu = clause.get("gpu", [0])
  batchsize = clause.get("batchsize", 2048)
  nested = [isinstance(g, list) for g in gpu]
  if any(nested) and not all(nested):
    raise errors.ConfigError("%s: solver.gpu: expected numbers, or lists of them, got "
                             "both" % path)
  try:
    return _values(
        clause.get("seed", 0),
        clause.get("max_eval_batches", clause.get("eval_batches", 100)),
        clause.get("batchsize_eval", batchsize), batchsize,
        clause.get("dense_model_file", ""), clause.get("sparse_model_file", []),
        clause.get("dense_opt_states_file", ""),
        clause.get("sparse_opt_states_file", []), gpu if any(nested) else [gpu],
        "mixed_precision" in clause, clause.get("mixed_precision", 1),
        clause.get("input_key_type", "I32") == "I64",
        clause.get("algorithm_search", True), clause.get("cuda_graph", True),
        clause.get("enable_tf32_compute", False), "num_epochs" not in clause,
        clause.get("max_iter", 0), clause.get("num_epochs", 0),
        clause.get("display", 200), clause.get("snapshot", 10000),
        clause.get("eval_interval", 1000), False, "./",
        _with_auc_threshold(clause.get("eval_metrics", ["AUC"]),
                            clause.get("auc_threshold")),
        clause.get("snapshot_prefix", ""), clause.get("max_eval_samples"),
        export_predictions_prefix=clause.get("export_predictions_prefix", ""))
  except ValueError as e:
    raise errors.ConfigError("%s: solver: %s" %
                             (path, str(e).replace("solver_parser_helper: ", "")))


def of_script(where, scaler=1.0, **values):
  """Returns the SolverParser of a script's arguments.

  Args:
    where: string, the call, for errors.
    scaler: positive number.
    **values: some arguments of `solver_parser_helper` except `eval_batches`, and
      drop_incomplete_batch.

  Raises:
    ValueError: an argument is invalid.
  """
  if isinstance(scaler, bool) or not isinstance(scaler, numbers.Real) or not scaler > 0:
    raise ValueError("%s: scaler: expected a positive number, got %r" % (where, scaler))
  found = dict(dense_opt_states_file="", sparse_opt_states_file=(), model_file="",
               embedding_files=(), use_algorithm_search=True, use_cuda_graph=True,
               enable_tf32_compute=False, max_iter=0, num_epochs=0, display=0, snapshot=0,
               eval_interval=0, use_model_oversubscriber=False, temp_embedding_dir="./",
               scaler=_SCALERS[0])
  found.update(values)
  try:
    return SolverParser(**dict(_values(**found), scaler=float(scaler)))
  except ValueError as e:
    raise ValueError(str(e).replace("solver_parser_helper", where))
