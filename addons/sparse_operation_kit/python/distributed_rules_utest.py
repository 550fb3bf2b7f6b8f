# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests every optimizer over ranks: rows and slots equal those of one process.

  horovodrun -np 2 -H localhost:2 python distributed_rules_utest.py
"""

from absl.testing import absltest
from absl.testing import parameterized
import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

import embedding_variable
from sparse_operation_kit import experiment as sok

import distributed_model as model

_train = tf.compat.v1.train


def _step():
  return tf.compat.v1.train.get_global_step()


# Fused optimizers, and at the end three that run the optimizer's own code.
_OPTIMIZERS = {
    "sgd": lambda: _train.GradientDescentOptimizer(.5),
    "momentum": lambda: _train.MomentumOptimizer(.1, .9),
    "nesterov": lambda: _train.MomentumOptimizer(.1, .9, use_nesterov=True),
    "adagrad": lambda: _train.AdagradOptimizer(.1),
    "adagrad_decay": lambda: _train.AdagradDecayOptimizer(
        .1, _step(), accumulator_decay_step=2, accumulator_decay_rate=.5),
    "row_wise_adagrad": lambda: embedding_variable.RowWiseAdagradOptimizer(.1),
    "adam": lambda: _train.AdamOptimizer(.01),
    "adam_async": lambda: _train.AdamAsyncOptimizer(.01),
    "adam_w": lambda: _train.AdamWOptimizer(.01, .01),
    "ftrl": lambda: _train.FtrlOptimizer(
        .1, l1_regularization_strength=.001, l2_regularization_strength=.01),
    "rmsprop": lambda: _train.RMSPropOptimizer(.01, momentum=.9),
    "rmsprop_centered": lambda: _train.RMSPropOptimizer(
        .01, momentum=.9, centered=True),
    "adadelta": lambda: _train.AdadeltaOptimizer(1.),
    "keras_adagrad": lambda: tf.keras.optimizers.Adagrad(.1),
    "proximal_adagrad": lambda: _train.ProximalAdagradOptimizer(.1),
    "keras_adamax": lambda: tf.keras.optimizers.Adamax(.01),
}


class DistributedRulesTest(model.DistributedTestCase):

  @parameterized.parameters(*sorted(_OPTIMIZERS))
  def test_optimizer(self, name):
    self.train(model.mixed_tables(hvd.size()), _OPTIMIZERS[name], seed=1)

  @parameterized.parameters(tf.float16, tf.bfloat16)
  def test_narrow_values_have_the_bits_of_one_process(self, dtype):
    all_ids = np.random.RandomState(1).randint(-20, 20, [4, hvd.size(), 8])

    def trained(ids, lookup):
      """Returns {key: value} of this rank's rows. Gradients are whole numbers."""
      with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        table = tf.get_embedding_variable(
            "narrow", 5, value_dtype=dtype,
            initializer=tf.compat.v1.random_normal_initializer(seed=3))
        given = tf.compat.v1.placeholder(tf.int64, [None, 1])
        loss = tf.reduce_sum(lookup(table, tf.sparse.from_dense(given + 100)))
        train = model.minimize(_train.GradientDescentOptimizer(2. ** -12), loss, [table])
        session.run(tf.compat.v1.global_variables_initializer())
        for step in ids:
          session.run(train, {given: step.reshape([-1, 1])})
        exported = session.run(table.export())
        return dict(zip(exported.keys.tolist(), exported.values.tolist()))

    found = trained(all_ids[:, hvd.rank()], lambda table, ids: sok.lookup_sparse(
        [table], [ids], combiners=["sum"])[0])
    expected = trained(all_ids, lambda table, ids: tf.nn.embedding_lookup_sparse(
        table, ids, None, combiner="sum"))
    self.assertEqual(found, {key: value for key, value in expected.items()
                             if key % hvd.size() == hvd.rank()})
    self.assertNotEmpty(found)


if __name__ == "__main__":
  hvd.init()
  sok.init()
  # After a failure, a rank that continued would wait for the others.
  absltest.main(failfast=True)
