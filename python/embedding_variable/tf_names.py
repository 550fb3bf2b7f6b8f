# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's modules under the names of TensorFlow 1.15.

Modules of this product import TensorFlow's internal modules from here:

  from embedding_variable.tf_names import array_ops
  from embedding_variable.tf_names import tf

Only this module and `integration/` know where a version of TensorFlow keeps them. A
module is imported when its name is first used. Where 2.x has moved attributes of a module
to other modules, the name is an object with the attributes of both; otherwise, and always
in TensorFlow 1.15, it is the module itself.
"""

import functools
import importlib
import types

# Name -> the places of the module below tensorflow.python; the first that exists is used.
_HOMES = {
    "adadelta": ("training.adadelta",),
    "adagrad": ("training.adagrad",),
    "adam": ("training.adam",),
    "array_ops": ("ops.array_ops",),
    "autograph": ("autograph.impl.api",),
    "basic_session_run_hooks": ("training.basic_session_run_hooks",),
    "batching": ("data.experimental.ops.batching",),
    "bitwise_ops": ("ops.bitwise_ops",),
    "check_ops": ("ops.check_ops",),
    "checkpoint_management": ("checkpoint.checkpoint_management",
                              "training.checkpoint_management"),
    "checkpoint_utils": ("training.checkpoint_utils",),
    "compat": ("util.compat",),
    "constant_op": ("framework.constant_op",),
    "context": ("eager.context",),
    "control_flow_ops": ("ops.control_flow_ops",),
    "control_flow_util": ("ops.control_flow_util",),
    "cpp_shape_inference_pb2": ("framework.cpp_shape_inference_pb2",),
    "data_flow_ops": ("ops.data_flow_ops",),
    "dataset_ops": ("data.ops.dataset_ops",),
    "device": ("framework.device",),
    "distribution_strategy_context": ("distribute.distribution_strategy_context",
                                      "distribute.distribute_lib"),
    "dtypes": ("framework.dtypes",),
    "embedding_ops": ("ops.embedding_ops",),
    "errors": ("framework.errors",),
    "feature_column": ("feature_column.feature_column",),
    "feature_column_utils": ("feature_column.utils",),
    "feature_column_v2": ("feature_column.feature_column_v2",),
    "file_io": ("lib.io.file_io",),
    "ftrl": ("training.ftrl",),
    "functional_saver": ("checkpoint.functional_saver", "training.saving.functional_saver"),
    "gen_io_ops": ("ops.gen_io_ops",),
    "gen_logging_ops": ("ops.gen_logging_ops",),
    "gen_resource_variable_ops": ("ops.gen_resource_variable_ops",),
    "gradient_descent": ("training.gradient_descent",),
    "importer": ("framework.importer",),
    "init_ops": ("ops.init_ops",),
    "init_ops_v2": ("ops.init_ops_v2",),
    "interleave_ops": ("data.experimental.ops.interleave_ops",),
    "io_ops": ("ops.io_ops",),
    "keras_initializers": ("keras.initializers",),
    "kernels": ("framework.kernels",),
    "logging_ops": ("ops.logging_ops",),
    "math_ops": ("ops.math_ops",),
    "mirrored_strategy": ("distribute.mirrored_strategy",),
    "momentum": ("training.momentum",),
    "nest": ("util.nest",),
    "one_device_strategy": ("distribute.one_device_strategy",),
    "op_def_registry": ("framework.op_def_registry",),
    "ops": ("framework.ops",),
    "optimizer": ("training.optimizer",),
    "parsing_ops": ("ops.parsing_ops",),
    "partitioned_variables": ("ops.partitioned_variables",),
    "pywrap_tensorflow": ("pywrap_tensorflow",),
    "queue_runner": ("training.queue_runner",),
    "ragged_tensor": ("ops.ragged.ragged_tensor",),
    "record": ("eager.record", "eager.tape"),
    "random_ops": ("ops.random_ops",),
    "random_seed": ("framework.random_seed",),
    "resource_variable_ops": ("ops.resource_variable_ops",),
    "resources": ("ops.resources",),
    "rmsprop": ("training.rmsprop",),
    "saveable_object": ("training.saving.saveable_object",),
    "saveable_object_util": ("training.saving.saveable_object_util",),
    "saver": ("training.saver",),
    "script_ops": ("ops.script_ops",),
    "segment_id_ops": ("ops.ragged.segment_id_ops",),
    "server_lib": ("training.server_lib",),
    "session": ("client.session",),
    "session_run_hook": ("training.session_run_hook",),
    "sort_ops": ("ops.sort_ops",),
    "sparse_ops": ("ops.sparse_ops",),
    "sparse_tensor": ("framework.sparse_tensor",),
    "state_ops": ("ops.state_ops",),
    "string_ops": ("ops.string_ops",),
    "summary": ("summary.summary",),
    "tensor_shape": ("framework.tensor_shape",),
    "tensor_util": ("framework.tensor_util",),
    "test": ("platform.test",),
    "tf_logging": ("platform.tf_logging",),
    "tpu_strategy": ("distribute.tpu_strategy",),
    "trackable": ("trackable.base", "training.tracking.base"),
    "training_ops": ("training.training_ops", "ops.gen_training_ops"),
    "training_util": ("training.training_util",),
    "variable_scope": ("ops.variable_scope",),
    "variables": ("ops.variables",),
    "writer": ("summary.writer.writer",),
    "writer_cache": ("summary.writer.writer_cache",),
}

# Name -> {attribute: the module below tensorflow.python that has it if the module of the
# name lacks it}.
_MOVED = {
    "array_ops": {"stack": "ops.array_ops_stack", "unstack": "ops.array_ops_stack"},
    "control_flow_ops": {"Assert": "ops.control_flow_assert", "cond": "ops.cond",
                         "while_loop": "ops.while_loop"},
    "feature_column_v2": {"FeatureColumn": "feature_column.feature_column_v2_types"},
    "ops": {"IndexedSlices": "framework.indexed_slices", "Tensor": "framework.tensor",
            "register_tensor_conversion_function":
                "framework.tensor_conversion_registry"},
    "pywrap_tensorflow": {"NewCheckpointReader": "training.py_checkpoint_reader"},
}

# Messages of protocol buffers, below tensorflow.core.
_PROTOS = {
    "attr_value_pb2": "framework.attr_value_pb2",
    "config_pb2": "protobuf.config_pb2",
    "graph_pb2": "framework.graph_pb2",
    "rewriter_config_pb2": "protobuf.rewriter_config_pb2",
    "saved_model_pb2": "protobuf.saved_model_pb2",
    "saver_pb2": "protobuf.saver_pb2",
}


class _WithMoved(types.ModuleType):
  """A module with attributes that were moved out of it."""

  def __init__(self, module, moved):
    super(_WithMoved, self).__init__(module.__name__, module.__doc__)
    self.__dict__.update(moved)
    self.__dict__["_module"] = module

  def __getattr__(self, attribute):
    return getattr(self.__dict__["_module"], attribute)


def find(*names):
  """Returns the first of the modules with these full names that exists, or None.

  Raises:
    ModuleNotFoundError: one of them exists and imports a module that does not.
  """
  for name in names:
    try:
      return importlib.import_module(name)
    except ModuleNotFoundError as e:
      if not (name + ".").startswith(e.name + "."):
        raise
  return None


def _tensorflow():
  """Returns the module that has the functions of TensorFlow 1.x."""
  tensorflow = importlib.import_module("tensorflow")
  return tensorflow if "Session" in dir(tensorflow) else tensorflow.compat.v1


def _internal(name):
  """Returns the module of a name in _HOMES."""
  module = find(*["tensorflow.python." + home for home in _HOMES[name]])
  if module is None:
    raise ImportError("TensorFlow has no module %s" % " or ".join(_HOMES[name]))
  moved = {attribute: getattr(importlib.import_module("tensorflow.python." + home),
                              attribute)
           for attribute, home in _MOVED.get(name, {}).items()
           if not hasattr(module, attribute)}
  return _WithMoved(module, moved) if moved else module


def __getattr__(name):
  if name == "tf":
    value = _tensorflow()
  elif name in _PROTOS:
    value = importlib.import_module("tensorflow.core." + _PROTOS[name])
  elif name in _HOMES:
    value = _internal(name)
  else:
    raise AttributeError("module %r has no attribute %r" % (__name__, name))
  globals()[name] = value
  return value


def has_eager_tables():
  """Returns whether tables can be created in eager execution: in TensorFlow 2.x.

  Its graphs have the control flow, and its tapes the functions, that they use.
  """
  return "Session" not in dir(importlib.import_module("tensorflow"))


def op_def(name):
  """Returns the OpDef of a registered op type.

  Raises:
    KeyError: there is none.
  """
  registry = __getattr__("op_def_registry")
  if not hasattr(registry, "get"):
    return registry.get_registered_ops()[name]
  found = registry.get(name)
  if found is None:
    raise KeyError(name)
  return found


def keras_modules(*names):
  """Returns a module of each installed Keras 2.

  In TensorFlow 1.15 it is part of TensorFlow. From 2.16 on it is the package tf_keras,
  which `tf.keras` is too if TF_USE_LEGACY_KERAS=1 is set; otherwise that is Keras 3.

  Args:
    *names: names below the package, such as "mixed_precision.loss_scale_optimizer"; the
      first that exists is used.
  """
  of_tensorflow = __getattr__("tf").keras.optimizers.Optimizer.__module__
  roots = [of_tensorflow.split(".optimizer")[0], "tf_keras.src"]
  found = [find(*["%s.%s" % (root, name) for name in names])
           for i, root in enumerate(roots) if root not in roots[:i]]
  return [module for module in found if module is not None]


def keras_3():
  """Returns the package of Keras 3, or None."""
  package = find("keras") if has_eager_tables() else None
  return package if hasattr(package, "Variable") else None


def keras_3_variables():
  """Returns a tuple of the class of Keras 3's variables; empty without Keras 3."""
  package = keras_3()
  return () if package is None else (package.Variable,)


def keras_serializable(package):
  """Returns a decorator that registers a class for Keras's files by the package's name.

  TensorFlow 1.15 has no such registry, and the class stays as it is.
  """
  utils = __getattr__("tf").keras.utils
  if hasattr(utils, "register_keras_serializable"):
    return utils.register_keras_serializable(package)
  return lambda cls: cls


def keras_optimizers(name):
  """Returns a module of the graph-mode optimizers of each installed Keras 2.

  Their classes are those of `tf.keras.optimizers` in TensorFlow 1.15, and of
  `tf.keras.optimizers.legacy` and `tf.compat.v1.keras.optimizers` in 2.x.

  Args:
    name: string, such as "adam" or, for the base class, "optimizer_v2".
  """
  return keras_modules("optimizer_v2." + name, "optimizers.optimizer_v2." + name,
                       "optimizers.legacy." + name)


def keras_of_mode():
  """Returns `tf.keras` in eager execution, and in a graph `tf.compat.v1.keras`.

  The optimizers of the latter train tables in a graph.
  """
  tf = __getattr__("tf")
  return importlib.import_module("tensorflow").keras if tf.executing_eagerly() else tf.keras


def _keras_packages():
  """Returns the packages of each installed Keras on 2.x."""
  if not has_eager_tables():
    return []
  tensorflow = importlib.import_module("tensorflow")
  packages = [tensorflow.keras, tensorflow.compat.v1.keras, find("tf_keras"), find("keras")]
  return [package for package in packages if package is not None]


def keras_classes(name):
  """Returns a tuple of the classes of a name, one of each installed Keras on 2.x.

  Args:
    name: string below the package, such as "Model" or "callbacks.Callback".
  """
  found = []
  for package in _keras_packages():
    cls = functools.reduce(getattr, name.split("."), package)
    if cls not in found:
      found.append(cls)
  return tuple(found)


def _keras_step_packages():
  """Returns the `keras.optimizers` of each installed Keras from 2.11 on."""
  found = [package.optimizers for package in _keras_packages()]
  return [package for i, package in enumerate(found) if package not in found[:i] and
          hasattr(package.Optimizer, "update_step")]


def keras_step_bases():
  """Returns the base classes of Keras optimizers that update by a method `update_step`.

  These are Keras 3's, and those that Keras 2.11 has beside the legacy ones.
  """
  bases = [package.Optimizer for package in _keras_step_packages()]
  return [cls for i, cls in enumerate(bases) if cls not in bases[:i]]


def keras_step_optimizers():
  """Returns the packages that have the subclasses of `keras_step_bases`."""
  return _keras_step_packages()


def keras_initializer_classes():
  """Returns a tuple of the base classes of initializers of each Keras from 2.11 on."""
  return tuple({package.initializers.Initializer for package in _keras_packages()
                if hasattr(package.initializers, "Initializer")})


def keras_optimizer_classes():
  """Returns a tuple of the base classes of all Keras optimizers."""
  found = [getattr(module, "OptimizerV2") for module in keras_optimizers("optimizer_v2")]
  found.append(__getattr__("tf").keras.optimizers.Optimizer)
  return tuple(found + keras_step_bases())
