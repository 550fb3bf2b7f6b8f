# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Types of layers as classes, from which tables, JSON Schema and API are made."""

# Default of an argument that adds no key to the clause unless it is given.
OMITTED = "Default"

# Type in JSON -> class, of all modules that have been imported.
OF_TYPE = {}


class Layer(object):
  """One type of layer.

  A type is a subclass: its name is the `type` in JSON, and its docstring the description in
  the schema. A name that starts with "_" is no type.

  Attributes:
    is_loss: bool.
    is_in_api: bool, whether it is a member of hugectr.Layer_t.
    runs_in_float16: bool, whether it computes in float16 in float16 training. These are the
      types with a float16 form upstream, and those that only move numbers. All others run in
      float32: sums over many numbers, norms, exponentials, and types that upstream has in
      float32 only.
    least_bottoms: int, least length of the list of bottoms; None: may be one name.
    takes_many: bool, whether there may be several bottoms if `least_bottoms` is None.
      Otherwise a list with one name equals the name.
    keys: dict: key of the clause besides name, type, bottom and top -> its JSON Schema.
    required: those keys that a clause must have.
    arguments: dict: key, or "key.key" of a nested object, -> (argument of hugectr.DenseLayer,
      default). `fill` writes them into the clause.
    other_arguments: names of the arguments that `fill` uses besides.
  """

  is_loss = False
  is_in_api = True
  runs_in_float16 = False
  least_bottoms = None
  takes_many = False
  keys = {}
  required = ()
  arguments = {}
  other_arguments = ()

  def __init_subclass__(cls, **kwargs):
    super().__init_subclass__(**kwargs)
    if not cls.__name__.startswith("_"):
      OF_TYPE[cls.__name__] = cls

  @classmethod
  def has_several_bottoms(cls):
    """Returns whether there may be several bottoms."""
    return cls.takes_many or cls.least_bottoms is not None

  @classmethod
  def all_arguments(cls):
    """Returns the names of the arguments in hugectr.DenseLayer, a set."""
    return {name for name, _ in cls.arguments.values()} | set(cls.other_arguments)

  @classmethod
  def fill(cls, given):
    """Writes the clause of a hugectr.DenseLayer from its arguments."""
    for key, (argument, default) in cls.arguments.items():
      value = given.get(argument, default)
      if value != OMITTED:
        given.put(key, value)

  @staticmethod
  def tops(params):
    """Returns how many tops a layer has; params: the clause."""
    del params
    return 1

  @staticmethod
  def shape(shapes, params):
    """Returns the list of the tops' Shapes, of the bottoms' Shapes and the clause.

    Raises:
      ShapeError: the bottoms do not fit.
    """
    del params
    return [shapes[0]]

  @staticmethod
  def build(context, layer, *bottoms):
    """Returns the top, or a list of tops.

    Args:
      context: Context.
      layer: config's Layer.
      *bottoms: tensors.
    """
    raise NotImplementedError()


# JSON Schemas of keys. Other keywords are passed on: minimum, maximum, default ...


def section(keys, required=()):
  """Returns the schema of a nested object with some keys."""
  found = {"type": "object", "additionalProperties": False}
  if required:
    found["required"] = list(required)
  return dict(found, properties=keys)


def integer(description, **more):
  return dict(type="integer", description=description, **more)


def number(description, **more):
  return dict(type="number", description=description, **more)


def boolean(description, **more):
  return dict(type="boolean", description=description, **more)


def array(description, items, **more):
  return dict(type="array", description=description, items=items, **more)


def one_of(description, values, **more):
  return dict(enum=list(values), description=description, **more)


def initializer(description, **more):
  return one_of(description, ("Uniform", "XavierNorm", "XavierUniform", "Zero"), **more)
