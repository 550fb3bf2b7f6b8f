# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""The --policy flag of benchmarks: the filter or eviction policy of the tables."""

from absl import flags
import tensorflow as tf

FLAGS = flags.FLAGS

flags.DEFINE_enum("policy", "none", ("none", "counter", "step_evict"),
                  "What the tables record of their rows: nothing, the occurrence count "
                  "(CounterFilter, which admits a key the second time), or the step of "
                  "the last update (GlobalStepEvict).")


def options():
  """Returns the arguments of `tf.EmbeddingVariableOption`."""
  if FLAGS.policy == "counter":
    return {"filter_option": tf.CounterFilter(filter_freq=2)}
  if FLAGS.policy == "step_evict":
    return {"evict_option": tf.GlobalStepEvict(steps_to_live=1000000)}
  return {}
