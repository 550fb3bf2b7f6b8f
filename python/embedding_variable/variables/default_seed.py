# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Gives a table's default rows the same seed on all ranks if the script sets none.

Ranks must agree on the initial row of a key, since another rank may own it when the job
continues with a different number of ranks. Ranks have not communicated when a table is
created, and their graphs may differ. They do share the table's name, so the seed is
derived from it.

Initializers of Keras take their seed from Python's `random`, so they are replaced by
seeded copies.

A single process draws a new seed in each run, as TensorFlow does.
"""

import contextlib
import hashlib
import threading

from embedding_variable import graph_state
from embedding_variable import tf_names
from embedding_variable.checkpoint import job
from embedding_variable.tf_names import attr_value_pb2
from embedding_variable.tf_names import context
from embedding_variable.tf_names import init_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import tf

# Attribute `name`: the table whose default rows this thread draws for several ranks.
_local = threading.local()


def draw(name, build):
  """Calls `build` and gives a seed to its random ops.

  Ops that have a seed, of their own, of the graph or of eager execution, keep it.

  Args:
    name: string, the table's name, which is the same on all ranks.
    build: function without arguments that returns a tensor. In a graph it adds ops to
      the default graph. In eager execution of several ranks it is called in a
      `tf.function`, unless `tf.random.set_seed` was called.

  Returns:
    The result of `build`.

  Raises:
    ValueError: in eager execution of several ranks, `build` does not work in a function.
  """
  if job.current().size() == 1:
    return build()
  with _drawing(name):
    if not context.executing_eagerly():
      return _draw_in_graph(name, build)
    if context.global_seed() is not None:
      return build()
    try:
      function = tf.function(lambda: _draw_in_graph(name, build),
                             autograph=False).get_concrete_function()
    except (AttributeError, NotImplementedError, TypeError) as e:
      raise ValueError(
          "embedding variable '%s': with several ranks its initializer is called in a "
          "tf.function, so that all ranks draw the same rows, and there it failed: %s. "
          "Use an initializer of TensorFlow or Keras, an array, or a function of "
          "TensorFlow's ops" % (name, e))
    return function()


@contextlib.contextmanager
def _drawing(name):
  before = getattr(_local, "name", None)
  _local.name = name
  try:
    yield
  finally:
    _local.name = before


def seeded(initializer):
  """Returns an initializer that draws the same rows on all ranks.

  Args:
    initializer: anything. An initializer of Keras without a seed is copied if it is
      called in `draw` and there are several ranks. The seed of the copy comes from the
      table's name and TensorFlow's global seed.
  """
  name = getattr(_local, "name", None)
  if (name is None or isinstance(initializer, init_ops.Initializer) or
      not isinstance(initializer, tf_names.keras_initializer_classes())):
    return initializer
  config = initializer.get_config()
  if "seed" not in config or config["seed"] is not None:
    return initializer
  of_graph = ops.get_default_graph().seed
  if context.executing_eagerly():
    of_graph = context.global_seed()
  text = name if of_graph is None else "%s %d" % (name, of_graph)
  return type(initializer).from_config(dict(config, seed=_seeds(text)[0]))


def _seeds(text):
  """Returns two seeds of TensorFlow: positive int32, since two zeros mean no seed."""
  digest = hashlib.sha256(text.encode("utf-8")).digest()
  return [int.from_bytes(digest[i:i + 4], "little") >> 2 or 1 for i in (0, 4)]


def _draw_in_graph(name, build):
  # pylint: disable=protected-access
  graph = ops.get_default_graph()
  before = graph_state.last_id(graph)
  result = build()
  seeds = _seeds(name)
  unseeded = [op for op in graph_state.added_after(graph, before) if _is_unseeded(op)]
  for number, op in enumerate(unseeded):
    op._set_attr("seed", _attribute(seeds[0]))
    op._set_attr("seed2", _attribute(seeds[1] + number))
  return result


def _is_unseeded(op):
  names = [attribute.name for attribute in op.op_def.attr]
  return ("seed" in names and "seed2" in names and
          op.get_attr("seed") == 0 and op.get_attr("seed2") == 0)


def _attribute(number):
  return attr_value_pb2.AttrValue(i=number)
