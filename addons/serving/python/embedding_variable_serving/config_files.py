# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Text files of messages, and the list of models in one of them."""

import os

from google.protobuf import text_format
import tensorflow as tf

from embedding_variable_serving import errors
from embedding_variable_serving.models import folders
from embedding_variable_serving.models import manager

_PLATFORMS = ("", "tensorflow")


def read(path, cls):
  """Returns the message in a text file.

  Args:
    path: string.
    cls: message class.

  Raises:
    ServingError: INVALID_ARGUMENT; the file cannot be read or has an unknown field.
  """
  try:
    with tf.io.gfile.GFile(path) as f:
      return text_format.Parse(f.read(), cls())
  except (tf.errors.OpError, UnicodeDecodeError, text_format.ParseError) as e:
    raise errors.invalid("%s: %s", path, e)


def _policy(config):
  policy = config.model_version_policy
  kind = policy.WhichOneof("policy_choice")
  if kind == "all":
    return folders.Policy("all", 0, frozenset())
  if kind == "specific":
    if not policy.specific.versions:
      raise errors.invalid("model '%s': the policy \"specific\" has no versions", config.name)
    return folders.Policy("specific", 0, frozenset(policy.specific.versions))
  return folders.LATEST._replace(count=max(1, policy.latest.num_versions))


def settings(config):
  """Returns the list of manager.ModelSettings of a ModelServerConfig.

  Raises:
    ServingError: INVALID_ARGUMENT.
  """
  if config.WhichOneof("config") != "model_config_list":
    raise errors.invalid("expected a model_config_list; no other configuration is supported")
  found, names = [], set()
  for model in config.model_config_list.config:
    if not model.name or model.name in names:
      raise errors.invalid("the name '%s' of a model is empty, or used twice", model.name)
    names.add(model.name)
    if not os.path.isabs(model.base_path) and "://" not in model.base_path:
      raise errors.invalid("model '%s': base_path '%s' is not an absolute path", model.name,
                           model.base_path)
    if model.model_platform not in _PLATFORMS or model.model_type not in (0, 1):
      raise errors.invalid("model '%s': expected model_platform \"tensorflow\", got '%s'",
                           model.name, model.model_platform)
    if model.HasField("logging_config"):
      raise errors.invalid("model '%s': logging_config is not supported", model.name)
    found.append(manager.ModelSettings(model.name, model.base_path, _policy(model),
                                       dict(model.version_labels)))
  return found
