# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""CreateSolver: batches, devices, learning rate, metrics."""

import numbers
import types

from hugectr.api import enums
from hugectr.api import printing
from hugectr.training import solver as solvers

_WHERE = "hugectr.CreateSolver"


class Solver(object):
  """The arguments of CreateSolver as read-only attributes."""

  def __init__(self, values):
    super(Solver, self).__setattr__("_values", types.MappingProxyType(dict(values)))

  def __getattr__(self, name):
    values = self.__dict__.get("_values", {})
    if name not in values:
      raise AttributeError("Solver has no attribute '%s'" % name)
    return values[name]

  def __setattr__(self, name, value):
    raise AttributeError("Solver is read-only: '%s' cannot be set" % name)

  def parser(self, vvgpu, seed):
    """Returns the Session's SolverParser.

    Args:
      vvgpu: list of lists of devices.
      seed: int.
    """
    return solvers.of_script(
        _WHERE, seed=seed, max_eval_batches=self.max_eval_batches,
        batchsize=self.batchsize, batchsize_eval=self.batchsize_eval, vvgpu=vvgpu,
        use_mixed_precision=self.use_mixed_precision, scaler=self.scaler,
        i64_input_key=self.i64_input_key, repeat_dataset=self.repeat_dataset,
        eval_metrics=self.metric_names(),
        drop_incomplete_batch=self.drop_incomplete_batch and not self.repeat_dataset)

  def metric_names(self):
    """Returns the metrics' names in the order of the enumeration."""
    return [m.name for m in enums.MetricsType if m in self.metrics_spec]


def _check_metrics(metrics_spec):
  if not isinstance(metrics_spec, dict) or not metrics_spec:
    raise ValueError("%s: metrics_spec: expected a dict such as {hugectr.MetricsType.AUC: "
                     "0.8}, got %r" % (_WHERE, metrics_spec))
  for metric, threshold in metrics_spec.items():
    enums.check(_WHERE, "a key of metrics_spec", metric, enums.MetricsType)
    if isinstance(threshold, bool) or not isinstance(threshold, numbers.Real):
      raise ValueError("%s: the threshold of %s in metrics_spec: expected a number, got %r" %
                       (_WHERE, metric.name, threshold))


def _check_schedule(values):
  for name, least in (("lr", 0), ("warmup_steps", 0), ("decay_start", 0), ("decay_steps", 0),
                      ("decay_power", 1), ("end_lr", 0)):
    kind = numbers.Integral if name.endswith(("steps", "start")) else numbers.Real
    value = values[name]
    if isinstance(value, bool) or not isinstance(value, kind) or not value >= least:
      raise ValueError("%s: %s: expected %s of at least %d, got %r" % (
          _WHERE, name, "an integer" if kind is numbers.Integral else "a number", least,
          value))


# pylint: disable=unused-argument
def CreateSolver(  # pylint: disable=invalid-name
    model_name="", seed=0, lr_policy=enums.LrPolicy_t.fixed, lr=0.001, warmup_steps=1,
    decay_start=0, decay_steps=1, decay_power=2.0, end_lr=0.0, max_eval_batches=100,
    batchsize_eval=2048, batchsize=2048, vvgpu=((0,),), repeat_dataset=True,
    use_mixed_precision=False, enable_tf32_compute=False, scaler=1.0, metrics_spec=None,
    i64_input_key=False, use_algorithm_search=True, use_cuda_graph=True,
    device_layout=enums.DeviceLayout.LocalFirst, use_holistic_cuda_graph=False,
    use_overlapped_pipeline=False, all_reduce_algo=enums.AllReduceAlgo.NCCL,
    grouped_all_reduce=False, num_iterations_statistics=20, is_dlrm=False,
    async_mlp_wgrad=False, gen_loss_summary=True, overlap_lr=False,
    overlap_init_wgrad=False, overlap_ar_a2a=False, kafka_brockers="",
    data_source_params=None, eval_overlap=False, use_embedding_collection=False,
    perf_logging=False, drop_incomplete_batch=True, train_intra_iteration_overlap=False,
    train_inter_iteration_overlap=False, eval_intra_iteration_overlap=False,
    eval_inter_iteration_overlap=False, training_callbacks=()):
  """Returns a Solver with these arguments as attributes.

  Arguments that are not listed tune CUDA, NCCL or the overlap of upstream's kernels.
  They have no effect, and a value other than the default is reported once.

  Args:
    model_name: string, for the graph's JSON and for Kafka.
    seed: int, seed of initial values and dropout; 0: a random one, which `Model` prints.
    lr_policy: LrPolicy_t.fixed.
    lr: number of at least 0.
    warmup_steps: int, steps over which the rate rises to lr.
    decay_start: int, step after which the rate falls; 0: it does not.
    decay_steps: int, steps over which it falls.
    decay_power: number of at least 1.
    end_lr: number, the rate at the end.
    max_eval_batches: int, batches of an evaluation.
    batchsize_eval: int, samples of an evaluation batch, over all devices.
    batchsize: int, samples of a training batch, over all devices.
    vvgpu: list of device numbers for each node.
    repeat_dataset: bool. True: `fit` trains by iterations; False: by epochs.
    use_mixed_precision: bool.
    enable_tf32_compute: bool, without effect.
    scaler: number, factor of the loss in mixed precision.
    metrics_spec: dict from MetricsType to threshold; None: {MetricsType.AUC: 1.0}. `fit`
      ends when the AUC is above its threshold. Thresholds of other metrics have no effect.
    i64_input_key: bool, whether keys in data have 64 bits; False: unsigned 32 bits.
    gen_loss_summary: bool; False: iteration mode shows a loss of 0.
    kafka_brockers: string "host:port;host:port", brokers of
      `Model.dump_incremental_model_2kafka`.
    use_embedding_collection: bool, without effect: collections can be added in any case.
    drop_incomplete_batch: bool; in epoch mode, whether an epoch ends before a batch that
      has fewer samples.
    training_callbacks: list of TrainingCallback.

  Raises:
    ValueError, TypeError: an argument is invalid.
    NotImplementedError: a remote data_source_params is given.
  """
  values = dict(locals())
  enums.check(_WHERE, "lr_policy", lr_policy, enums.LrPolicy_t)
  values["metrics_spec"] = {enums.MetricsType.AUC: 1.0} if metrics_spec is None else (
      metrics_spec)
  _check_metrics(values["metrics_spec"])
  _check_schedule(values)
  if use_mixed_precision and enable_tf32_compute:
    raise ValueError("%s: use_mixed_precision and enable_tf32_compute exclude each other" %
                     _WHERE)
  if not isinstance(kafka_brockers, str):
    raise TypeError("%s: kafka_brockers: expected a string \"host:port;host:port\", got %r" %
                    (_WHERE, kafka_brockers))
  if data_source_params is not None:
    data_source_params.check(_WHERE)
  printing.without_effect(_WHERE, dict(
      enable_tf32_compute=(enable_tf32_compute, False),
      use_algorithm_search=(use_algorithm_search, True),
      use_cuda_graph=(use_cuda_graph, True),
      device_layout=(device_layout, enums.DeviceLayout.LocalFirst),
      use_holistic_cuda_graph=(use_holistic_cuda_graph, False),
      use_overlapped_pipeline=(use_overlapped_pipeline, False),
      all_reduce_algo=(all_reduce_algo, enums.AllReduceAlgo.NCCL),
      grouped_all_reduce=(grouped_all_reduce, False),
      num_iterations_statistics=(num_iterations_statistics, 20), is_dlrm=(is_dlrm, False),
      async_mlp_wgrad=(async_mlp_wgrad, False), overlap_lr=(overlap_lr, False),
      overlap_init_wgrad=(overlap_init_wgrad, False),
      overlap_ar_a2a=(overlap_ar_a2a, False), eval_overlap=(eval_overlap, False),
      use_embedding_collection=(use_embedding_collection, False),
      perf_logging=(perf_logging, False),
      train_intra_iteration_overlap=(train_intra_iteration_overlap, False),
      train_inter_iteration_overlap=(train_inter_iteration_overlap, False),
      eval_intra_iteration_overlap=(eval_intra_iteration_overlap, False),
      eval_inter_iteration_overlap=(eval_inter_iteration_overlap, False)))
  for metric in values["metrics_spec"]:
    if metric != enums.MetricsType.AUC:
      printing.once("%s: metrics_spec: the threshold of %s has no effect; only AUC's ends fit" %
                    (_WHERE, metric.name))
  values["vvgpu"] = [list(node) for node in vvgpu]
  values["training_callbacks"] = list(training_callbacks)
  solver = Solver(values)
  solver.parser(values["vvgpu"], seed)  # checks the rest
  return solver
