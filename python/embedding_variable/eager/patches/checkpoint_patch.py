# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Registers how `tf.train.Checkpoint` saves eager tables, and wraps its save.

Why: it saves a variable as one tensor. TensorFlow 2.x has a registry of functions for
other objects, in an internal module. If ranks save a table together, all of them call
`save`, of which only rank 0 writes the rest; the others end it after their rows.

With `CheckpointOptions(enable_async=True)` TensorFlow copies all variables, and a thread
saves the copies. It cannot copy a table, would leave it out and only log that. So a
checkpoint with a table is saved before the call returns.

A delta of a published model is saved by the object that saved the full version, since the
names in a checkpoint depend on it.
"""

import copy

from embedding_variable import tf_names
from embedding_variable.eager import checkpoint
from embedding_variable.eager import published
from embedding_variable.eager import saved_together
from embedding_variable.integration import patching
from embedding_variable.tf_names import functional_saver
from embedding_variable.tf_names import tf_logging as logging

_ASYNC = "experimental_enable_async_checkpoint"


def install():
  """Registers the functions where TensorFlow has the registry, and replaces `save`."""
  registration = tf_names.find("tensorflow.python.saved_model.registration")
  if registration is not None and tf_names.has_eager_tables():
    checkpoint.register(registration)
    patching.wrap(functional_saver.MultiDeviceSaver, "save", _save)
    module = tf_names.find("tensorflow.python.checkpoint.checkpoint")
    patching.wrap(module.TrackableSaver, "save", _recorded)
    for name in ("save", "_write", "read", "restore"):
      patching.wrap(module.Checkpoint, name, _at_once)


def _save(stock):

  def save(self, *args, **kwargs):
    return saved_together.whole(lambda: stock(self, *args, **kwargs))

  return save


def _recorded(stock):
  """Wraps the method by which TensorFlow writes the checkpoint of a SavedModel."""

  def save(self, *args, **kwargs):
    published.saves(self)
    return stock(self, *args, **kwargs)

  return save


def _at_once(stock):
  """Wraps a method of `tf.train.Checkpoint` that saves or restores."""

  def at_once(self, *args, **kwargs):
    options = kwargs.get("options", args[1] if len(args) > 1 else None)
    # An earlier call's options hold for reading, too.
    asked = (options, getattr(self, "_checkpoint_options", None))
    if any(getattr(o, _ASYNC, False) for o in asked) and _has_table(self):
      logging.log_first_n(
          logging.WARN, "a checkpoint with embedding variables is saved before the call "
          "returns: enable_async has no effect on it", 1)
      if len(args) > 1:
        args = (args[0], options and _synchronous(options)) + args[2:]
      else:
        kwargs["options"] = options and _synchronous(options)
      self._checkpoint_options = None
      before = getattr(self, "_async_checkpointer_impl", None)
      if before is not None:  # from a save when there was no table
        before.sync()
    return stock(self, *args, **kwargs)

  return at_once


def _has_table(root):
  view = tf_names.find("tensorflow.python.checkpoint.trackable_view")
  return any(checkpoint.is_table(x) for x in view.TrackableView(root).descendants())


def _synchronous(options):
  """Returns a copy of `CheckpointOptions`."""
  result = type(options)()
  for name in type(options).__slots__:
    setattr(result, name, copy.copy(getattr(options, name)))
  setattr(result, _ASYNC, False)
  if hasattr(result, "enable_async"):
    result.enable_async = False
  return result
