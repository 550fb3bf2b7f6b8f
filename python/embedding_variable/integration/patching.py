# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Replaces stock functions, once and recognisably."""

import functools
import importlib
import inspect
import sys
import types

from tensorflow.python.platform import tf_logging as logging

from embedding_variable import tf_names

_MARK = "_embedding_variable_stock"

# Calls of `wrap`, in order: tuples of owner, name, stock function, replacement.
replaced = []


def first_name(owner, *names):
  """Returns the first of the names that the owner has: one for each TensorFlow."""
  for name in names:
    if hasattr(owner, name):
      return name
  raise AttributeError("TensorFlow's %s has none of %s" %
                       (owner.__name__, ", ".join(names)))


def module_with(attribute, *modules):
  """Returns the first of the modules, by full name, that exists and has the attribute."""
  for name in modules:
    module = tf_names.find(name)
    if hasattr(module, attribute):
      return module
  raise AttributeError("none of TensorFlow's modules %s has %s" %
                       (", ".join(modules), attribute))


def wrap(owner, name, make, layer=""):
  """Replaces attribute `name` of a module or class.

  The replacement must accept every call that the stock function accepts.

  Args:
    owner: module or class.
    name: string.
    make: function that takes the stock function and returns its replacement.
    layer: string that identifies this replacement among several of the same function;
      each wraps the previous one.

  Returns:
    (stock, replacement); the existing replacement if it is ours.
  """
  stock = inspect.getattr_static(owner, name)
  is_static = isinstance(stock, staticmethod)
  function = stock.__func__ if is_static else stock
  mark = _MARK + layer
  if hasattr(function, mark):
    return getattr(function, mark), function
  replacement = functools.wraps(function)(make(function))
  setattr(replacement, mark, function)
  setattr(owner, name, staticmethod(replacement) if is_static else replacement)
  replaced.append((owner, name, function, replacement))
  logging.debug("embedding_variable: patched %s.%s", owner.__name__, name)
  return function, replacement


def with_save_incr_model(stock):
  """Returns an export method that also takes DeepRec's argument save_incr_model.

  The argument is ignored: the saver of every export can restore deltas.
  """

  def export(self, *args, save_incr_model=None, **kwargs):
    del save_incr_model
    return stock(self, *args, **kwargs)

  return export


def after_import(name, action):
  """Calls `action` with the module `name`: now if it is imported, else when it is.

  Args:
    name: string, full name of a module that a script may import later, or never.
    action: function of the module; called once per import.
  """
  module = sys.modules.get(name)
  if module is not None:
    action(module)
  elif not any(getattr(f, "waits_for", None) == name for f in sys.meta_path):
    sys.meta_path.insert(0, _AfterImport(name, action))


class _AfterImport(object):
  """Import hook: finds a module through the other finders and acts after it was
  executed.
  """

  def __init__(self, name, action):
    self.waits_for = name
    self._action = action

  def find_spec(self, fullname, path=None, target=None):
    if fullname != self.waits_for:
      return None
    for finder in sys.meta_path:
      if finder is self or not hasattr(finder, "find_spec"):
        continue
      spec = finder.find_spec(fullname, path, target)
      if spec is not None:
        self._act_after(spec.loader)
        return spec
    return None

  def _act_after(self, loader):
    execute = loader.exec_module

    def exec_module(module):
      execute(module)
      self._action(module)

    # Each loader object belongs to one module, so it can be changed.
    loader.exec_module = exec_module


def replace_exports():
  """Replaces functions of modules in every module that refers to them.

  These are the functions that `wrap` has replaced. A public name such as
  `tf.nn.embedding_lookup_sparse` is a separate reference, in several modules, and so is a
  name that a script has imported from a module before.
  """
  following = {id(stock): replacement for owner, _, stock, replacement in replaced
               if isinstance(owner, types.ModuleType)}
  for module in list(sys.modules.values()):
    if not isinstance(module, types.ModuleType):
      continue
    for key, value in list(vars(module).items()):
      current = value
      while id(current) in following:
        current = following[id(current)]
      if current is not value:
        setattr(module, key, current)


def add_name(owner, name, value):
  """Sets an attribute unless it exists.

  Args:
    owner: module or class.
    name: string.
    value: any object.
  """
  known = getattr(owner, name, None)
  if known is None:
    setattr(owner, name, value)
    logging.debug("embedding_variable: added %s.%s",
                  getattr(owner, "__name__", owner), name)
  elif known is not value:
    logging.debug("embedding_variable: %s.%s exists and is left alone",
                  getattr(owner, "__name__", owner), name)


def add_module(full_name, members):
  """Makes a module importable by `import a.b` and `from a import b`, unless it exists.

  Args:
    full_name: string.
    members: dict of its attributes; those named with two underscores are left out.

  Returns:
    The module, which may be the one that exists.
  """
  parent_name, name = full_name.rsplit(".", 1)
  try:
    parent = importlib.import_module(parent_name)
  except ImportError:
    parent = add_module(parent_name, {})
    parent.__path__ = []
  try:
    return importlib.import_module(full_name)
  except ImportError:
    pass
  module = types.ModuleType(full_name)
  for key, value in members.items():
    if not key.startswith("__") and value is not None:
      setattr(module, key, value)
  sys.modules[full_name] = module
  setattr(parent, name, module)
  logging.debug("embedding_variable: added module %s", full_name)
  return module
