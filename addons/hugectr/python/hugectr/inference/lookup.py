# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""`HPS`: rows of served tables, without a model."""

import json

import numpy as np
import tensorflow.compat.v1 as tf

from hugectr.api import printing
from hugectr.config import loading
from hugectr.inference import params
from hugectr.inference import server

_WHERE = "hugectr.inference.HPS"


class HPS(object):
  """Looks rows up in the tables of a parameter server's configuration.

  `lookup` is thread-safe. The models stay in the process's server until `close`.

  Example:

    server = HPS("ps.json")
    rows = server.lookup([3, 7], "dcn", 0)
  """

  def __init__(self, config):
    """Starts the process's server, or adds the models to the running one.

    Args:
      config: path of the server's JSON, or a ParameterServerConfig.

    Raises:
      ImportError: the package hierarchical_parameter_server is not installed.
      TypeError: config is of another type.
      ConfigError: the file cannot be read.
      tf.errors.OpError: a table or a setting is invalid.
    """
    self._hps = server.package(_WHERE)
    if isinstance(config, str):
      configuration = loading.read_json(config)
    elif isinstance(config, params.ParameterServerConfig):
      configuration = config.configuration()
    else:
      raise TypeError("%s: config: expected the path of a JSON or a ParameterServerConfig, got "
                      "%r" % (_WHERE, config))
    server.serve(self._hps, configuration)
    self._key_type = np.int64 if configuration.get("supportlonglong", True) else np.int32
    self._widths = {m["model"]: m["embedding_vecsize_per_table"]
                    for m in configuration["models"]}
    self._graph = tf.Graph()
    self._session = tf.Session(
        graph=self._graph, config=tf.ConfigProto(device_count={"GPU": 0}))
    self._calls = {}
    for name, widths in self._widths.items():
      for table, width in enumerate(widths):
        self._calls[name, table] = self._call(name, table, width)
    self._graph.finalize()

  def _call(self, name, table, width):
    with self._graph.as_default():
      keys = tf.placeholder(tf.as_dtype(self._key_type), [None])
      layer = self._hps.LookupLayer(
          model_name=name, table_id=table, emb_vec_size=width, emb_vec_dtype=tf.float32,
          global_batch_size=server.replicas())
      return self._session.make_callable(layer(keys), feed_list=[keys])

  def lookup(self, keys, model_name, table_id, device_id=0):
    """Returns the rows of keys, float32 [N, width].

    Args:
      keys: list or array of N integers.
      model_name: string.
      table_id: int, position of the table in its model.
      device_id: int, without effect: the process sees one GPU.

    Raises:
      ValueError: there is no such table, or keys are no vector of integers.
      tf.errors.OpError: the server cannot answer.
    """
    printing.without_effect("hugectr.inference.HPS.lookup", {"device_id": (device_id, 0)})
    call = self._calls.get((model_name, table_id))
    if call is None:
      raise ValueError("%s.lookup: there is no table %r of model %r; models and their numbers "
                       "of tables are %s" % (_WHERE, table_id, model_name, json.dumps(
                           {n: len(w) for n, w in self._widths.items()}, sort_keys=True)))
    found = np.asarray(keys)
    if not found.size:
      found = found.astype(self._key_type)
    if found.ndim != 1 or found.dtype.kind not in "iu":
      raise ValueError("%s.lookup: keys: expected a vector of integers, got %s of shape %s" %
                       (_WHERE, found.dtype, list(found.shape)))
    return call(found.astype(self._key_type))

  def close(self):
    """Removes the models from the server."""
    self._session.close()
    server.remove(self._hps, list(self._widths))
