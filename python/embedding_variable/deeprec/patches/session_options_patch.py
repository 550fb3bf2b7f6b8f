# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Patch: DeepRec's fields on the classes of protocol buffers.

Why: stock messages raise AttributeError for a field that they do not have, and
ValueError for such an argument of their constructor.
"""

from embedding_variable.deeprec import notices
from embedding_variable.deeprec import session_options
from embedding_variable.integration import patching


def install():
  """Adds the fields."""
  owners = []
  for field in session_options.TABLE:
    if hasattr(field.owner, field.name):
      continue
    setattr(field.owner, field.name, _property(field))
    if field.owner not in owners:
      owners.append(field.owner)
  for owner in owners:
    patching.wrap(owner, "__init__", _init_with(
        [f for f in session_options.TABLE if f.owner is owner]), layer="_deeprec")


def _notice(field):
  if field.why is not None:
    notices.no_effect(field.name, field.why)


def _property(field):
  """Returns the attribute of a field."""

  def read(self):
    if not field.has_parts:
      value = session_options.read(self, field)
      return value if field.name in session_options.NUMBERS else bool(value)
    _notice(field)
    return session_options.Ignored()

  def write(self, value):
    if field.has_parts:
      raise AttributeError("%s is a message, to which no value can be assigned" %
                           field.name)
    session_options.write(self, field, value)
    if value:
      _notice(field)

  return property(read, write)


def _init_with(fields):
  """Returns a wrapper of a constructor that takes the fields as arguments."""

  def make(stock):

    def init(self, *args, **kwargs):
      values = {f: kwargs.pop(f.name) for f in fields if f.name in kwargs}
      stock(self, *args, **kwargs)
      for field, value in values.items():
        if field.has_parts:
          _notice(field)
        elif value is not None:
          setattr(self, field.name, value)

    return init

  return make
