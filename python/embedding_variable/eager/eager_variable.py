# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The embedding variable of eager execution.

It owns its table: the table exists from the construction of the Python object to its
end. Functions (`tf.function`) capture its handle.
"""

import itertools
import json

from google.protobuf import wrappers_pb2

from embedding_variable.ops import checkpoint_ops
from embedding_variable.ops import handle_ops
from embedding_variable.tf_names import array_ops
from embedding_variable.tf_names import context
from embedding_variable.tf_names import cpp_shape_inference_pb2
from embedding_variable.tf_names import dtypes
from embedding_variable.tf_names import gen_resource_variable_ops
from embedding_variable.tf_names import math_ops
from embedding_variable.tf_names import ops
from embedding_variable.tf_names import resource_variable_ops
from embedding_variable.tf_names import tensor_shape
from embedding_variable.tf_names import tf_logging as logging
from embedding_variable.variables import default_seed
from embedding_variable.variables import strategies
from embedding_variable.variables import table_contents
from embedding_variable.variables import variable as ev

# A container per table, so that tables of the same name are different tables.
_numbers = itertools.count()

# Fields of `TableOptions` that are types.
_DTYPES = ("key_dtype", "value_dtype")


def table_of(variable):
  """Returns the eager table that a variable is or, in Keras 3, holds; else None."""
  variable = getattr(variable, "embedding_variable", variable)
  return variable if isinstance(variable, EagerEmbeddingVariable) else None


class _Named(object):
  """Stands for the op of a variable in a graph, of which messages read the name.

  `tf.compat.v1.train` optimizers find a variable's slots by (op.graph, op.name). The
  graph is this object, since tables may have equal names.

  Attributes:
    is_spread: bool, whether other ranks hold rows of the table.
    table_options: `handle_ops.TableOptions`.
  """

  type = handle_ops.HANDLE_OP
  is_spread = False

  def __init__(self, name, device, options):
    self.name = name
    self.device = device
    self.table_options = options

  @property
  def graph(self):
    return self


class _Handle(object):
  """The handle of an eager table, for code that reads the attribute `_handle`.

  TensorFlow's C++ code reads a variable as a tensor if its `_handle` is a tensor. Else it
  leaves the conversion to Python, where the error has the table's name.
  """

  def __init__(self, tensor):
    self.tensor = tensor

  def __getattr__(self, name):
    return getattr(self.tensor, name)


class _Deleter(object):
  """Destroys the table when the last reference to its variable is gone."""

  def __init__(self, handle):
    self._handle = handle
    self._context = context.context()

  def __del__(self):
    try:
      # Not in a graph that is being built just then.
      with context.eager_mode():
        gen_resource_variable_ops.destroy_resource_op(
            self._handle, ignore_lookup_error=True)
    except Exception:  # pylint: disable=broad-except
      pass  # the interpreter ends, and with it TensorFlow's modules


class EagerEmbeddingVariable(ev.EmbeddingVariable):
  """An `EmbeddingVariable` that works in eager execution and in `tf.function`.

  Its methods return tensors with values. Two variables may have one name.
  """

  def __init__(self,  # pylint: disable=super-init-not-called
               name,
               dim,
               default_rows,
               options=handle_ops.TableOptions(),
               trainable=True,
               collections=None):
    """Creates and initialises the table.

    Args:
      name: string.
      dim: int >= 1, length of a row.
      default_rows: function without arguments that returns float32 `[R, dim]`.
      options: as for `EmbeddingVariable`.
      trainable: bool.
      collections: has no effect and is reported.

    Raises:
      NotImplementedError: in the scope of a `tf.distribute` strategy that mirrors
        variables.
    """
    strategies.check(name)
    if collections is not None:
      logging.log_first_n(
          logging.WARN, "embedding variable '%s': collections has no effect in eager "
          "execution, which has none", 1, name)
    options = ev.with_needed_records(options)
    self._maybe_initialize_trackable()
    number = next(_numbers)
    with ops.init_scope():
      handle = handle_ops.handle(
          name, dim, container="eager.embedding.variable.%d" % number,
          **options._asdict())
      self._deleter = _Deleter(handle)
      handle_ops.initialize(handle, default_seed.draw(name, default_rows))
    # Control flow reads it to decide whether the variable has a gradient.
    handle._handle_data = _handle_data(dim)  # pylint: disable=protected-access
    self._named = _Named(name, handle.device, options)
    handle_ops.set_eager_op(handle, self._named)
    resource_variable_ops.BaseResourceVariable.__init__(
        self, shape=[dim], dtype=dtypes.float32, handle=handle, name=name,
        unique_id="%s_%d" % (name, number), handle_name=name, trainable=trainable,
        distribute_strategy=strategies.current(), initial_value=None,
        initializer_op=None, is_initialized_op=None, graph_element=None)
    self._set_options(dim, options)
    # Slots that a checkpoint had and no optimizer has created yet -> initial value.
    self.restored_columns = self._no_dependency({})

  # Variables of TensorFlow 2.x are equal if their values are.
  __hash__ = object.__hash__

  def __eq__(self, other):
    return self is other

  def __ne__(self, other):
    return self is not other

  @property
  def handle(self):
    return self._shown_handle.tensor

  # Set by the base class.
  @property
  def _handle(self):
    return self._shown_handle

  @_handle.setter
  def _handle(self, tensor):
    self._shown_handle = _Handle(tensor)

  @property
  def op(self):
    """An object with this variable's name and device."""
    return self._named

  @property
  def graph(self):
    """None: the variable belongs to no graph."""
    return None

  @property
  def _shape_tensor(self):
    return self.total_count()

  def add_slot_column(self, name, init):
    super(EagerEmbeddingVariable, self).add_slot_column(name, init)
    self.restored_columns.pop(name, None)

  def evict(self, steps_to_live=None, l2_weight_threshold=None, step=None):
    """Evicts rows now, as in a graph; but `step` must be given to evict by age.

    It is the count by which the rows got their versions: the `iterations` of a Keras
    optimizer, the global step of a `tf.compat.v1.train` optimizer.

    Raises:
      ValueError: rows would be evicted by age and `step` is None; or as in a graph.
    """
    by_age = steps_to_live
    if steps_to_live is None and l2_weight_threshold is None:
      by_age = self.steps_to_live
    if by_age and step is None:
      raise ValueError(
          "embedding variable '%s': in eager execution, evict() by steps_to_live needs "
          "step, such as optimizer.iterations" % self._named.name)
    return super(EagerEmbeddingVariable, self).evict(
        steps_to_live, l2_weight_threshold, 0 if step is None else step)

  def import_rows(self, keys, values):
    """Replaces all rows; versions and frequencies start at 0, slots at their initial value.

    Args:
      keys: int64 or int32 `[N]`, unique.
      values: float32 `[N, dim]`.
    """
    keys = math_ops.cast(self.convert_ids(keys), dtypes.int64)
    none = array_ops.zeros([0], dtypes.int64)
    checkpoint_ops.import_table(
        self.handle, keys, ops.convert_to_tensor(values, dtypes.float32), none, none,
        clear=True)

  # Dense values, for Keras.

  def numpy(self):
    """Returns the rows, an array `[N, dim]` that also has their keys.

    It is a `TableRows` (table_contents.py), of which `assign` takes the keys again.
    """
    return table_contents.rows_of(self)

  def assign(self, value, *unused_args, **unused_kwargs):
    """Replaces all rows by a result of `numpy`; keys that exist keep their slots.

    Raises:
      TypeError: `value` has no keys.
      ValueError: its rows have another length.
    """
    table_contents.replace_rows(self, value)

  def _dense_var_to_tensor(self, dtype=None, name=None, as_ref=False):
    if table_contents.reads_dense() and not as_ref:
      return self.export().values
    return super(EagerEmbeddingVariable, self)._dense_var_to_tensor(dtype, name, as_ref)

  # SavedModel.

  def _export_to_saved_model_graph(self, object_map, tensor_map, options, **kwargs):
    """Puts a handle of this table into the graph of a SavedModel.

    Args:
      object_map: unchanged: functions that save and restore tables are traced with
        this object, and then get the graph's handle.
      tensor_map: dict, gets the handle.
      options: ignored.
      **kwargs: ignored.

    Returns:
      A list of the tensors that were added to `tensor_map`.
    """
    del object_map, options, kwargs
    if handle_ops.is_spread_over_ranks(self.handle):
      self.refuse_export()
    tensor_map[self.handle] = handle_ops.handle(
        self._unique_id, self._dim, **self._options._asdict())
    return [self.handle]

  def refuse_export(self):
    """Raises NotImplementedError: this rank has a part of the rows only."""
    self._unsupported(
        "it is spread over ranks, so no rank can write it to a SavedModel. Save a "
        "tf.train.Checkpoint on all ranks, restore it in a job of one process and export "
        "the model there")

  def _write_object_proto(self, proto, options):
    """Writes nothing but the kind: `_serialize_to_proto` describes the table."""
    del options
    proto.user_object.identifier = "embedding_variable"
    proto.user_object.version.producer = 1

  def _serialize_to_proto(self, object_proto=None, **kwargs):
    """Returns the proto from which `_deserialize_from_proto` makes an empty table."""
    del object_proto, kwargs
    options = self._options._asdict()
    for name in _DTYPES:
      options[name] = options[name].name
    return wrappers_pb2.StringValue(value=json.dumps({
        "name": self._named.name, "dim": self._dim, "trainable": self.trainable,
        "options": {k: v for k, v in options.items() if not isinstance(v, bytes)}}))

  @classmethod
  def _deserialize_from_proto(cls, proto=None, **kwargs):
    """Returns a new table; TensorFlow restores its rows afterwards."""
    del kwargs
    text = wrappers_pb2.StringValue()
    proto.Unpack(text)
    made = json.loads(text.value)
    options = dict(made["options"])
    for name in _DTYPES:
      if name in options:  # SavedModels of earlier versions have one type of values
        options[name] = dtypes.as_dtype(options[name])
    return cls(made["name"], made["dim"], lambda: array_ops.zeros([1, made["dim"]]),
               options=handle_ops.TableOptions(**options), trainable=made["trainable"])

  def __deepcopy__(self, memo):
    self._unsupported("it cannot be copied")

  def __reduce__(self):
    self._unsupported("it cannot be pickled. Save it with tf.train.Checkpoint")


ev.EmbeddingVariable._eager_class = EagerEmbeddingVariable  # pylint: disable=protected-access


def _handle_data(dim):
  """Returns the shape and type of the values of a handle, which eager ops do not infer."""
  data = cpp_shape_inference_pb2.CppShapeInferenceResult.HandleData(is_set=True)
  data.shape_and_type.append(
      cpp_shape_inference_pb2.CppShapeInferenceResult.HandleShapeAndType(
          shape=tensor_shape.TensorShape([None, dim]).as_proto(),
          dtype=dtypes.float32.as_datatype_enum))
  return data
