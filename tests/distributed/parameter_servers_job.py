# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""One task of a parameter server job, given by TF_CONFIG, with a canned Estimator.

  parameter_servers_job.py MODEL_DIR STEPS

A worker other than the chief stops after a few steps, long before the others.
"""

import json
import os
import sys
import time

import numpy as np
import tensorflow as tf

import embedding_variable as ev

_fc = tf.feature_column


def _input():
  """Returns batches of three ids each; the label is the lowest bit of the first id."""
  ids = np.random.RandomState(0).randint(-40, 40, [256, 3]).astype(np.int64)
  data = tf.data.Dataset.from_tensor_slices(({"ids": ids}, ids[:, 0] % 2))
  return data.repeat().batch(16)


def main(model_dir, steps):
  task = json.loads(os.environ["TF_CONFIG"])["task"]["type"]
  ids = _fc.categorical_column_with_embedding("ids", dtype=tf.int64)
  estimator = tf.estimator.DNNLinearCombinedClassifier(
      linear_feature_columns=[ids],
      dnn_feature_columns=[_fc.embedding_column(ids, 4)],
      dnn_hidden_units=[4],
      input_layer_partitioner=tf.fixed_size_partitioner(2),
      config=tf.estimator.RunConfig(model_dir, save_checkpoints_steps=steps // 2))

  worker_started = os.path.join(model_dir, "worker_started")

  class Report(tf.train.SessionRunHook):

    def begin(self):
      print("tables on", *sorted({v.device for v in tf.global_variables()
                                  if ev.is_embedding_variable(v)}))

      if task == "worker":
        open(worker_started, "w").close()

    def after_run(self, run_context, run_values):
      # The worker starts some seconds later, and not at all if the training is complete.
      until = time.time() + 60
      while task == "chief" and not os.path.exists(worker_started):
        if time.time() > until:
          raise RuntimeError("the worker did not begin within 60 s")
        time.sleep(.1)

  hooks = [Report()]
  if task == "worker":
    hooks.append(tf.train.StopAtStepHook(num_steps=3))
  tf.estimator.train_and_evaluate(
      estimator, tf.estimator.TrainSpec(_input, steps, hooks),
      tf.estimator.EvalSpec(_input, steps=4, start_delay_secs=0, throttle_secs=1))
  print("done")


if __name__ == "__main__":
  main(sys.argv[1], int(sys.argv[2]))
