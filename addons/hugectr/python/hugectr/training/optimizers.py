# Copyright 2026 The SparseOperationKit Authors.
# SPDX-License-Identifier: Apache-2.0
"""Upstream's optimizers, based on TensorFlow's.

    Adam         m = b1 m + (1 - b1) g, v = b2 v + (1 - b2) g^2,
                 w = w - lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + epsilon)
    MomentumSGD  v = f v - lr g, w = w + v
    Nesterov     v' = f v - lr g, w = w - f v + (1 + f) v'
    SGD          w = w - lr g
    AdaGrad      a = a + g^2, w = w - lr g / (sqrt(a) + epsilon)
    Ftrl         as in ftrl.py
    RMSProp      v = beta v + (1 - beta) g^2, w = w - lr g / (sqrt(v) + epsilon)

TensorFlow's momentum multiplies v by the rate, upstream's multiplies the gradient.
Multiplying the gradient by the rate first and using a rate of 1 gives upstream's
numbers (v with opposite sign), even if the rate changes.
"""

import tensorflow.compat.v1 as tf

import embedding_variable
import sparse_operation_kit as sok

from hugectr.training import adagrad
from hugectr.training import ftrl
from hugectr.training import lazy_global
from hugectr.training import rms_prop


class Optimizer(object):
  """The optimizer of one clause of a configuration.

  Attributes:
    lr: float32 variable, the learning rate.
    stock: the `tf.train.Optimizer` that does the updates.
    slots: list of (name in files, slot's name): the states of a dense parameter.
    row_slots: the same for a row.
  """

  def __init__(self, clause, name):
    """Creates the rate in the default graph.

    Args:
      clause: the config's Optimizer.
      name: string, name of the ops.
    """
    hparam = clause.hparam
    self.lr = tf.Variable(
        lambda: tf.constant(hparam["learning_rate"], tf.float32), trainable=False,
        use_resource=True, name=name + "/learning_rate")
    # Rules that leave a parameter without a gradient as it is. RMSProp's v would decay,
    # but upstream has RMSProp for tables that update the rows of the batch only.
    is_local = clause.type in ("SGD", "AdaGrad", "Ftrl", "RMSProp")
    self._is_global = clause.update_type == "Global" and not is_local
    is_lazy = clause.update_type == "LazyGlobal" and not is_local
    self._rate_in_gradient = None
    if clause.type in ("MomentumSGD", "Nesterov") and is_lazy:
      self.stock = lazy_global.LazyMomentum(
          self.lr, hparam["momentum_factor"], clause.type == "Nesterov", name)
      self.slots = [("momentum", "momentum")]
    elif clause.type == "Adam" and is_lazy:
      self.stock = lazy_global.LazyAdam(self.lr, hparam["beta1"], hparam["beta2"],
                                        hparam["epsilon"], name)
      self.slots = [("m", "m"), ("v", "v")]
    elif clause.type in ("MomentumSGD", "Nesterov"):
      self._rate_in_gradient = self.lr
      self.stock = tf.train.MomentumOptimizer(
          1.0, hparam["momentum_factor"], use_nesterov=clause.type == "Nesterov",
          name=name)
      self.slots = [("momentum", "momentum")]
    elif clause.type == "Adam":
      self.stock = tf.train.AdamOptimizer(
          self.lr, hparam["beta1"], hparam["beta2"], hparam["epsilon"], name=name)
      self.slots = [("m", "m"), ("v", "v")]
    elif clause.type == "SGD":
      self.stock = tf.train.GradientDescentOptimizer(self.lr, name=name)
      self.slots = []
    elif clause.type == "Ftrl":
      self.stock = ftrl.optimizer(self.lr, hparam["beta"], hparam["lambda1"],
                                  hparam["lambda2"], name)
      self.slots = [("n", "accum"), ("z", "linear")]
    elif clause.type == "RMSProp":
      self.stock = rms_prop.RmsPropOptimizer(self.lr, hparam["beta"], hparam["epsilon"], name)
      self.slots = [("v", "v")]
    else:
      self.stock = adagrad.AdaGradOptimizer(
          self.lr, hparam["initial_accu_value"], hparam["epsilon"], name=name)
      self.slots = [("accumulator", "accumulator")]
    # Step of the row's last gradient.
    self.row_slots = self.slots + ([("time", "time")] if is_lazy else [])

  def counted(self):
    """Returns {name: variable} of its counters; call it in their graph."""
    if isinstance(self.stock, (lazy_global.LazyMomentum, lazy_global.LazyAdam)):
      return {"step": self.stock.step_variable()}
    found = {}
    for variable in self.stock.variables():
      name = variable.op.name.rpartition("/")[2].split("_")
      if name[:2] in (["beta1", "power"], ["beta2", "power"]):
        found["%s_power" % name[0]] = variable
    return found

  def _scaled(self, gradient):
    if self._rate_in_gradient is None:
      return gradient
    rate = self._rate_in_gradient
    if isinstance(gradient, tf.IndexedSlices):
      return tf.IndexedSlices(gradient.values * rate, gradient.indices,
                              gradient.dense_shape)
    return gradient * rate

  def _with_all_rows(self, gradient, table):
    """Returns a table's gradient with zeros for all other rows of the table.

    With them every row decays, and a row without a gradient is updated like a dense
    parameter.
    """
    keys, _ = sok.export(table)
    return tf.IndexedSlices(
        tf.concat([gradient.values, tf.zeros([tf.size(keys), table.dim])], 0),
        tf.concat([tf.cast(gradient.indices, keys.dtype), keys], 0))

  def apply(self, grads_and_vars):
    """Returns the op that updates parameters.

    Args:
      grads_and_vars: list of (gradient, dense variable or embedding variable).
    """
    pairs = []
    for gradient, var in grads_and_vars:
      gradient = self._scaled(gradient)
      if self._is_global and embedding_variable.is_embedding_variable(var):
        gradient = self._with_all_rows(gradient, var)
      pairs.append((gradient, var))
    return self.stock.apply_gradients(pairs)
