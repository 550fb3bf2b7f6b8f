# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counters and histograms in Prometheus' text format, by TensorFlow Serving's names."""

import bisect
import contextlib
import threading
import time

from embedding_variable_serving import errors

_SERVING = ":tensorflow:serving:"
_BATCHING = _SERVING + "batching_session:"
_LOADING = ":tensorflow:cc:saved_model:"

# Upper bounds of the buckets for latencies, in microseconds, and for rows.
_LATENCIES = [10 * 1.8 ** k for k in range(33)]
_ROWS = [2 ** k for k in range(20)]

TYPE = "text/plain; version=0.0.4"


def _escaped(value):
  return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _labels(pairs):
  return ",".join('%s="%s"' % (name, _escaped(value)) for name, value in pairs)


class _Request(object):
  """A request in flight. version: number that answers, or None while unknown."""

  version = None

  def __init__(self, metrics, model, api, entrypoint):
    self._metrics, self._model, self._begin = metrics, model, time.time()
    self._api, self._entrypoint = api, entrypoint

  def end(self, error=None):
    """Records the request; error: an exception, or None."""
    status = "OK" if error is None else errors.wrapped(error).code
    # Names that clients invent would make metrics without limit.
    name = self._model if self.version is not None or status != "NOT_FOUND" else ""
    if status == "INVALID_ARGUMENT" and self.version is None:
      name = ""
    version = "" if self.version is None else self.version
    self._metrics.count(_SERVING + "request_count", model_name=name, status=status,
                        version=version)
    if status == "OK":
      self._metrics.observe(_SERVING + "request_latency", (time.time() - self._begin) * 1e6,
                            model_name=name, API=self._api, entrypoint=self._entrypoint,
                            version=version)


class Metrics(object):
  """All metrics of a server."""

  def __init__(self):
    self._lock = threading.Lock()
    self._counters = {}  # {(name, labels): value}
    self._histograms = {}  # {(name, labels): [counts of buckets, sum]}

  def count(self, name, by=1, **labels):
    """Adds to a counter."""
    key = name, tuple(labels.items())
    with self._lock:
      self._counters[key] = self._counters.get(key, 0) + by

  def observe(self, name, value, bounds=_LATENCIES, **labels):
    """Adds a value to a histogram: microseconds, or another unit with its own bounds."""
    key = name, tuple(labels.items())
    with self._lock:
      counts, total, _ = self._histograms.get(key) or ([0] * (len(bounds) + 1), 0., bounds)
      counts[bisect.bisect_left(bounds, value)] += 1
      self._histograms[key] = [counts, total + value, bounds]

  def ran(self, model, version, seconds):
    """Records a run of a version's session."""
    self.observe(_SERVING + "runtime_latency", seconds * 1e6, model_name=model, runtime="TF1",
                 version=version)

  def batched(self, model, version, waited, rows, padded):
    """Records a run of a batch.

    Args:
      model, version: name and number.
      waited: list, the seconds that each request of the batch waited.
      rows: list, the rows of each request.
      padded: the rows that ran.
    """
    labels = dict(model_name=model, version=version)
    self.count(_BATCHING + "wrapped_run_count", **labels)
    for seconds, number in zip(waited, rows):
      self.observe(_BATCHING + "queuing_latency", seconds * 1e6, **labels)
      self.observe(_BATCHING + "input_batch_size", number, _ROWS, **labels)
    self.observe(_BATCHING + "processed_batch_size", padded, _ROWS, **labels)
    self.observe(_BATCHING + "padding_size", padded - sum(rows), _ROWS, **labels)

  def start(self, model, api, entrypoint):
    """Returns a _Request, which the caller ends; arguments as for `request`."""
    return _Request(self, model, api, entrypoint)

  @contextlib.contextmanager
  def request(self, model, api, entrypoint):
    """Context of a request; yields an object whose `version` the caller sets.

    Args:
      model: name in the request.
      api: "Predict", "Classify", "Regress" or "MultiInference".
      entrypoint: "GRPC" or "REST".
    """
    request = self.start(model, api, entrypoint)
    try:
      yield request
    except Exception as e:
      request.end(e)
      raise
    request.end()

  def loaded(self, path, error, seconds):
    """Records an attempt to load a version."""
    status = "fail" if error else "success"
    self.count(_LOADING + "load_attempt_count", model_path=path, status=status)
    if not error:
      self.count(_LOADING + "load_latency", int(seconds * 1e6), model_path=path)

  def forget(self, model, version, path):
    """Removes what was recorded of a version, so that reloads do not add metrics for ever.

    Args:
      model: name of the model.
      version: number.
      path: folder of the version.
    """
    def is_of_version(labels):
      return ("model_path", path) in labels or (
          ("model_name", model) in labels and ("version", version) in labels)

    with self._lock:
      for recorded in (self._counters, self._histograms):
        for key in [key for key in recorded if is_of_version(key[1])]:
          del recorded[key]

  def text(self):
    """Returns all metrics as bytes."""
    with self._lock:
      counters = sorted(self._counters.items(), key=str)
      histograms = sorted(((k, list(c), s, b) for k, (c, s, b) in self._histograms.items()),
                          key=str)
    lines, typed = [], set()

    def add_type(name, kind):
      if name not in typed:
        typed.add(name)
        lines.append("# TYPE %s %s" % (name, kind))

    for (name, labels), value in counters:
      add_type(name, "counter")
      lines.append("%s{%s} %d" % (name, _labels(labels), value))
    for (name, labels), counts, total, bounds in histograms:
      add_type(name, "histogram")
      cumulative = 0
      for bound, number in zip(["%.6g" % b for b in bounds] + ["+Inf"], counts):
        cumulative += number
        lines.append('%s_bucket{%s} %d' % (name, _labels(labels + (("le", bound),)),
                                           cumulative))
      lines.append("%s_sum{%s} %.0f" % (name, _labels(labels), total))
      lines.append("%s_count{%s} %d" % (name, _labels(labels), cumulative))
    return ("\n".join(lines) + "\n").encode("utf-8")
