# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Records live requests, on demand, in the format of recorded warm-up requests."""

import logging
import os
import threading
from urllib import parse

import tensorflow as tf

from embedding_variable_serving import messages
from embedding_variable_serving.inference import tensors

_FILE = "tf_serving_warmup_requests"


class Recorder(object):
  """Writes requests of each model to FOLDER/MODEL/tf_serving_warmup_requests.

  Safe from any thread. A request costs one comparison while nothing is recorded.
  """

  def __init__(self, folder, num_requests):
    """Args: the folder, requests to record of each model."""
    self._folder, self._num_requests = folder, num_requests
    self._lock = threading.Lock()
    self._records = None  # {name of a model: list of bytes} while requests are recorded

  def start(self):
    """Begins anew. Takes no lock, so a signal handler may call it."""
    self._records = {}

  def add(self, name, signature, feeds, outputs):
    """Records a request that was answered, if the model has too few records yet."""
    records = self._records
    if records is None or len(records.get(name, ())) >= self._num_requests:
      return
    log = messages.serving("PredictionLog")()
    request = log.predict_log.request
    request.model_spec.name, request.model_spec.signature_name = name, signature.name
    for alias, array in feeds.items():
      tensors.from_array(array, signature.inputs[alias].dtype, request.inputs[alias])
    if set(outputs) != set(signature.outputs):
      request.output_filter.extend(outputs)
    with self._lock:
      mine = records.setdefault(name, [])
      if len(mine) == self._num_requests:
        return  # Another thread added the last one meanwhile.
      mine.append(log.SerializeToString())
      is_last = len(mine) == self._num_requests
    if is_last:
      self._write(name, mine)

  def _write(self, name, records):
    # A name of a model is no path, and different names have different folders.
    folder = os.path.join(self._folder, parse.quote(name, safe="").replace(".", "%2E"))
    path = os.path.join(folder, _FILE)
    try:
      # The records are users' data, which other users of the machine must not read.
      os.makedirs(folder, mode=0o700, exist_ok=True)
      with tf.io.TFRecordWriter(path + ".part") as writer:
        for record in records:
          writer.write(record)
      os.chmod(path + ".part", 0o600)
      tf.io.gfile.rename(path + ".part", path, overwrite=True)
    except (OSError, tf.errors.OpError) as e:
      logging.error("model %s: the requests are not recorded: %s", name, e)
    else:
      logging.info("model %s: recorded %d requests in %s", name, len(records), path)


class Recorded(object):
  """A servable of a model whose answered requests a Recorder gets."""

  def __init__(self, servable, name, recorder):
    self._servable, self._name, self._recorder = servable, name, recorder

  def __getattr__(self, name):
    return getattr(self._servable, name)

  def run(self, signature, feeds, outputs, timeout_ms=None):
    """Does the same as SavedModel.run."""
    found = self._servable.run(signature, feeds, outputs, timeout_ms)
    self._recorder.add(self._name, signature, feeds, outputs)
    return found
