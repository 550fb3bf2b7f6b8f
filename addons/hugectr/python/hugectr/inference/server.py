# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Starts the process's parameter server, and adds models to it."""

import json
import os
import sys
import tempfile

import tensorflow.compat.v1 as tf

from hugectr.api import printing

# Whether this module started the server, so that it stops it with its last model.
_started = False


def package(what):
  """Returns the module hierarchical_parameter_server.

  Args:
    what: string, the call, for the error.

  Raises:
    ImportError: it is not installed.
  """
  try:
    import hierarchical_parameter_server as hps  # pylint: disable=g-import-not-at-top
  except ImportError as e:
    raise ImportError(
        "%s needs the package hierarchical_parameter_server, the inference parameter "
        "server, which is in the wheel sok-stock-tf-hps: pip install sok-stock-tf-hps (%s)" %
        (what, e))
  return hps


def replicas():
  """Returns the number of processes among which the server divides a batch."""
  hvd = sys.modules.get("horovod.tensorflow")
  return hvd.size() if hvd is not None and hvd.is_initialized() else 1


def _models(hps):
  """Returns the names of the running server's models."""
  return [m["model"] for m in hps.metrics()["models"]]


def _write(folder, configuration):
  path = os.path.join(folder, "ps.json")
  with open(path, "w") as f:
    json.dump(configuration, f, indent=2)
  return path


def _started_with(hps, path):
  """Starts the server unless one runs; returns whether this call has started it."""
  global _started
  if _started:
    try:
      _models(hps)
      return False
    except tf.errors.FailedPreconditionError:
      pass  # the script has stopped it
  try:
    hps.start(path, replicas())
  except tf.errors.FailedPreconditionError:
    # The script has started a server.
    return False
  _started = True
  return True


def serve(hps, configuration, renames=False):
  """Serves the models of a configuration: starts the server, or adds models to it.

  Args:
    hps: the package.
    configuration: dict as in the server's JSON.
    renames: bool. True: if the first model's name is taken, the model is served as NAME_2,
      NAME_3 and so on.

  Returns:
    The first model's name in the server.

  Raises:
    tf.errors.OpError: a table or a setting is invalid, or a name is taken. Then nothing
      has changed.
  """
  model = dict(configuration["models"][0])
  name, number = model["model"], 2
  with tempfile.TemporaryDirectory(prefix="hugectr_inference_") as folder:
    path = _write(folder, configuration)
    for note in hps.check(path)["notes"]:
      printing.once("hugectr.inference: parameter server: %s" % note)
    began = _started_with(hps, path)
    running = _models(hps)
    # A configuration that the environment names takes the place of the given one.
    if began and name in running:
      return name
    given = sorted(set(configuration) & {"volatile_db", "persistent_db", "update_source"})
    if given:
      printing.once("hugectr.inference: a parameter server runs in this process: its "
                    "databases are used, and %s is not" % ", ".join(given))
    while renames and model["model"] in running:
      model["model"], number = "%s_%d" % (name, number), number + 1
    hps.add_models(_write(folder, dict(
        configuration, models=[model] + configuration["models"][1:])))
  return model["model"]


def remove(hps, names):
  """Removes models; stops the server if `serve` started it and no model is left."""
  global _started
  try:
    running = _models(hps)
  except tf.errors.FailedPreconditionError:
    # The script has stopped it.
    _started = False
    return
  for name in names:
    if name in running:
      hps.remove_model(name)
      running.remove(name)
  if _started and not running:
    hps.stop()
    _started = False
